/* test_devices.c - lists of GPUs: how many CUDA shows, as torch.cuda.device_count() tells it, and
 * whose device is which. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/facts/devices.h"

static const struct visible_row {
	const char *says, *visible;
	unsigned present, count;
} visibles[] = {
	{ "not set: all", NULL, 4, 4 },
	{ "set to nothing: none", "", 4, 0 },
	{ "one", "2", 4, 1 },
	{ "several, in any order", "3,0,2", 4, 3 },
	{ "blanks around numbers", " 0 , 1 ", 4, 2 },
	{ "the list ends at a device that is not there", "0,4,1", 4, 1 },
	{ "the first is not there", "4,0", 4, 0 },
	{ "the list ends at -1", "0,-1,1", 4, 1 },
	{ "nothing but -1, as users hide all", "-1", 4, 0 },
	{ "no device anywhere", "0,1", 0, 0 },
	{ "a word hides all", "NoDevFiles", 4, 0 },
	{ "the list ends at an empty entry", "0,,1", 4, 1 },
	{ "a comma at the end", "0,1,", 4, 2 },
	{ "a repeated one empties the list", "0,1,0", 4, 0 },
	{ "repeated in another spelling", "1,01", 4, 0 },
	{ "a number far too large", "0,99999999999999999999", 4, 1 },
	{ "names", "GPU-aaaa,GPU-bbbb", 4, 2 },
	{ "a repeated name empties the list", "GPU-a,GPU-b,GPU-a", 4, 0 },
	{ "MIG devices are counted", "MIG-a,MIG-b,MIG-c", 1, 3 },
	{ "numbers end where names begin", "0,GPU-a", 4, 1 },
	{ "names end where numbers begin", "GPU-a,0", 4, 1 },
};

static void test_visible(void **state)
{
	const struct visible_row *row = *state;

	assert_int_equal(devices_visible(row->visible, row->present), row->count);
}

/* The entries, whatever they name: each worker gets one of them for its own. */
static const struct entries_row {
	const char *says, *list;
	const char *entries[4];
} entries[] = {
	{ "nothing", "", { NULL } },
	{ "a blank", " ", { NULL } },
	{ "one entry", "3", { "3" } },
	{ "several entries", "3,1,GPU-x", { "3", "1", "GPU-x" } },
	{ "blanks around entries", " 3 , MIG-y ", { "3", "MIG-y" } },
	{ "the same one again", "0,0", { "0", "0" } },
	{ "entries end at an empty one", "3,,1", { "3" } },
	{ "entries: a comma at the end", "3,1,", { "3", "1" } },
	{ "entries: a comma at the begin", ",3", { NULL } },
	{ "entries end at -1", "3,-1,2", { "3" } },
	{ "entries: -1 alone hides all", "-1", { NULL } },
};

static void test_entries(void **state)
{
	const struct entries_row *row = *state;
	struct arena a = { 0 };
	unsigned count = 0;

	for (; row->entries[count]; count++) {
		const char *entry = devices_nth(&a, row->list, count);

		assert_non_null(entry);
		assert_string_equal(entry, row->entries[count]);
	}
	assert_int_equal(devices_count(row->list), count);
	assert_null(devices_nth(&a, row->list, count));
	assert_null(devices_nth(&a, row->list, count + 1));
	arena_done(&a);
}

static const struct variable_row {
	const char *says;
	const char *env[4];
	enum gpu_maker here, maker;
	const char *variable, *list, *outer; /* list, outer NULL: not set */
} variables[] = {
	{ "none is set", { NULL }, GPU_NVIDIA, GPU_NVIDIA, "CUDA_VISIBLE_DEVICES", NULL, NULL },
	{ "none is set where AMD's GPUs are", { NULL }, GPU_AMD, GPU_AMD, "HIP_VISIBLE_DEVICES",
		NULL, NULL },
	{ "none is set where Intel's GPUs are", { NULL }, GPU_INTEL, GPU_INTEL, "ZE_AFFINITY_MASK",
		NULL, NULL },
	{ "CUDA's", { "CUDA_VISIBLE_DEVICES=1" }, GPU_NVIDIA, GPU_NVIDIA, "CUDA_VISIBLE_DEVICES",
		"1", NULL },
	{ "CUDA's, empty", { "CUDA_VISIBLE_DEVICES=" }, GPU_NVIDIA, GPU_NVIDIA,
		"CUDA_VISIBLE_DEVICES", "", NULL },
	{ "CUDA's, which HIP obeys", { "CUDA_VISIBLE_DEVICES=1" }, GPU_AMD, GPU_AMD,
		"CUDA_VISIBLE_DEVICES", "1", NULL },
	{ "AMD's comes first", { "CUDA_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=2" }, GPU_NVIDIA,
		GPU_AMD, "HIP_VISIBLE_DEVICES", "2", NULL },
	{ "AMD's, empty, does not", { "CUDA_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=" },
		GPU_NVIDIA, GPU_NVIDIA, "CUDA_VISIBLE_DEVICES", "1", NULL },
	{ "that of AMD's runtime is around HIP's", { "ROCR_VISIBLE_DEVICES=4,5" }, GPU_NVIDIA,
		GPU_AMD, "HIP_VISIBLE_DEVICES", NULL, "4,5" },
	{ "both of AMD's", { "ROCR_VISIBLE_DEVICES=4,5", "HIP_VISIBLE_DEVICES=1" }, GPU_NVIDIA,
		GPU_AMD, "HIP_VISIBLE_DEVICES", "1", "4,5" },
	{ "that of AMD's runtime, empty", { "ROCR_VISIBLE_DEVICES=" }, GPU_NVIDIA, GPU_NVIDIA,
		"CUDA_VISIBLE_DEVICES", NULL, NULL },
	{ "Intel's", { "ZE_AFFINITY_MASK=0.0" }, GPU_NVIDIA, GPU_INTEL, "ZE_AFFINITY_MASK", "0.0",
		NULL },
	{ "Intel's beside another's", { "ZE_AFFINITY_MASK=0", "CUDA_VISIBLE_DEVICES=1" },
		GPU_NVIDIA, GPU_NVIDIA, "CUDA_VISIBLE_DEVICES", "1", NULL },
	{ "another's where Intel's GPUs are", { "ZE_AFFINITY_MASK=0", "CUDA_VISIBLE_DEVICES=" },
		GPU_INTEL, GPU_INTEL, "ZE_AFFINITY_MASK", "0", NULL },
};

static void assert_maybe(const char *text, const char *expected)
{
	assert_true((text == NULL) == (expected == NULL));
	if (text)
		assert_string_equal(text, expected);
}

static void test_variable(void **state)
{
	const struct variable_row *row = *state;
	struct device_list l = devices_find(row->env, row->here);

	assert_int_equal(l.maker, row->maker);
	assert_string_equal(l.variable, row->variable);
	assert_maybe(l.list, row->list);
	assert_maybe(l.outer, row->outer);
}

TESTS(devices)
{
	static struct suite s;

	SUITE_ROWS(&s, test_visible, visibles);
	SUITE_ROWS(&s, test_entries, entries);
	SUITE_ROWS(&s, test_variable, variables);
	return suite_run(&s);
}
