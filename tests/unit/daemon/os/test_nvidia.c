/* test_nvidia.c - what the kernel shows of NVIDIA's driver and GPUs, in trees of files; and who may
 * make device files. */
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/os/nvidia.h"
#include "daemon/os/nvml_error.h"

#define GPU(dir) \
	"sys/bus/pci/devices/" dir "/vendor=0x10de", "sys/bus/pci/devices/" dir "/class=0x030200"
#define LINUX      "proc/driver/rtc=time"
#define DRIVER     "proc/driver/nvidia/version=NVRM"
#define BOUND(dir) "sys/bus/pci/devices/" dir "/driver/x="
#define NODE(name) "dev/" name "="

static const struct look_row {
	const char *says;
	const char *files[8]; /* "path=text" */
	bool driver, nodes, idle;
} looks[] = {
	{ "nothing of NVIDIA's", { LINUX, NODE("null") }, false, false, false },
	{ "the file that NVML makes is no GPU", { LINUX, NODE("nvidiactl"), NODE("nvidia-uvm") },
		false, false, false },
	{ "a machine with a GPU",
		{ LINUX, DRIVER, NODE("nvidiactl"), NODE("nvidia0"), GPU("0000:3b:00.0"),
			BOUND("0000:3b:00.0") },
		true, true, false },
	{ "a container without GPUs sees the driver, but has no device file",
		{ LINUX, DRIVER, GPU("0000:3b:00.0"), BOUND("0000:3b:00.0") }, true, false, false },
	{ "device files that a driver has left behind", { LINUX, NODE("nvidia0") }, false, true,
		false },
	{ "a kernel whose /proc has no drivers", { NODE("nvidia12") }, true, true, false },
	{ "Windows' subsystem for Linux", { LINUX, NODE("dxg") }, true, true, false },
	{ "a GPU that no driver uses", { LINUX, GPU("0000:3b:00.0") }, false, false, true },
	{ "a GPU that a virtual machine uses",
		{ LINUX, GPU("0000:3b:00.0"), BOUND("0000:3b:00.0") }, false, false, false },
	{ "the sound of a GPU",
		{ LINUX, "sys/bus/pci/devices/a/vendor=0x10de",
			"sys/bus/pci/devices/a/class=0x040300" },
		false, false, false },
	{ "another maker's GPU",
		{ LINUX, "sys/bus/pci/devices/a/vendor=0x1002",
			"sys/bus/pci/devices/a/class=0x030000" },
		false, false, false },
};

static void make_file(const char *root, const char *what)
{
	char path[256];
	const char *text = strchr(what, '=');
	FILE *to;

	(void)snprintf(path, sizeof path, "%s/%.*s", root, (int)(text - what), what);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	to = fopen(path, "we");
	assert_non_null(to);
	assert_true(fprintf(to, "%s\n", text + 1) > 0);
	assert_int_equal(fclose(to), 0);
}

static void test_look(void **state)
{
	const struct look_row *row = *state;
	char root[] = "/tmp/launchd_test_nvidia_XXXXXX";
	struct nvidia_seen seen = { true, true, true };

	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < 8 && row->files[i]; i++)
		make_file(root, row->files[i]);
	nvidia_look(root, &seen);
	assert_int_equal(scratch_remove(root), 0);
	assert_int_equal(seen.driver, row->driver);
	assert_int_equal(seen.nodes, row->nodes);
	assert_int_equal(seen.idle, row->idle);
}

/* As NVML does before it returns DRIVER_NOT_LOADED. 0: made; else errno. */
static int make_node(const char *path)
{
	int error = mknod(path, S_IFCHR | 0600, 0x01000003) == 0 ? 0 : errno;

	(void)unlink(path);
	return error;
}

static void test_no_nodes(void **state)
{
	struct nvidia_seen seen;
	char path[] = "/tmp/launchd_test_node_XXXXXX";
	int status;
	pid_t child;

	(void)state;
	nvidia_look("", &seen);
	assert_int_equal(close(mkstemp(path)), 0);
	assert_int_equal(unlink(path), 0);
	if (seen.driver || seen.idle || make_node(path) != 0)
		skip(); /* a GPU is here, or this user may make none */
	child = fork();
	if (child == 0) {
		nvidia_make_no_nodes();
		_exit(make_node(path));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, EPERM << 8);
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(nvml_words(NVML_DRIVER_NOT_LOADED), "the driver is not loaded");
	assert_non_null(strstr(nvml_words(NVML_LIB_RM_VERSION_MISMATCH), "reboot"));
	assert_string_equal(nvml_words(42), "error 42");
	assert_true(nvml_is_bad(NVML_GPU_IS_LOST));
	assert_false(nvml_is_bad(NVML_NO_PERMISSION));
}

TESTS(nvidia)
{
	static struct suite s;

	SUITE_ROWS(&s, test_look, looks);
	suite_add(&s, "where no driver is NVML can make no device file", test_no_nodes, NULL, NULL);
	suite_add(&s, "NVML's errors have words", test_words, NULL, NULL);
	return suite_run(&s);
}
