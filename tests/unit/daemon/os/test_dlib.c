/* test_dlib.c - a library that is there, and what is said of one that is not. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "daemon/os/dlib.h"

struct functions {
	size_t (*length)(const char *text);
	int (*compare)(const char *a, const char *b);
};

static const struct dlib_symbol symbols[] = {
	{ "strlen", offsetof(struct functions, length), NULL },
	{ "strcoll", offsetof(struct functions, compare), NULL },
	{ NULL, 0, NULL },
};
static const struct dlib_symbol unknown[] = {
	{ "strlen", offsetof(struct functions, length), NULL },
	{ "no_such_function", offsetof(struct functions, compare), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib libc = { "the C library", "libc.so.6", "it is everywhere", symbols };

static void test_loads(void **state)
{
	struct failure why = { 0 };
	struct functions f = { 0 };
	void *library = NULL;

	(void)state;
	assert_outcome(dlib_open(&libc, NULL, &f, &library, &why), 0, &why, NULL);
	assert_int_equal(f.length("four"), 4);
	assert_true(f.compare("a", "b") < 0);
	assert_int_equal(dlclose(library), 0);
}

static size_t always_7(const char *text)
{
	(void)text;
	return 7;
}

/* As in a program that has the library linked in; one that is named is loaded all the same. */
static void test_linked(void **state)
{
	static const struct dlib_symbol in_here[] = {
		{ "strlen", offsetof(struct functions, length), (void (*)(void))always_7 },
		{ "strcoll", offsetof(struct functions, compare), (void (*)(void))strcmp },
		{ NULL, 0, NULL },
	};
	static const struct dlib d = { "Nothing", "libnothing.so.0", "get it", in_here };
	struct failure why = { 0 };
	struct functions f = { 0 };
	void *library = &f;

	(void)state;
	assert_outcome(dlib_open(&d, NULL, &f, &library, &why), 0, &why, NULL);
	assert_null(library);
	assert_int_equal(f.length("four"), 7);
	assert_true(f.compare("a", "b") < 0);
	assert_outcome(dlib_open(&d, "libc.so.6", &f, &library, &why), 0, &why, NULL);
	assert_int_equal(f.length("four"), 4);
	assert_int_equal(dlclose(library), 0);
}

static const struct refused_row {
	const char *says;
	struct dlib library;
	const char *file;
	int rc;
	const char *part;
} refused[] = {
	{ "a library that is not installed", { "Nothing", "libnothing.so.0", "get it", symbols },
		NULL, -ELIBACC, "Nothing: libnothing.so.0: cannot open" },
	{ "the hint is said", { "Nothing", "libnothing.so.0", "get it", symbols }, NULL, -ELIBACC,
		" (get it)" },
	{ "a file that is no library", { "C", "libc.so.6", "get it", symbols }, "/etc/passwd",
		-ELIBACC, "C: /etc/passwd: " },
	{ "a library that is another one, or older", { "C", "libc.so.6", "get it", unknown }, NULL,
		-ELIBBAD, "C: libc.so.6 has no no_such_function (get it)" },
};

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	struct functions f = { 0 }, untouched = { 0 };
	struct failure why = { 0 };
	void *library = NULL;

	assert_outcome(
		dlib_open(&row->library, row->file, &f, &library, &why), row->rc, &why, row->part);
	assert_memory_equal(&f, &untouched, sizeof f);
	assert_null(library);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "its functions are found", test_loads, NULL, NULL);
	suite_add(&s, "those that are linked in are taken", test_linked, NULL, NULL);
	SUITE_ROWS(&s, test_refused, refused);
	return suite_run(&s);
}
