/* test_gpu.c - how many devices CUDA shows, as torch.cuda.device_count() tells it. */
#include "tests/unit/unit.h"

#include "daemon/facts/gpu.h"

static const struct gpu_row {
	const char *says, *visible;
	unsigned present, count;
} rows[] = {
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
	const struct gpu_row *row = *state;

	assert_int_equal(gpu_visible(row->visible, row->present), row->count);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_visible, rows);
	return suite_run(&s);
}
