/* test_gpu_memory.c - which processes NVML says to use GPUs; the library is played here. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/facts/gpu_memory.h"
#include "daemon/os/dlib.h"

enum { BROKEN = 999, DENIED = 4, NO_DRIVER = 9, UPDATED = 18, ROOM = 3 };

struct info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

/* What the library has, and what its functions return. */
static struct nvml_played {
	int opens, init, device_count, device, processes;
	unsigned present, refuses; /* refuses: a bit for each GPU, whose `device` fails */
	bool gpus_here;            /* by the kernel */
	struct info used[2];       /* each GPU's; of pid 0 there is none */
} nvml;

static int play_init(void)
{
	return nvml.init;
}

static int play_count(unsigned *ret)
{
	if (nvml.device_count == 0)
		*ret = nvml.present;
	return nvml.device_count;
}

static int play_device(unsigned index, void **ret)
{
	int rc = nvml.refuses & 1U << index ? nvml.device : 0;

	assert_true(index < nvml.present);
	if (rc == 0)
		*ret = &nvml;
	return rc;
}

static int play_processes(void *device, unsigned *count, struct info *ret)
{
	unsigned n = 0;

	assert_ptr_equal(device, &nvml);
	assert_true(*count >= 2);
	for (unsigned i = 0; i < 2; i++)
		if (nvml.used[i].pid)
			ret[n++] = nvml.used[i];
	if (nvml.processes == 0)
		*count = n;
	return nvml.processes;
}

/* In the order of the library's table. */
struct functions {
	int (*init)(void);
	int (*device_count)(unsigned *);
	int (*device)(unsigned index, void **ret);
	int (*processes)(void *device, unsigned *count, struct info *ret);
};

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why);
bool __wrap_nvidia_gpus_here(void);

bool __wrap_nvidia_gpus_here(void)
{
	return nvml.gpus_here;
}

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	const struct functions all = { play_init, play_count, play_device, play_processes };
	static const char *const names[] = { "nvmlInit_v2", "nvmlDeviceGetCount_v2",
		"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetComputeRunningProcesses_v3" };

	assert_null(file);
	if (nvml.opens < 0)
		return failure_set(why, nvml.opens, "NVML can't be loaded");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_string_equal(d->symbols[i].name, names[i]);
		assert_int_equal(d->symbols[i].at, i * sizeof(void (*)(void)));
	}
	memcpy(ret, &all, sizeof all);
	*ret_library = &nvml;
	return 0;
}

static const struct use_row {
	const char *says;
	struct nvml_played played;
	int rc;
	size_t count;
	const char *part;
} rows[] = {
	{ "each process on each GPU",
		{ .present = 1, .used = { { .pid = 7, .used_bytes = 5 }, { .pid = 8 } } }, 0, 2,
		NULL },
	{ "as many as there is room for",
		{ .present = 2, .used = { { .pid = 7, .used_bytes = 5 }, { .pid = 8 } } }, 0, ROOM,
		NULL },
	{ "one that is not said",
		{ .present = 1, .used = { { .pid = 7, .used_bytes = -1ULL }, { .pid = 8 } } }, 0, 1,
		NULL },
	{ "GPUs that nobody uses", { .present = 2 }, 0, 0, NULL },
	{ "no GPU", { .present = 0 }, -ELIBACC, 0, "there is no GPU" },
	{ "no library", { .opens = -ELIBACC }, -ELIBACC, 0, "can't be loaded" },
	{ "an old library", { .opens = -ELIBBAD }, -ELIBBAD, 0, "can't be loaded" },
	{ "a library without a driver", { .init = NO_DRIVER, .present = 1 }, -ELIBACC, 0,
		"nvmlInit: the driver is not loaded" },
	{ "GPUs whose driver can't be reached", { .init = NO_DRIVER, .gpus_here = true }, -EIO, 0,
		"nvmlInit: the driver is not loaded" },
	{ "a driver that was updated", { .init = UPDATED, .present = 1 }, -EIO, 0,
		"nvmlInit: the driver that is loaded is not the one that is installed" },
	{ "a driver that does not count", { .device_count = BROKEN, .present = 1 }, -EIO, 0,
		"nvmlDeviceGetCount: an error inside the driver" },
	{ "a GPU that has fallen off the bus", { .device = BROKEN, .refuses = 1, .present = 1 },
		-EIO, 0, "GPU 0 does not report who uses it" },
	{ "a GPU that may not be asked hides no other",
		{ .device = DENIED,
			.refuses = 2,
			.present = 3,
			.used = { { .pid = 7, .used_bytes = 5 } } },
		0, 2, NULL },
	{ "the first may not be asked",
		{ .device = DENIED,
			.refuses = 1,
			.present = 2,
			.used = { { .pid = 7, .used_bytes = 5 }, { .pid = 8 } } },
		0, 2, NULL },
	{ "none may be asked", { .device = DENIED, .refuses = 3, .present = 2 }, -EIO, 0,
		"no permission" },
	{ "a GPU that does not tell", { .processes = BROKEN, .present = 1 }, -EIO, 0,
		"GPU 0 does not report who uses it" },
};

static void test_use(void **state)
{
	const struct use_row *row = *state;
	struct gpu_use uses[ROOM] = { { .pid = 99 } };
	struct failure why = { 0 };
	size_t count = 77;

	nvml = row->played;
	assert_outcome(gpu_memory_read(uses, ROOM, &count, &why), row->rc, &why, row->part);
	if (row->rc == 0) {
		assert_int_equal(count, row->count);
		if (row->count == 2) {
			assert_int_equal(uses[0].pid, 7);
			assert_int_equal(uses[0].bytes, 5);
			assert_int_equal(uses[1].pid, row->played.used[1].pid ? 8 : 7);
		}
	}
}

TESTS(gpu_memory)
{
	static struct suite s;

	SUITE_ROWS(&s, test_use, rows);
	return suite_run(&s);
}
