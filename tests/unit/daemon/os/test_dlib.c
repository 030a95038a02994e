/* test_dlib.c - a library that is there, and what is said of one that is not. */
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
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

#define LIBRARY(its_name, its_file, its_hint, its_symbols) \
	{ \
		.name = its_name, .file = its_file, .hint = its_hint, .symbols = its_symbols \
	}

static const struct dlib libc = {
	.name = "the C library",
	.file = "libc.so.6",
	.hint = "it is everywhere",
	.symbols = symbols,
	.version = { "gnu_get_libc_version", 0, NULL },
	.home = "LAUNCHD_TEST_HOME",
};

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

/* Only of what is optional may something be missing. */
static void test_optional(void **state)
{
	static const struct dlib_symbol length[] = {
		{ "strlen", offsetof(struct functions, length), NULL },
		{ NULL, 0, NULL },
	};
	static const struct dlib_symbol none[] = {
		{ "no_such_function", offsetof(struct functions, compare), NULL },
		{ NULL, 0, NULL },
	};
	static const struct dlib_symbol there[] = {
		{ "strcoll", offsetof(struct functions, compare), NULL },
		{ NULL, 0, NULL },
	};
	struct dlib d = { .name = "C", .file = "libc.so.6", .symbols = length, .optional = none };
	struct functions f = { .compare = strcmp };
	struct failure why = { 0 };
	void *library = NULL;

	(void)state;
	assert_outcome(dlib_open(&d, NULL, &f, &library, &why), 0, &why, NULL);
	assert_int_equal(f.length("four"), 4);
	assert_null(f.compare);
	assert_int_equal(dlclose(library), 0);
	d.optional = there;
	assert_outcome(dlib_open(&d, NULL, &f, &library, &why), 0, &why, NULL);
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
	static const struct dlib d = LIBRARY("Nothing", "libnothing.so.0", "get it", in_here);
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
	{ "a library that is not installed",
		LIBRARY("Nothing", "libnothing.so.0", "get it", symbols), NULL, -ELIBACC,
		"Nothing: libnothing.so.0: cannot open" },
	{ "the hint is said", LIBRARY("Nothing", "libnothing.so.0", "get it", symbols), NULL,
		-ELIBACC, " (get it)" },
	{ "a file that is no library", LIBRARY("C", "libc.so.6", "get it", symbols), "/etc/passwd",
		-ELIBACC, "C: /etc/passwd: " },
	{ "a library that is another one, or older", LIBRARY("C", "libc.so.6", "get it", unknown),
		NULL, -ELIBBAD, "C: libc.so.6 has no no_such_function (get it)" },
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

static const char *always_8(void)
{
	return "8.1 (of yesterday)";
}

/* What is found, and its version. */
static void test_described(void **state)
{
	static const struct dlib_symbol in_here[] = {
		{ "strlen", offsetof(struct functions, length), (void (*)(void))always_7 },
		{ NULL, 0, NULL },
	};
	static const struct dlib linked = {
		.name = "Linked",
		.symbols = in_here,
		.version = { "version", 0, (void (*)(void))always_8 },
	};
	static const struct dlib absent = LIBRARY("Nothing", "libnothing.so.0", "get it", symbols);
	struct failure why = { 0 };
	struct text out = { 0 };
	char loaded[64];

	(void)state;
	assert_outcome(dlib_describe(&linked, &out, &why), 0, &why, NULL);
	assert_string_equal(text_string(&out), "8.1, linked in");
	text_done(&out);
	assert_outcome(dlib_describe(&libc, &out, &why), 0, &why, NULL);
	(void)snprintf(loaded, sizeof loaded, "%s, /", gnu_get_libc_version());
	assert_memory_equal(text_string(&out), loaded, strlen(loaded));
	assert_non_null(strstr(text_string(&out), "/libc.so.6"));
	text_done(&out);
	assert_outcome(dlib_describe(&absent, &out, &why), -ELIBACC, &why, "libnothing.so.0");
	assert_int_equal(out.len, 0);
}

/* A directory that a variable names goes first, if the library is there. It is one that neither the
 * program nor a sanitizer has loaded already: for the loader a link to such a one is the same. */
static void test_home(void **state)
{
	static const struct dlib_symbol size[] = { { "__ctype_get_mb_cur_max", 0, NULL },
		{ NULL, 0, NULL } };
	static const struct dlib locale = {
		.name = "libBrokenLocale",
		.file = "libBrokenLocale.so.1",
		.hint = "get it",
		.symbols = size,
		.home = "LAUNCHD_TEST_HOME",
	};
	char dir[] = "/tmp/launchd-test-XXXXXX", lib[64], file[96], real[PATH_MAX];
	struct failure why = { 0 };
	struct text out = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(lib, sizeof lib, "%s/lib64", dir);
	(void)snprintf(file, sizeof file, "%s/libBrokenLocale.so.1", lib);
	assert_int_equal(mkdir(lib, 0700), 0);
	assert_int_equal(setenv("LAUNCHD_TEST_HOME", dir, 1), 0);
	assert_outcome(dlib_describe(&locale, &out, &why), 0, &why, NULL);
	(void)snprintf(real, sizeof real, "%s", text_string(&out));
	text_done(&out);
	assert_int_equal(symlink(real, file), 0);
	assert_outcome(dlib_describe(&locale, &out, &why), 0, &why, NULL);
	assert_string_equal(text_string(&out), file);
	text_done(&out);
	assert_int_equal(unsetenv("LAUNCHD_TEST_HOME"), 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(lib), 0);
	assert_int_equal(rmdir(dir), 0);
}

TESTS(dlib)
{
	static struct suite s;

	suite_add(&s, "of what is optional something may be missing", test_optional, NULL, NULL);
	suite_add(&s, "its functions are found", test_loads, NULL, NULL);
	suite_add(&s, "those that are linked in are taken", test_linked, NULL, NULL);
	suite_add(&s, "it is described", test_described, NULL, NULL);
	suite_add(&s, "a variable says where to look first", test_home, NULL, NULL);
	SUITE_ROWS(&s, test_refused, refused);
	return suite_run(&s);
}
