/* test_gpu.c - what NVML tells of the GPUs; the library is played here. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/facts/gpu.h"
#include "daemon/os/dlib.h"
#include "daemon/os/nvidia.h"
#include "daemon/os/nvml_error.h"

enum { BROKEN = 3 }; /* any of its errors */

/* How the library answers, and what was called. */
static struct nvml_played {
	int opens, init, device_count; /* what they return */
	unsigned present, nameless;    /* nameless: the one that has no handle */
	unsigned inits, guarded;
	bool hangs, dies; /* in the count */
} nvml;

static int play_init(void)
{
	nvml.inits++;
	assert_int_equal(nvml.guarded, 1); /* it can make no device file where no driver is */
	return nvml.init;
}

static int play_count(unsigned *ret)
{
	while (nvml.hangs)
		(void)pause();
	if (nvml.dies)
		abort();
	if (nvml.device_count == 0)
		*ret = nvml.present;
	return nvml.device_count;
}

static int play_device(unsigned index, void **ret)
{
	static char devices[GPUS_MAX];

	if (index == nvml.nameless)
		return BROKEN;
	*ret = &devices[index];
	devices[index] = (char)index;
	return 0;
}

static int play_uuid(void *device, char *ret, unsigned room)
{
	(void)snprintf(ret, room, "GPU-%d", *(char *)device);
	return 0;
}

static int play_name(void *device, char *ret, unsigned room)
{
	(void)device;
	(void)snprintf(ret, room, "Played GPU");
	return 0;
}

struct pci_info {
	char bus_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

static int play_pci(void *device, struct pci_info *ret)
{
	*ret = (struct pci_info){
		.domain = 0x10001, .bus = 0x3b, .device = (unsigned)*(char *)device
	};
	return 0;
}

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why);

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	int (*const init)(void) = play_init;
	int (*const count)(unsigned *) = play_count;
	int (*const device)(unsigned, void **) = play_device;
	int (*const uuid)(void *, char *, unsigned) = play_uuid;
	int (*const name)(void *, char *, unsigned) = play_name;
	int (*const pci)(void *, struct pci_info *) = play_pci;
	const struct {
		const char *name;
		const void *pointer; /* to the function's */
	} played[] = {
		{ "nvmlInit_v2", &init },
		{ "nvmlDeviceGetCount_v2", &count },
		{ "nvmlDeviceGetHandleByIndex_v2", &device },
		{ "nvmlDeviceGetUUID", &uuid },
		{ "nvmlDeviceGetName", &name },
		{ "nvmlDeviceGetPciInfo_v3", &pci },
	};

	assert_null(file);
	assert_string_equal(d->file, "libnvidia-ml.so.1");
	if (nvml.opens < 0)
		return failure_set(why, nvml.opens, "NVML can't be loaded");
	for (const struct dlib_symbol *s = d->symbols; s->name; s++) {
		size_t i = 0;

		while (i < sizeof played / sizeof *played && strcmp(played[i].name, s->name) != 0)
			i++;
		if (i == sizeof played / sizeof *played)
			fail_msg("%s: not played", s->name);
		memcpy((char *)ret + s->at, played[i].pointer, sizeof init);
	}
	*ret_library = &nvml;
	return 0;
}

/* What the kernel shows. */
static struct nvidia_seen kernel;

void __wrap_nvidia_look(const char *root, struct nvidia_seen *ret);
void __wrap_nvidia_make_no_nodes(void);

void __wrap_nvidia_look(const char *root, struct nvidia_seen *ret)
{
	assert_string_equal(root, "");
	*ret = kernel;
}

/* Once, in the child, before the library is there. */
void __wrap_nvidia_make_no_nodes(void)
{
	nvml.guarded++;
}

#define NO_KERNEL \
	{ \
		.driver = false \
	}
#define GPU_HOST \
	{ \
		.driver = true, .nodes = true \
	}
#define CPU_BOX \
	{ \
		.driver = true \
	}
#define NO_MODULE \
	{ \
		.present = 1, .idle = 1 \
	}

