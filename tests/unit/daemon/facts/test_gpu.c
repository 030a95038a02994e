/* test_gpu.c - how many GPUs NVML says there are; the library is played here. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "daemon/facts/gpu.h"
#include "daemon/os/dlib.h"

enum { BROKEN = 3 }; /* any of its errors */

/* How the library answers, and what was called. */
static struct nvml_played {
	int opens, init, device_count; /* what they return */
	unsigned present;
	unsigned inits, counts, shutdowns, closes;
} nvml;

static int play_init(void)
{
	nvml.inits++;
	return nvml.init;
}

static int play_count(unsigned *ret)
{
	nvml.counts++;
	*ret = nvml.present;
	return nvml.device_count;
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
	static int (*const without[])(void) = { play_init, play_shutdown };
	int (*const count)(unsigned *) = play_count;

	assert_null(file);
	assert_string_equal(d->file, "libnvidia-ml.so.1");
	if (nvml.opens < 0)
		return failure_set(why, nvml.opens, "NVML can't be loaded");
	for (const struct dlib_symbol *s = d->symbols; s->name; s++) {
		void *to = (char *)ret + s->at;

		if (strcmp(s->name, "nvmlInit_v2") == 0)
			memcpy(to, &without[0], sizeof without[0]);
		else if (strcmp(s->name, "nvmlShutdown") == 0)
			memcpy(to, &without[1], sizeof without[1]);
		else if (strcmp(s->name, "nvmlDeviceGetCount_v2") == 0)
			memcpy(to, &count, sizeof count);
		else
			fail_msg("%s: not played", s->name);
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

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_gpus, rows);
	return suite_run(&s);
}
