/* test_lists_gpus.c - lists of GPUs: numbers, ranges, parts and names. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "config/lists.h"

static const struct gpus_row {
	const char *says;
	const char *text;
	int rc;
	const char *entries; /* as read one by one; of "all" nothing is */
} rows[] = {
	{ "all", "all", 0, "" },
	{ "one", "3", 0, "3-3" },
	{ "numbers and ranges, in any order", "7,0-2,4", 0, "7-7 0-2 4-4" },
	{ "with blanks", "0, 2 ,4", 0, "0-0 2-2 4-4" },
	{ "names", "GPU-8f3a,MIG-5c21", 0, "[GPU-8f3a] [MIG-5c21]" },
	{ "a MIG device as older drivers call it", "MIG-GPU-8f3a/1/0", 0, "[MIG-GPU-8f3a/1/0]" },
	{ "parts", "0.0,0.1", 0, "[0.0] [0.1]" },
	{ "a comma at the end", "0,", 0, "0-0" },
	{ "nothing", "", -EINVAL, "" },
	{ "an empty entry", "0,,1", -EINVAL, NULL },
	{ "twice", "1,0,1", -EINVAL, NULL },
	{ "twice, in other words", "1,01", -EINVAL, NULL },
	{ "within a range", "0-3,2", -EINVAL, NULL },
	{ "a range over one", "2,0-3", -EINVAL, NULL },
	{ "a name twice", "GPU-a,GPU-b,GPU-a", -EINVAL, NULL },
	{ "a part twice", "0.1,0.1", -EINVAL, NULL },
	{ "numbers and names", "0,GPU-a", -EINVAL, NULL },
	{ "names and numbers", "GPU-a,0", -EINVAL, NULL },
	{ "a range that goes down", "3-1", -EINVAL, NULL },
	{ "a name that says nothing", "GPU-", -EINVAL, NULL },
	{ "a word", "one", -EINVAL, NULL },
	{ "all and one", "all,1", -EINVAL, NULL },
	{ "a negative number", "-1", -EINVAL, NULL },
	{ "half a part", "0.", -EINVAL, NULL },
	{ "a number that is none", "4096", -EINVAL, NULL },
};

static void test_gpus(void **state)
{
	const struct gpus_row *row = *state;
	const char *at = row->text, *name;
	struct text read = { 0 };
	struct range r;
	size_t len;
	int kind;

	assert_int_equal(gpus_check(row->text), row->rc);
	if (!row->entries || !*row->entries)
		return;
	while ((kind = gpus_next(&at, &r, &name, &len)) > 0) {
		text_add(&read, read.len ? " " : "");
		if (kind == 1)
			text_printf(&read, "%u-%u", (unsigned)r.first, (unsigned)r.last);
		else
			text_printf(&read, "[%.*s]", (int)len, name);
	}
	assert_int_equal(kind, 0);
	assert_string_equal(text_string(&read), row->entries);
	text_done(&read);
}

TESTS(lists_gpus)
{
	static struct suite s;

	SUITE_ROWS(&s, test_gpus, rows);
	return suite_run(&s);
}
