/* test_nvidia_bus.c - GPUs on the PCI bus, and their device files. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/check/nvidia_bus.h"

static char root[32];

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

/* "vendor class driver", driver "-": none */
static void add_device(const char *bus, const char *text)
{
	char vendor[16], class[16], driver[16], command[1024];

	assert_int_equal(sscanf(text, "%15s %15s %15s", vendor, class, driver), 3);
	(void)snprintf(command, sizeof command,
		"d=%s/sys/bus/pci/devices/%s; mkdir -p $d %s/drivers/%s && echo %s >$d/vendor && echo %s "
		">$d/class && { test %s = - || ln -s ../../../../../drivers/%s $d/driver; }",
		root, bus, root, driver, vendor, class, driver, driver);
	run(command);
}

static const struct bus_row {
	const char *says;
	const char *devices[4];
	const char *nodes; /* in /dev */
	unsigned present, bound, idle, usable;
} rows[] = {
	{ "no bus", { NULL }, "", 0, 0, 0, 0 },
	{ "two that NVIDIA's driver has", { "0x10de 0x030200 nvidia", "0x10de 0x030000 nvidia" },
		"nvidia0 nvidia1 nvidiactl", 2, 2, 0, 2 },
	{ "one of them has a device file", { "0x10de 0x030200 nvidia", "0x10de 0x030200 nvidia" },
		"nvidia5 nvidia-uvm", 2, 2, 0, 1 },
	{ "none has", { "0x10de 0x030200 nvidia" }, "nvidiactl", 1, 1, 0, 0 },
	{ "one that a virtual machine has", { "0x10de 0x030200 vfio-pci" }, "nvidia0", 1, 0, 0, 0 },
	{ "one that no driver has", { "0x10de 0x030200 -" }, "", 1, 0, 1, 0 },
	{ "NVIDIA's sound and bridges, and other makers' GPUs",
		{ "0x10de 0x040300 snd_hda_intel", "0x10de 0x068000 nvidia",
			"0x1002 0x030000 amdgpu" },
		"nvidia0", 0, 0, 0, 0 },
};

static void test_bus(void **state)
{
	const struct bus_row *row = *state;
	struct nvidia_bus bus;
	char command[512];
	static const char *const at[] = { "0000:1b:00.0", "0000:2b:00.0", "0001:1b:00.0" };

	strcpy(root, "/tmp/launchd-bus-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (unsigned i = 0; i < 3 && row->devices[i]; i++)
		add_device(at[i], row->devices[i]);
	(void)snprintf(command, sizeof command,
		"mkdir %s/dev && cd %s/dev && for n in %s; do : >$n; done", root, root, row->nodes);
	run(command);
	nvidia_bus_look(root, &bus);
	assert_int_equal(bus.present, row->present);
	assert_int_equal(bus.bound, row->bound);
	assert_int_equal(bus.idle, row->idle);
	assert_int_equal(nvidia_bus_usable(root, &bus), row->usable);
	(void)snprintf(command, sizeof command, "rm -r %s", root);
	run(command);
}

TESTS(nvidia_bus)
{
	static struct suite s;

	SUITE_ROWS(&s, test_bus, rows);
	return suite_run(&s);
}
