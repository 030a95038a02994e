/* test_notes.c - notes stay in their order. */
#include "tests/unit/unit.h"

#include <string.h>

static void test_order(void **state)
{
	struct arena a = { 0 };
	struct notes n = { .arena = &a };
	const struct note *note;

	(void)state;
	for (int i = 0; i < 3; i++)
		notes_add(&n, (enum note_level)i, "note %d", i);
	note = n.first;
	for (int i = 0; i < 3; i++, note = note->next) {
		assert_int_equal(note->level, i);
		assert_string_equal(note->text, arena_printf(&a, "note %d", i));
	}
	assert_null(note);
	arena_done(&a);
}

TESTS(notes)
{
	static struct suite s;

	suite_add(&s, "notes keep their order, level and text", test_order, NULL, NULL);
	return suite_run(&s);
}
