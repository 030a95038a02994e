/* test_visible.c - which GPUs workers see, which are each one's own, and whether there are enough.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/gpu.h"
#include "daemon/plan/visible.h"

static const struct gpu_id ids[] = {
	{ "GPU-aa11", "0000:1b:00.0", "H100" },
	{ "GPU-aa22", "0000:43:00.0", "H100" },
	{ "GPU-bb33", "0000:9b:00.0", "H100" },
	{ "GPU-cc44", "0000:c3:00.0", "H100" },
};

static const struct gpus four = { .known = true, .count = 4, .at = ids };
static const struct gpus counted = { .known = true, .count = 4 };
static const struct gpus none = { .known = true };
static const struct gpus unknown = { .known = false };
static const struct gpus uncounted = {
	.loaded = true, .here = true, .said = "NVML: nvmlInit: error 42"
};
static const struct gpus no_nvml = { .here = true, .said = "there is no NVML" };
static const struct gpus of_amd = { .maker = GPU_AMD };
static const struct gpus of_intel = { .maker = GPU_INTEL };

struct put {
	enum setting_id id;
	const char *text;
};

static void settings_make(struct settings_fixture *b, const struct put *put, size_t max)
{
	settings_fixture_make(b, false);
	for (size_t i = 0; i < max && put[i].text; i++)
		settings_fixture_put(b, put[i].id, put[i].text, setting_rows[put[i].id].flag);
}

static const struct sees_row {
	const char *says;
	const struct gpus *gpus;
	const char *env[3];
	struct put put[2];
	int rc;
	const char *all; /* or a part of the sentence */
	bool unknown;
} sees[] = {
	{ "all that NVML counts", &counted, { NULL }, { { 0 } }, 0, "0,1,2,3", false },
	{ "where NVML fails nobody asks, so nobody has to know", &uncounted, { NULL }, { { 0 } }, 0,
		"", true },
	{ "chosen ones where NVML fails", &uncounted, { NULL }, { { SET_GPUS, "5,7" } }, -EINVAL,
		"gpus: which GPUs are here isn't known: NVML: nvmlInit: error 42", false },
	{ "each worker's own where NVML fails", &uncounted, { NULL },
		{ { SET_VISIBLE_DEVICES, "one" } }, -EINVAL,
		"visible-devices: which GPUs are here isn't known", false },
	{ "... are those of the launcher's list", &uncounted, { "CUDA_VISIBLE_DEVICES=3,1" },
		{ { SET_VISIBLE_DEVICES, "one" } }, 0, "3,1", false },
	{ "chosen ones where NVML is not installed", &no_nvml, { NULL }, { { SET_GPUS, "5,7" } }, 0,
		"5,7", false },
	{ "nobody knows", &unknown, { NULL }, { { 0 } }, 0, "", true },
	{ "the launcher's list", &unknown, { "CUDA_VISIBLE_DEVICES=3,1" }, { { 0 } }, 0, "3,1",
		false },
	{ "the launcher's list, as far as CUDA shows it", &counted,
		{ "CUDA_VISIBLE_DEVICES=3,9,1" }, { { 0 } }, 0, "3", false },
	{ "an empty list", &counted, { "CUDA_VISIBLE_DEVICES=" }, { { 0 } }, 0, "", false },
	{ "those that AMD's runtime leaves", &of_amd, { "ROCR_VISIBLE_DEVICES=4,5,6" }, { { 0 } },
		0, "0,1,2", false },
	{ "chosen ones", &counted, { NULL }, { { SET_GPUS, "3,0-1" } }, 0, "3,0,1", false },
	{ "chosen ones of an unknown number", &unknown, { NULL }, { { SET_GPUS, "5,7" } }, 0, "5,7",
		false },
	{ "numbers count within the launcher's list", &counted, { "CUDA_VISIBLE_DEVICES=2,3" },
		{ { SET_GPUS, "1" } }, 0, "3", false },
	{ "numbers of a list of names", &counted, { "CUDA_VISIBLE_DEVICES=GPU-aa11,GPU-bb33" },
		{ { SET_GPUS, "1" } }, 0, "GPU-bb33", false },
	{ "a number that is too high", &counted, { NULL }, { { SET_GPUS, "0-4" } }, -EINVAL,
		"gpus: there is no GPU 4 among the 4 GPUs that launchd sees (NVML)", false },
	{ "a number that is too high for the launcher's list", &counted,
		{ "CUDA_VISIBLE_DEVICES=2" }, { { SET_GPUS, "2" } }, -EINVAL,
		"no GPU 2 among the 1 GPU that launchd sees (CUDA_VISIBLE_DEVICES=2)", false },
	{ "a number where there are none", &none, { NULL }, { { SET_GPUS, "0" } }, -EINVAL,
		"no GPU 0 among the 0 GPUs", false },
	{ "names", &four, { NULL }, { { SET_GPUS, "GPU-cc44,GPU-aa11" } }, 0, "GPU-cc44,GPU-aa11",
		false },
	{ "the beginning of a name", &four, { NULL }, { { SET_GPUS, "GPU-bb" } }, 0, "GPU-bb",
		false },
	{ "a beginning that two have", &four, { NULL }, { { SET_GPUS, "GPU-aa" } }, -EINVAL,
		"no GPU-aa among", false },
	{ "a name that none has", &four, { NULL }, { { SET_GPUS, "GPU-dd" } }, -EINVAL,
		"no GPU-dd among the 4 GPUs", false },
	{ "a name in a list of numbers", &four, { "CUDA_VISIBLE_DEVICES=2,0" },
		{ { SET_GPUS, "GPU-bb33" } }, 0, "GPU-bb33", false },
	{ "a name outside a list of numbers", &four, { "CUDA_VISIBLE_DEVICES=2,0" },
		{ { SET_GPUS, "GPU-cc44" } }, -EINVAL, "no GPU-cc44 among the 2 GPUs", false },
	{ "a name in a list of numbers that nobody can look up", &unknown,
		{ "CUDA_VISIBLE_DEVICES=2,0" }, { { SET_GPUS, "GPU-cc44" } }, -EINVAL,
		"whether GPU-cc44 is among CUDA_VISIBLE_DEVICES=2,0 isn't known", false },
	{ "a name that nobody can look up", &unknown, { NULL }, { { SET_GPUS, "GPU-cc44" } }, 0,
		"GPU-cc44", false },
	{ "a name in a list of names", &unknown, { "CUDA_VISIBLE_DEVICES=GPU-aa11,MIG-77" },
		{ { SET_GPUS, "MIG-77" } }, 0, "MIG-77", false },
	{ "a name outside a list of names", &unknown, { "CUDA_VISIBLE_DEVICES=GPU-aa11,MIG-77" },
		{ { SET_GPUS, "GPU-bb33" } }, -EINVAL, "no GPU-bb33 among the 2", false },
	{ "a MIG device", &four, { NULL }, { { SET_GPUS, "MIG-77" } }, 0, "MIG-77", false },
	{ "a MIG device in a list of numbers", &four, { "CUDA_VISIBLE_DEVICES=0" },
		{ { SET_GPUS, "MIG-77" } }, -EINVAL, "whether MIG-77 is among", false },
	{ "parts of Intel's", &of_intel, { NULL }, { { SET_GPUS, "0.0,0.1" } }, 0, "0.0,0.1",
		false },
	{ "parts in a mask", &of_intel, { "ZE_AFFINITY_MASK=0.1,1" }, { { SET_GPUS, "1.0,0.1" } },
		0, "1.0,0.1", false },
	{ "a part outside a mask", &of_intel, { "ZE_AFFINITY_MASK=0.1,1" }, { { SET_GPUS, "0.0" } },
		-EINVAL, "no 0.0 among", false },
	{ "numbers of a mask with parts", &of_intel, { "ZE_AFFINITY_MASK=0.0,0.1" },
		{ { SET_GPUS, "1" } }, 0, "0.1", false },
	{ "parts of NVIDIA's", &counted, { NULL }, { { SET_GPUS, "0.1" } }, -EINVAL,
		"for Intel's only", false },
	{ "Intel's can't be hidden", &of_intel, { NULL }, { { SET_VISIBLE_DEVICES, "none" } },
		-EINVAL, "hides all GPUs of Intel's", false },
};

