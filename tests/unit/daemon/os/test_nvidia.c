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

#define A         "sys/bus/pci/devices/0000:1b:00.0/"
#define B         "sys/bus/pci/devices/0000:2b:00.0/"
#define C         "sys/bus/pci/devices/0001:1b:00.0/"
#define GPU(at)   at "vendor=0x10de", at "class=0x030200"
#define LINUX     "proc/driver/rtc=time"
#define DRIVER    "proc/driver/nvidia/version=NVRM"
#define HAS(name) "driver>../../../../../drivers/" name
#define NODE(at)  "dev/" at "="

static const struct look_row {
	const char *says;
	const char *files[14]; /* "path=text", "path>what the link points at" */
	bool driver, nodes;
	unsigned present, bound, idle, usable;
} looks[] = {
	{ "nothing of NVIDIA's", { LINUX, NODE("null") }, .driver = false },
	{ "the file that NVML makes is no GPU", { LINUX, NODE("nvidiactl"), NODE("nvidia-uvm") },
		.driver = false },
	{ "a machine with a GPU",
		{ LINUX, DRIVER, NODE("nvidiactl"), NODE("nvidia0"), GPU(A), A HAS("nvidia") },
		true, true, 1, 1, 0, 1 },
	{ "a machine with two, for a screen, too",
		{ LINUX, DRIVER, NODE("nvidia0"), NODE("nvidia1"), NODE("nvidiactl"), GPU(A),
			A HAS("nvidia"), B "vendor=0x10de", B "class=0x030000", B HAS("nvidia") },
		true, true, 2, 2, 0, 2 },
	{ "one of two has a device file",
		{ LINUX, DRIVER, NODE("nvidia5"), NODE("nvidia-uvm"), GPU(A), A HAS("nvidia"),
			GPU(B), B HAS("nvidia") },
		true, true, 2, 2, 0, 1 },
	{ "a container without GPUs sees the driver, but has no device file",
		{ LINUX, DRIVER, NODE("nvidiactl"), GPU(A), A HAS("nvidia") }, true, false, 1, 1, 0,
		0 },
	{ "device files that a driver has left behind", { LINUX, NODE("nvidia0") }, .nodes = true },
	{ "a kernel whose /proc has no drivers", { NODE("nvidia12") }, true, true, 0, 0, 0, 0 },
	{ "more device files than there are numbers for", { LINUX, NODE("nvidia64") },
		.nodes = true },
	{ "Windows' subsystem for Linux", { LINUX, NODE("dxg") }, true, true, 0, 0, 0, 0 },
	{ "a GPU that no driver uses", { LINUX, GPU(A) }, .present = 1, .idle = 1 },
	{ "a GPU that a virtual machine uses",
		{ LINUX, NODE("nvidia0"), GPU(A), A HAS("vfio-pci") }, .nodes = true,
		.present = 1 },
	{ "the virtual functions of a GPU are none of their own",
		{ LINUX, DRIVER, NODE("nvidia0"), GPU(A), A HAS("nvidia"), GPU(B),
			B "physfn/vendor=0x10de", GPU(C), C "physfn/vendor=0x10de",
			C HAS("nvidia") },
		true, true, 1, 1, 0, 1 },
	{ "the sound of a GPU, a bridge of NVIDIA's, another maker's GPU",
		{ LINUX, NODE("nvidia0"), A "vendor=0x10de", A "class=0x040300", B "vendor=0x10de",
			B "class=0x068000", B HAS("nvidia"), C "vendor=0x1002", C "class=0x030000",
			C HAS("amdgpu") },
		.nodes = true },
	{ "a GPU's sound and another maker's GPU that no driver uses",
		{ LINUX, A "vendor=0x10de", A "class=0x040300", C "vendor=0x1002",
			C "class=0x030000" },
		.driver = false },
};

static void make_file(const char *root, const char *what)
{
	char path[256];
	const char *text = what + strcspn(what, "=>");
	FILE *to;

	(void)snprintf(path, sizeof path, "%s/%.*s", root, (int)(text - what), what);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	if (*text == '>') {
		assert_int_equal(symlink(text + 1, path), 0);
		return;
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
	struct nvidia_seen seen = { .driver = true, .nodes = true, .idle = 1 };
	unsigned usable;

	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < 14 && row->files[i]; i++)
		make_file(root, row->files[i]);
	nvidia_look(root, &seen);
	usable = nvidia_usable(root, &seen);
	assert_int_equal(scratch_remove(root), 0);
	assert_int_equal(seen.driver, row->driver);
	assert_int_equal(seen.nodes, row->nodes);
	assert_int_equal(seen.present, row->present);
	assert_int_equal(seen.bound, row->bound);
	assert_int_equal(seen.idle, row->idle);
	assert_int_equal(usable, row->usable);
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
	if (seen.driver || seen.idle > 0 || make_node(path) != 0)
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
	assert_true(nvml_is_absent(NVML_GPU_NOT_FOUND));
	assert_false(nvml_is_absent(NVML_GPU_IS_LOST));
	assert_true(nvml_is_bad(NVML_GPU_IS_LOST));
	assert_true(nvml_is_bad(NVML_INSUFFICIENT_POWER));
	assert_non_null(strstr(nvml_words(NVML_INSUFFICIENT_POWER), "power cables"));
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
