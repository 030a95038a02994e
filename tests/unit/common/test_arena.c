/* test_arena.c - memory in one piece: alignment, sticky failure, marks. */
#include "tests/unit/unit.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

static void test_zeroed(void **state)
{
	struct arena a = { 0 };
	const size_t sizes[] = { 1, 7, 16, 4096, 16384, 100000, 0, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		unsigned char *p = arena_alloc(&a, sizes[i]);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xa5, sizes[i]); /* ASan and valgrind see a size that is too small */
	}
	assert_false(arena_failed(&a));
	arena_done(&a);
}

static void test_apart(void **state)
{
	struct arena a = { 0 };
	char *first = arena_strdup(&a, "first"), *second = arena_strndup(&a, "second", 3);

	(void)state;
	assert_string_equal(first, "first");
	assert_string_equal(second, "sec");
	assert_string_equal(arena_printf(&a, "%s-%d", first, 42), "first-42");
	assert_string_equal(arena_strdup(&a, ""), "");
	assert_string_equal(first, "first");
	arena_done(&a);
}

static void test_sticky(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_true(arena_failed(&a));
	assert_string_equal(arena_strdup(&a, "more"), "more"); /* still works, still failed */
	assert_true(arena_failed(&a));
	arena_done(&a);
	assert_false(arena_failed(&a));
}

static void test_sticky_block(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_null(arena_alloc(&a, SIZE_MAX - 20)); /* no room left for the block's head */
	assert_true(arena_failed(&a));
	arena_done(&a);
}

static void test_rewind(void **state)
{
	struct arena a = { 0 };
	struct arena_mark mark;
	char *kept, *first, *again;

	(void)state;
	kept = arena_strdup(&a, "kept");
	mark = arena_mark(&a);
	first = arena_strdup(&a, "first");
	arena_rewind(&a, mark);
	again = arena_alloc(&a, 6);
	assert_ptr_equal(first, again); /* given back, and zeroed when handed out again */
	assert_int_equal(again[0], 0);
	assert_string_equal(kept, "kept");
	arena_done(&a);
}

static void test_rewind_blocks(void **state)
{
	struct arena a = { 0 };
	const struct arena_mark empty = arena_mark(&a);
	struct arena_mark mark;

	(void)state;
	(void)arena_strdup(&a, "kept");
	mark = arena_mark(&a);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_alloc(&a, 5000));
	assert_ptr_not_equal(a.last, mark.last);
	arena_rewind(&a, mark);
	assert_ptr_equal(a.last, mark.last);
	arena_rewind(&a, empty);
	assert_null(a.last);
	arena_done(&a);
}

TESTS(arena)
{
	static struct suite s;

	suite_add(&s, "memory is zeroed, aligned and of its size", test_zeroed, NULL, NULL);
	suite_add(&s, "strings don't overlap", test_apart, NULL, NULL);
	suite_add(&s, "failure is sticky until all is freed", test_sticky, NULL, NULL);
	suite_add(&s, "a size near the largest fails", test_sticky_block, NULL, NULL);
	suite_add(&s, "what came after a mark is given back", test_rewind, NULL, NULL);
	suite_add(&s, "whole blocks are given back", test_rewind_blocks, NULL, NULL);
	return suite_run(&s);
}
