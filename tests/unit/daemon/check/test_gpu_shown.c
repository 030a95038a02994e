/* test_gpu_shown.c - which GPUs a CUDA_VISIBLE_DEVICES shows. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/check/gpu_shown.h"
#include "daemon/check/nvml.h"

/* GPU n is at devices[n], and has a MIG device at parts[n]. */
static char devices[4], parts[4];

static int play_by_uuid(const char *uuid, void **ret)
{
	if (strcmp(uuid, "MIG-b2") != 0)
		return NVML_NOT_FOUND;
	*ret = &parts[2];
	return NVML_OK;
}

static int play_whole_of(void *part, void **ret)
{
	if ((char *)part < parts || (char *)part >= parts + sizeof parts)
		return NVML_NOT_FOUND;
	*ret = &devices[(char *)part - parts];
	return NVML_OK;
}

static const struct shown_row {
	const char *says, *list;
	unsigned shown; /* of GPU 2, which is GPU-cccc */
	bool part, old;
} rows[] = {
	{ "no list", NULL, 1, false, false },
	{ "an empty list", "", 0, false, false },
	{ "its number", "0,2", 1, false, false },
	{ "another number", "0,3", 0, false, false },
	{ "behind -1", "0,-1,2", 0, false, false },
	{ "behind a number that no GPU has", "0,4,2", 0, false, false },
	{ "in a list that has a number twice", "2,0,2", 0, false, false },
	{ "its UUID", "GPU-aaaa,GPU-cccc", 1, false, false },
	{ "the beginning of its UUID", "GPU-cc", 1, false, false },
	{ "another UUID", "GPU-aaaa", 0, false, false },
	{ "a MIG device of it", "MIG-b2", 1, true, false },
	{ "a MIG device that isn't here", "MIG-b3", 0, false, false },
	{ "a MIG device, as old drivers call it", "MIG-GPU-cccc/1/0", 1, true, true },
	{ "two of them", "MIG-GPU-cccc/1/0,MIG-GPU-cccc/2/0", 2, true, true },
	{ "another GPU's, as old drivers call it", "MIG-GPU-cccccc/1/0", 0, false, true },
	{ "a MIG device, and a driver that can't be asked", "MIG-b2", 0, false, true },
};

static void test_shown(void **state)
{
	const struct shown_row *row = *state;
	const struct nvml_api nvml = { .by_uuid = row->old ? NULL : play_by_uuid,
		.whole_of = row->old ? NULL : play_whole_of };
	struct gpu_listed gpu = { &nvml, true, &devices[2], 2, 4, "GPU-cccc" };
	bool part = true, by_number = row->list && *row->list >= '0' && *row->list <= '9';

	assert_int_equal(gpu_shown(row->list, &gpu, &part), row->shown);
	assert_int_equal(part, row->part);
	gpu.numbered = false; /* GPUs of several models, which CUDA numbers by speed */
	assert_int_equal(gpu_shown(row->list, &gpu, &part), by_number ? 0 : row->shown);
}

TESTS(gpu_shown)
{
	static struct suite s;

	SUITE_ROWS(&s, test_shown, rows);
	return suite_run(&s);
}