static void test_sees(void **state)
{
	const struct sees_row *row = *state;
	struct settings_fixture b;
	struct visible v;
	int rc;

	settings_make(&b, row->put, 2);
	rc = visible_choose(&b.s, row->env, row->gpus, &v, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->all : NULL);
	if (rc == 0) {
		assert_string_equal(visible_all(&v, &b.arena), row->all);
		assert_true(v.known == !row->unknown);
	}
	settings_fixture_done(&b);
}

static const struct owns_row {
	const char *says;
	const struct gpus *gpus;
	const char *list; /* CUDA_VISIBLE_DEVICES=...; NULL: not set */
	struct put put[3];
	unsigned workers;
	const char *owns[4]; /* by local rank; NULL: too few */
	const char *part;    /* of the sentence then */
} owns[] = {
	{ "one each", &counted, NULL, { { SET_VISIBLE_DEVICES, "one" } }, 4, { "0", "1", "2", "3" },
		NULL },
	{ "two each", &counted, NULL, { { SET_GPUS_PER_WORKER, "2" } }, 2, { "0,1", "2,3" }, NULL },
	{ "of chosen ones", &counted, NULL, { { SET_GPUS, "3,1" } }, 2, { "3", "1" }, NULL },
	{ "of the launcher's list", &unknown, "CUDA_VISIBLE_DEVICES=GPU-a,MIG-b",
		{ { SET_VISIBLE_DEVICES, "one" } }, 2, { "GPU-a", "MIG-b" }, NULL },
	{ "numbers, where nobody counts", &unknown, NULL, { { SET_GPUS_PER_WORKER, "2" } }, 2,
		{ "0,1", "2,3" }, NULL },
	{ "fewer than workers", &counted, NULL, { { SET_VISIBLE_DEVICES, "one" } }, 5, { NULL },
		"5 workers need 5 GPUs, but there are 4 (NVML)" },
	{ "fewer than two each", &counted, NULL, { { SET_GPUS_PER_WORKER, "2" } }, 3, { NULL },
		"gpus-per-worker: 3 workers need 6 GPUs, but there are 4" },
	{ "fewer chosen ones", &counted, NULL, { { SET_GPUS, "0,1" } }, 3, { NULL },
		"gpus: 3 workers need 3 GPUs, but there are 2 (gpus): start fewer, or let them share" },
	{ "fewer in the launcher's list", &counted, "CUDA_VISIBLE_DEVICES=1",
		{ { SET_VIRTUAL_LOCAL_RANK, "1" } }, 2, { NULL },
		"virtual-local-rank: 2 workers need 2 GPUs, but there are 1 (CUDA_VISIBLE_DEVICES=1)" },
	{ "shared", &counted, NULL, { { SET_GPUS, "2,0" }, { SET_SHARE_GPUS, "1" } }, 4,
		{ "2", "0", "2", "0" }, NULL },
	{ "pairs that are shared", &counted, NULL,
		{ { SET_GPUS_PER_WORKER, "2" }, { SET_SHARE_GPUS, "1" } }, 3,
		{ "0,1", "2,3", "0,1" }, NULL },
	{ "shared, and one is left over", &counted, NULL,
		{ { SET_GPUS_PER_WORKER, "3" }, { SET_SHARE_GPUS, "1" } }, 2, { "0,1,2", "0,1,2" },
		NULL },
	{ "too few even to share", &counted, NULL,
		{ { SET_GPUS_PER_WORKER, "5" }, { SET_SHARE_GPUS, "1" } }, 1, { NULL },
		"a worker needs 5 GPUs, but there are 4" },
	{ "shared, and nobody counts", &unknown, NULL,
		{ { SET_VISIBLE_DEVICES, "one" }, { SET_SHARE_GPUS, "1" } }, 4, { NULL },
		"share-gpus: how many GPUs there are to share isn't known here" },
	{ "shared, and nobody asks or counts", &unknown, NULL, { { SET_SHARE_GPUS, "1" } }, 4,
		{ "0", "1" }, NULL },
	{ "nobody asks", &counted, NULL, { { 0 } }, 6, { "0", "1", "2", "3" }, NULL },
	{ "none are wanted", &none, NULL, { { SET_VISIBLE_DEVICES, "none" } }, 4, { "0" }, NULL },
};

