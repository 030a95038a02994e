/* test_gpu.c - how many GPUs NVML says there are; the library is played here. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/facts/gpu.h"
#include "daemon/os/dlib.h"

enum { BROKEN = 3 }; /* any of its errors */

/* How the library answers, and what was called. */
static struct nvml_played {
	int opens, init, device_count; /* what they return */
	unsigned present, nameless;    /* nameless: the one that has no handle */
	unsigned inits, counts, shutdowns, closes;
	bool hangs, dies; /* in the count */
} nvml;

static int play_init(void)
{
	nvml.inits++;
	return nvml.init;
}

static int play_count(unsigned *ret)
{
	nvml.counts++;
	while (nvml.hangs)
		(void)pause();
	if (nvml.dies)
		abort();
	*ret = nvml.present;
	return nvml.device_count;
}

static int play_device(unsigned index, void **ret)
{
	static char devices[GPUS_MAX];

	*ret = &devices[index];
	devices[index] = (char)index;
	return index == nvml.nameless ? BROKEN : 0;
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
	*ret = (struct pci_info){ .domain = 1, .bus = 0x3b, .device = (unsigned)*(char *)device };
	return 0;
}

static int play_shutdown(void)
{
	nvml.shutdowns++;
	return BROKEN; /* which nobody minds */
}

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why);
int __wrap_dlclose(void *library);

int __wrap_dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	int (*const init)(void) = play_init, (*const shutdown)(void) = play_shutdown;
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
		{ "nvmlShutdown", &shutdown },
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

int __wrap_dlclose(void *library)
{
	assert_ptr_equal(library, &nvml);
	nvml.closes++;
	return 0;
}

static const struct gpu_row {
	const char *says;
	struct nvml_played played;
	const char *variable; /* NULL: none */
	int rc;
	unsigned gpus;
	const char *part;
} rows[] = {
	{ "all that there are", { .present = 4 }, NULL, 0, 4, NULL },
	{ "those that CUDA shows", { .present = 4 }, "CUDA_VISIBLE_DEVICES=3,1", 0, 2, NULL },
	{ "a driver without a device", { .present = 0 }, NULL, 0, 0, NULL },
	{ "no library", { .opens = -ELIBACC, .present = 4 }, NULL, 0, 0, NULL },
	{ "another library of that name", { .opens = -ELIBBAD }, NULL, -ELIBBAD, 0,
		"NVML can't be loaded" },
	{ "a library without a driver", { .init = BROKEN, .present = 4 }, NULL, 0, 0, NULL },
	{ "a driver that does not count", { .device_count = BROKEN, .present = 4 }, NULL, -EIO, 0,
		"NVML: nvmlDeviceGetCount failed" },
};

static void test_gpus(void **state)
{
	const struct gpu_row *row = *state;
	const char *const env[] = { row->variable, NULL };
	bool opened = row->played.opens == 0, begun = opened && row->played.init == 0;
	struct failure why = { 0 };
	unsigned gpus = 77;

	nvml = row->played;
	assert_outcome(gpu_count(env, &gpus, &why), row->rc, &why, row->part);
	assert_int_equal(gpus, row->gpus);
	assert_int_equal(nvml.inits, opened);
	assert_int_equal(nvml.counts, begun);
	assert_int_equal(nvml.shutdowns, begun);
	assert_int_equal(nvml.closes, opened);
}

/* The same, asked in a child. */
static const struct read_row {
	const char *says;
	struct nvml_played played;
	int rc;
	bool known;
	unsigned count;
	const char *part;
} reads[] = {
	{ "a child counts", { .present = 4 }, 0, true, 4, NULL },
	{ "a child finds none", { .present = 0 }, 0, true, 0, NULL },
	{ "a child finds no library", { .opens = -ELIBACC }, 0, false, 0, NULL },
	{ "a child finds no driver", { .init = BROKEN, .present = 4 }, 0, false, 0, NULL },
	{ "a child finds another library", { .opens = -ELIBBAD }, -ELIBBAD, false, 0,
		"NVML can't be loaded" },
	{ "a child hears of a failure", { .device_count = BROKEN }, -EIO, false, 0,
		"nvmlDeviceGetCount failed" },
	{ "a child hangs", { .hangs = true }, -ETIMEDOUT, false, 0,
		"has not answered within 0.1 s" },
	{ "a child dies", { .dies = true }, -EIO, false, 0, "the process that asked it died" },
};

static void test_read(void **state)
{
	const struct read_row *row = *state;
	uint64_t limit_ms = row->played.hangs ? 100 : 60000;
	struct gpus gpus = { .count = 77 };
	struct failure why = { 0 };
	struct arena a = { 0 };

	nvml = row->played;
	assert_outcome(gpus_read(false, limit_ms, &a, &gpus, &why), row->rc, &why, row->part);
	assert_int_equal(gpus.count, row->rc < 0 ? 77 : row->count);
	assert_int_equal(gpus.known, row->known);
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
	assert_string_equal(gpus.at[0].bus, "0001:3b:00.0");
	assert_string_equal(gpus.at[1].uuid, "");
	assert_string_equal(gpus.at[1].bus, "");
	assert_string_equal(gpus.at[2].bus, "0001:3b:02.0");
	assert_string_equal(gpus.at[2].name, "Played GPU");
	arena_done(&a);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_gpus, rows);
	SUITE_ROWS(&s, test_read, reads);
	suite_add(&s, "a child tells what they are", test_ids, NULL, NULL);
	return suite_run(&s);
}
