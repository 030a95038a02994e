/* test_lines_memory.c - what a stream costs that is cut into lines, and what becomes of it where
 * there is no memory. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <string.h>

#include "tests/unit/daemon/output/console/lines_fixture.h"

static const struct lines_style prefixed = {
	.prefix = "[0]:", .prefix_len = 4, .held_max = HELD_MAX
};

/* A bar of 16 MB without a newline is held in some hundred bytes, and a long line gives its memory
 * back. */
static void test_memory(void **state)
{
	struct text bar = { 0 }, line = lines_unfold("L", 1);
	struct sink c;
	struct lines l = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1024; i++)
		text_printf(&bar, "\r%4u/1024 [%-40.*s]", i, (int)(i / 26), "#################");
	sink_make(&c);
	for (unsigned i = 0; i < (16u << 20) / bar.len; i++) {
		sink_take(&c, &l, bar.at, bar.len, 4096 + i, &prefixed);
		assert_true(l.len <= 60 && l.room <= 1024);
	}
	sink_take(&c, &l, "\n", 1, 1, &prefixed);
	sink_write(&c, SIZE_MAX);
	assert_string_equal(
		text_string(&c.got), "[0]:1023/1024 [#################                       ]\n");
	assert_true(l.room > 0); /* the next one needs some, too */

	sink_take(&c, &l, line.at, line.len, 1000, &prefixed);
	assert_int_equal(l.room, HELD_MAX);
	sink_take(&c, &l, "\n", 1, 1, &prefixed);
	assert_true(l.room == 0 && !l.held);
	sink_take(&c, &l, line.at, line.len, 1000, &prefixed);
	sink_take(&c, &l, "x", 1, 1, &prefixed);
	assert_true(l.open && l.room == 0);
	lines_done(&l);
	sink_done(&c);
	text_done(&bar);
	text_done(&line);
}

/* Linked with --wrap: realloc() fails once `memory` of them are used up. Volatile: compilers
 * know that realloc() looks at no variable of ours. */
static volatile unsigned memory = UINT_MAX;

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
	if (memory == 0)
		return NULL;
	if (memory < UINT_MAX)
		memory--;
	return __real_realloc(at, size);
}

static const struct oom_row {
	const char *says;
	unsigned memory;
	const char *first, *second, *out;
} ooms[] = {
	{ "no memory: what can't be held goes out at once", 0, "a\nbc", "d\ne\n",
		"[0]:a\n[0]:bcd\n[0]:e\n" },
	{ "no memory: a bar goes out as it is", 0, "1\r2", "\r3\n4\n", "[0]:1\r2\r3\n[0]:4\n" },
	{ "no memory for more: what is held goes out with it", 1, "a", "L\ne\n",
		"[0]:aL\n[0]:e\n" },
	{ "no memory for more: what a longer state wipes out does not", 1, "a\r", "L", "[0]:L\n" },
	{ "no memory to hold is needed for whole lines", 0, "a\n1\r2\nL\n", "\n\r\n",
		"[0]:a\n[0]:2\n[0]:L\n[0]:\n[0]:\n" },
};

static void test_oom(void **state)
{
	const struct oom_row *row = *state;
	struct text second = lines_unfold(row->second, strlen(row->second)),
		    first = lines_unfold(row->first, strlen(row->first)),
		    expected = lines_unfold(row->out, strlen(row->out));
	struct sink c;
	struct lines l = { 0 };
	size_t taken;

	sink_make(&c);
	memory = row->memory;
	taken = lines_take(&l, first.at, first.len, &prefixed, &c.out);
	memory = UINT_MAX;
	assert_int_equal(taken, first.len);
	sink_write(&c, SIZE_MAX);
	memory = 0;
	taken = lines_take(&l, second.at, second.len, &prefixed, &c.out);
	memory = UINT_MAX;
	assert_int_equal(taken, second.len);
	sink_end(&c, &l, &prefixed);
	assert_true(text_is(&c.got, &expected));
	lines_done(&l);
	sink_done(&c);
	text_done(&first);
	text_done(&second);
	text_done(&expected);
}

TESTS(lines_memory)
{
	static struct suite s;

	SUITE_ROWS(&s, test_oom, ooms);
	suite_add(&s, "a bar of 16 MB and a long line leave no memory", test_memory, NULL, NULL);
	return suite_run(&s);
}