static void test_owns(void **state)
{
	const struct owns_row *row = *state;
	const char *env[] = { row->list, NULL };
	struct settings_fixture b;
	struct visible v;
	int rc;

	settings_make(&b, row->put, 3);
	assert_outcome(visible_choose(&b.s, env, row->gpus, &v, &b.why), 0, &b.why, NULL);
	rc = visible_check(&b.s, &v, row->workers, &b.why);
	assert_outcome(rc, row->part ? -EINVAL : 0, &b.why, row->part);
	for (unsigned i = 0; i < 4 && row->owns[i]; i++)
		assert_string_equal(visible_own(&v, i, &b.arena), row->owns[i]);
	settings_fixture_done(&b);
}

/* As hwloc finds them, and NVML names them: one is another container's; the last two are AMD's. */
static const struct machine_gpu on_board[] = {
	{ GPU_NVIDIA, 0, "0000:1b:00.0", NULL, "GPU-aa11", 0 },
	{ GPU_NVIDIA, GPU_HIDDEN, "0000:2b:00.0", NULL, NULL, 0 },
	{ GPU_NVIDIA, 1, "0000:43:00.0", NULL, "GPU-aa22", 0 },
	{ GPU_NVIDIA, 2, "0000:9b:00.0", NULL, "GPU-bb33", 1 },
	{ GPU_NVIDIA, 3, "0000:c3:00.0", NULL, "GPU-cc44", 1 },
	{ GPU_AMD, 0, "0000:d3:00.0", NULL, NULL, 1 },
	{ GPU_AMD, 1, "0000:d4:00.0", NULL, NULL, 1 },
};

