/* test_torch_version.c - what torch/version.py says, and what its versions mean. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/torch_version.h"

static const struct find_row {
	const char *says, *file, *version; /* version NULL: none */
} finds[] = {
	{ "as a wheel has it",
		"from typing import Optional\n\n__all__ = ['__version__', 'debug']\n"
		"__version__ = '2.15.0+cu132'\ndebug = False\n",
		"2.15.0+cu132" },
	{ "as Debian has it", "__version__ = '1.13.0a0'\ndebug = False\n", "1.13.0a0" },
	{ "with a type, and other quotes", "__version__: str = \"2.2.0\"\n", "2.2.0" },
	{ "without blanks, without a line's end", "__version__='2.2'", "2.2" },
	{ "with a carriage return", "__version__ = '2.2'\r\n", "2.2" },
	{ "the first line counts", "__version__ = '2.2'\n__version__ = '2.3'\n", "2.2" },
	{ "within a line it is none", "x = __version__ = '2.2'\n", NULL },
	{ "another name", "__version__info__ = '2.2'\n", NULL },
	{ "a call", "__version__ = get_version()\n", NULL },
	{ "no value", "__version__ =\n'2.2'\n", NULL },
	{ "no value at all", "__version__", NULL },
	{ "an open quote", "__version__ = '2.2\n'", NULL },
	{ "two kinds of quotes", "__version__ = '2.2\"\n", NULL },
	{ "an empty version", "__version__ = ''\n", NULL },
	{ "letters that no version has", "__version__ = '2.2\\n'\n", NULL },
	{ "a version of 64 letters",
		"__version__ = "
		"'2.0123456789012345678901234567890123456789012345678901234567890123'\n",
		NULL },
	{ "an empty file", "", NULL },
};

static void test_find(void **state)
{
	const struct find_row *row = *state;
	char version[TORCH_VERSION_SIZE] = "untouched";
	int rc = torch_version_find(row->file, version);

	assert_int_equal(rc, row->version ? 0 : -EINVAL);
	assert_string_equal(version, row->version ? row->version : "untouched");
}

static const struct since_row {
	const char *says, *version;
	bool is;
} sinces[] = {
	{ "that release", "2.2.0", true },
	{ "its pre-release, with a build's name", "2.2.0a0+git1a2b3c", true },
	{ "a later one, whose minor is no digit's", "2.15.0+cu132", true },
	{ "the next major one", "3.0", true },
	{ "the one before", "2.1.2", false },
	{ "a lower major one with a higher minor", "1.13.1", false },
	{ "one that is not known", NULL, false },
	{ "what is no version", "git1a2b3c", false },
};

static void test_since(void **state)
{
	const struct since_row *row = *state;

	assert_int_equal(torch_version_since(row->version, 2, 2), row->is);
}

TESTS(torch_version)
{
	static struct suite s;

	SUITE_ROWS(&s, test_find, finds);
	SUITE_ROWS(&s, test_since, sinces);
	return suite_run(&s);
}