/* It is asked in a child. */
static const struct read_row {
	const char *says;
	struct nvml_played played;
	struct nvidia_seen kernel;
	bool known, here;
	unsigned count;
	const char *said; /* the beginning */
} reads[] = {
	{ "a child counts", { .present = 4 }, GPU_HOST, true, false, 4, "" },
	{ "a child finds none", { .present = 0 }, NO_KERNEL, true, false, 0, "NVML counts none" },
	{ "none of those that have device files", { .present = 0 }, GPU_HOST, true, true, 0,
		"NVML counts none" },
	{ "a child finds no library", { .opens = -ELIBACC }, NO_KERNEL, false, false, 0,
		"NVML can't be loaded" },
	{ "no library in a container without GPUs", { .opens = -ELIBACC }, CPU_BOX, false, false, 0,
		"NVML can't be loaded" },
	{ "no library for a GPU that no driver uses", { .opens = -ELIBACC }, NO_MODULE, false,
		false, 0, "NVML can't be loaded" },
	{ "no library for GPUs that have device files", { .opens = -ELIBACC }, GPU_HOST, false,
		true, 0, "NVML can't be loaded" },
	{ "a child finds no driver", { .init = NVML_DRIVER_NOT_LOADED, .present = 4 }, NO_KERNEL,
		false, false, 0, "NVML: nvmlInit: the driver is not loaded" },
	{ "no driver in a container without GPUs", { .init = NVML_DRIVER_NOT_LOADED }, CPU_BOX,
		false, false, 0, "NVML: nvmlInit: the driver is not loaded" },
	{ "a library and a GPU without a driver", { .init = NVML_DRIVER_NOT_LOADED }, NO_MODULE,
		false, true, 0, "NVML: nvmlInit: the driver is not loaded" },
	{ "GPUs with device files whose driver can't be reached",
		{ .init = NVML_DRIVER_NOT_LOADED }, GPU_HOST, false, true, 0,
		"NVML: nvmlInit: the driver is not loaded" },
	{ "a driver that was updated", { .init = NVML_LIB_RM_VERSION_MISMATCH, .present = 4 },
		NO_KERNEL, false, true, 0,
		"NVML: nvmlInit: the driver that is loaded is not the one that is installed" },
	{ "a driver that fails", { .init = NVML_UNKNOWN_ERROR }, GPU_HOST, false, true, 0,
		"NVML: nvmlInit: an error inside the driver" },
	{ "a child finds another library", { .opens = -ELIBBAD }, NO_KERNEL, false, true, 0,
		"NVML can't be loaded" },
	{ "a child hears of a failure", { .device_count = NVML_UNKNOWN_ERROR }, GPU_HOST, false,
		true, 0, "NVML: nvmlDeviceGetCount: an error inside the driver" },
	{ "a child hangs", { .hangs = true }, GPU_HOST, false, true, 0,
		"NVML has not answered within 0.1 s" },
	{ "a child dies", { .dies = true }, NO_KERNEL, false, true, 0,
		"NVML: the process that asked it died" },
};

static void test_read(void **state)
{
	const struct read_row *row = *state;
	uint64_t limit_ms = row->played.hangs ? 100 : 60000;
	struct gpus gpus = { .count = 77 };
	struct failure why = { 0 };
	struct arena a = { 0 };

	nvml = row->played;
	kernel = row->kernel;
	assert_outcome(gpus_read(false, limit_ms, &a, &gpus, &why), 0, &why, NULL);
	assert_int_equal(gpus.count, row->count);
	assert_int_equal(gpus.known, row->known);
	assert_int_equal(gpus.here, row->here);
	assert_int_equal(gpus.loaded, row->played.opens == 0);
	assert_int_equal(strncmp(gpus.said, row->said, strlen(row->said)), 0);
	assert_int_equal(*gpus.said == 0, *row->said == 0);
	assert_null(gpus.at);
	assert_int_equal(nvml.inits, 0); /* not here */
	errno = 0;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD); /* nothing is left */
	arena_done(&a);
}

static void test_ids(void **state)
{
	struct gpus gpus = { 0 };
	struct failure why = { 0 };
	struct arena a = { 0 };

	(void)state;
	nvml = (struct nvml_played){ .present = 3, .nameless = 1 };
	assert_outcome(gpus_read(true, 60000, &a, &gpus, &why), 0, &why, NULL);
	assert_int_equal(gpus.count, 3);
	assert_string_equal(gpus.at[0].uuid, "GPU-0");
	assert_string_equal(gpus.at[0].bus, "10001:3b:00.0");
	assert_string_equal(gpus.at[1].uuid, "");
	assert_string_equal(gpus.at[1].bus, "");
	assert_string_equal(gpus.at[2].bus, "10001:3b:02.0");
	assert_string_equal(gpus.at[2].name, "Played GPU");
	arena_done(&a);
}

/* A container has the second and the third of three. */
static void test_names(void **state)
{
	const struct gpu_id ids[] = { { "GPU-2", "0000:20:00.0", "" },
		{ "GPU-3", "0000:30:00.0", "X" }, { "GPU-9", "", "" } };
	const struct gpus gpus = { .known = true, .count = 3, .at = ids };
	struct machine_gpu found[] = { { GPU_NVIDIA, 0, "0000:10:00.0", NULL, NULL, 0 },
		{ GPU_NVIDIA, 1, "0000:20:00.0", NULL, NULL, 0 },
		{ GPU_NVIDIA, 2, "0000:30:00.0", NULL, NULL, 0 },
		{ GPU_AMD, 0, "0000:40:00.0", NULL, NULL, 0 } };
	struct machine_gpu others[] = { { GPU_NVIDIA, 7, "0000:99:00.0", NULL, NULL, 0 } };
	struct machine m = { .gpus = found, .gpu_count = 4 };
	struct machine another = { .gpus = others, .gpu_count = 1 };

	(void)state;
	gpus_name(&gpus, &m);
	assert_int_equal(found[0].index, GPU_HIDDEN);
	assert_int_equal(found[1].index, 0);
	assert_string_equal(found[1].uuid, "GPU-2");
	assert_null(found[1].name);
	assert_int_equal(found[2].index, 1);
	assert_string_equal(found[2].name, "X");
	assert_int_equal(found[3].index, 0); /* AMD's */
	gpus_name(&gpus, &another);
	assert_int_equal(others[0].index, 7);
}

TESTS(gpu)
{
	static struct suite s;

	SUITE_ROWS(&s, test_read, reads);
	suite_add(&s, "the machine's GPUs get numbers and names", test_names, NULL, NULL);
	suite_add(&s, "a child tells what they are", test_ids, NULL, NULL);
	return suite_run(&s);
}