static const struct where_row {
	const char *says;
	const struct gpus *gpus;
	const char *env[2];
	const char *device;
	int gpu;
} wheres[] = {
	{ "a number is NVML's", &four, { NULL }, "1", 2 },
	{ "a name", &four, { NULL }, "GPU-bb33", 3 },
	{ "the beginning of a name", &four, { NULL }, "GPU-cc", 4 },
	{ "a beginning that two have", &four, { NULL }, "GPU-aa", MACHINE_NOWHERE },
	{ "a name that nobody knows", &four, { NULL }, "GPU-77", MACHINE_NOWHERE },
	{ "a MIG device as older drivers call it", &four, { NULL }, "MIG-GPU-aa22/1/0", 2 },
	{ "a MIG device", &four, { NULL }, "MIG-77", MACHINE_NOWHERE },
	{ "a number that is too high", &four, { NULL }, "4", MACHINE_NOWHERE },
	{ "a number that none has", &counted, { NULL }, "9", MACHINE_NOWHERE },
	{ "AMD's", &of_amd, { NULL }, "1", 6 },
	{ "AMD's within what its runtime leaves", &of_amd, { "ROCR_VISIBLE_DEVICES=1" }, "0", 6 },
	{ "AMD's outside of what its runtime leaves", &of_amd, { "ROCR_VISIBLE_DEVICES=1" }, "1",
		MACHINE_NOWHERE },
};

static void test_where(void **state)
{
	const struct where_row *row = *state;
	const struct machine m = { .gpus = (struct machine_gpu *)(uintptr_t)on_board,
		.gpu_count = sizeof on_board / sizeof *on_board };
	struct settings_fixture b;
	struct visible v;

	settings_fixture_make(&b, false);
	assert_int_equal(visible_choose(&b.s, row->env, row->gpus, &v, &b.why), 0);
	assert_int_equal(visible_gpu(&v, &m, row->device), row->gpu);
	settings_fixture_done(&b);
}

/* CUDA numbers GPUs of several models by speed. */
static void test_mixed(void **state)
{
	static const struct {
		const char *says, *order, *given, *device, *second;
		int gpu;
	} mixed[] = {
		{ "of one model", "X=1", NULL, "1", "A", 1 },
		{ "of two", "X=1", NULL, "1", "B", MACHINE_NOWHERE },
		{ "of two, by name", "X=1", NULL, "GPU-b", "B", 1 },
		{ "by the bus", CUDA_ORDER "=PCI_BUS_ID", NULL, "1", "B", 1 },
		{ "by the bus, as workers see it", "X=1", "PCI_BUS_ID", "1", "B", 1 },
		{ "by speed, as workers see it", CUDA_ORDER "=PCI_BUS_ID", "FASTEST_FIRST", "1",
			"B", MACHINE_NOWHERE },
		{ "a model that is not known", "X=1", NULL, "1", NULL, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
		const char *const env[] = { mixed[i].order, NULL };
		struct machine_gpu all[] = { { GPU_NVIDIA, 0, "0000:2b:00.0", "A", "GPU-a", 0 },
			{ GPU_NVIDIA, 1, "0000:43:00.0", mixed[i].second, "GPU-b", 0 } };
		const struct machine m = { .gpus = all, .gpu_count = 2 };
		struct env_change order = { .name = CUDA_ORDER, .value = mixed[i].given };
		struct settings_fixture b;
		struct visible v;

		settings_fixture_make(&b, false);
		b.s.env = mixed[i].given ? &order : NULL;
		assert_int_equal(visible_choose(&b.s, env, &counted, &v, &b.why), 0);
		if (visible_gpu(&v, &m, mixed[i].device) != mixed[i].gpu)
			fail_msg("%s", mixed[i].says);
		settings_fixture_done(&b);
	}
}

TESTS(visible)
{
	static struct suite s;

	suite_add(&s, "numbers of GPUs of several models", test_mixed, NULL, NULL);

	SUITE_ROWS(&s, test_sees, sees);
	SUITE_ROWS(&s, test_owns, owns);
	SUITE_ROWS(&s, test_where, wheres);
	return suite_run(&s);
}
