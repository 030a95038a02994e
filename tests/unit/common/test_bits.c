/* test_bits.c - sets of numbers, as text and back. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/bits.h"

static const struct text_row {
	const char *says, *text;
	const char *back; /* NULL: it isn't a list */
	unsigned count;
} texts[] = {
	{ "one number", "5", "5", 1 },
	{ "a range", "0-3", "0-3", 4 },
	{ "a list", "0-3,16-19", "0-3,16-19", 8 },
	{ "neighbours become a range", "1,0,2", "0-2", 3 },
	{ "numbers that are there twice", "4,2-5,5", "2-5", 4 },
	{ "over the end of a word", "62-65,127,128", "62-65,127-128", 6 },
	{ "a range of one", "7-7", "7", 1 },
	{ "the highest", "16383", "16383", 1 },
	{ "beyond it", "16384", NULL, 0 },
	{ "backwards", "3-1", NULL, 0 },
	{ "nothing", "", NULL, 0 },
	{ "an empty entry", "1,,2", NULL, 0 },
	{ "a comma at the end", "1,", NULL, 0 },
	{ "half a range", "1-", NULL, 0 },
	{ "the other half", "-1", NULL, 0 },
	{ "a word", "all", NULL, 0 },
	{ "a blank", "1, 2", NULL, 0 },
	{ "several lists", "1:2", NULL, 0 },
	{ "a number that no integer holds", "99999999999999999999", NULL, 0 },
};

static void test_text(void **state)
{
	const struct text_row *row = *state;
	struct arena arena = { 0 };
	struct bits b = { 0 };

	assert_int_equal(
		bits_parse(row->text, strlen(row->text), &arena, &b), row->back ? 0 : -EINVAL);
	assert_string_equal(bits_text(&b, &arena), row->back ? row->back : "");
	assert_int_equal(bits_count(&b), row->count);
	assert_int_equal(bits_are_empty(&b), !row->back);
	arena_done(&arena);
}

static void test_lists(void **state)
{
	struct arena arena = { 0 };
	struct bits b;

	(void)state;
	assert_int_equal(bits_lists("0-3,16:4-7:8"), 3);
	assert_int_equal(bits_lists("0"), 1);
	assert_int_equal(bits_lists("0:"), -EINVAL);
	assert_int_equal(bits_lists(":0"), -EINVAL);
	assert_int_equal(bits_lists("0;1"), -EINVAL);
	assert_int_equal(bits_lists(""), -EINVAL);
	b = bits_nth("0-3,16:4-7:8", 1, &arena);
	assert_string_equal(bits_text(&b, &arena), "4-7");
	b = bits_nth("0-3,16:4-7:8", 5, &arena);
	assert_string_equal(bits_text(&b, &arena), "8");
	arena_done(&arena);
}

static void test_sets(void **state)
{
	struct arena arena = { 0 };
	struct bits a = bits_make(&arena, 70), b = bits_make(&arena, 200), none = { 0 };

	(void)state;
	bits_add(&a, 3);
	bits_add(&a, 69);
	bits_add(&a, 5000); /* no room */
	assert_int_equal(bits_count(&a), 2);
	assert_true(bits_have(&a, 69));
	assert_false(bits_have(&a, 5000) || bits_have(&a, 4));
	assert_int_equal(bits_next(&a, 0), 3);
	assert_int_equal(bits_next(&a, 3), 3);
	assert_int_equal(bits_next(&a, 4), 69);
	assert_int_equal(bits_next(&a, 70), -1);
	bits_add(&b, 69);
	bits_add(&b, 199);
	assert_true(bits_meet(&a, &b));
	assert_false(bits_meet(&a, &none) || bits_meet(&none, &none));
	assert_int_equal(bits_outside(&a, &b), 3);
	assert_int_equal(bits_outside(&b, &a), 199);
	assert_int_equal(bits_outside(&b, &b), -1);
	assert_int_equal(bits_outside(&none, &b), -1);
	arena_done(&arena);
}

TESTS(bits)
{
	static struct suite s;

	SUITE_ROWS(&s, test_text, texts);
	suite_add(&s, "several lists in a text", test_lists, NULL, NULL);
	suite_add(&s, "sets and their numbers", test_sets, NULL, NULL);
	return suite_run(&s);
}
