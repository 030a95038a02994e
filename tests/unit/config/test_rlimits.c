/* test_rlimits.c - lists of resource limits: names, values, and what is wrong with them. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "common/text.h"
#include "config/rlimits.h"

static const struct limits_row {
	const char *says;
	const char *text;
	int rc;
	const char *shown; /* what rlimits_add() makes of it again, or a part of the sentence */
} rows[] = {
	{ "one value is both limits", "nofile=65536", 0, "nofile=65536" },
	{ "two values", "nofile=1024:65536", 0, "nofile=1024:65536" },
	{ "none", "memlock=unlimited", 0, "memlock=unlimited" },
	{ "none, as systemd says it", "memlock=Infinity", 0, "memlock=unlimited" },
	{ "none, as Docker says it", "memlock=-1:-1", 0, "memlock=unlimited" },
	{ "a soft one below none", "core=0:unlimited", 0, "core=0:unlimited" },
	{ "C's name", "RLIMIT_NPROC=5", 0, "nproc=5" },
	{ "Slurm's name", "STACK=8m", 0, "stack=8388608" },
	{ "bytes", "as=2T", 0, "as=2199023255552" },
	{ "several, with blanks", "core=0, cpu=60 ,rttime=9", 0, "core=0,cpu=60,rttime=9" },
	{ "a comma at the end", "core=0,", 0, "core=0" },
	{ "the most", "fsize=9223372036854775807", 0, "fsize=9223372036854775807" },
	{ "more than the most", "fsize=9223372036854775808", -EINVAL, "fsize=N" },
	{ "more than the most, by its unit", "fsize=8388608T", -EINVAL, "with K, M, G or T" },
	{ "no number", "core=big", -EINVAL, "--x: \"core=big\" is not core=N" },
	{ "half of two values", "core=1:", -EINVAL, "core=SOFT:HARD" },
	{ "the other half", "core=:1", -EINVAL, "core=SOFT:HARD" },
	{ "a unit alone", "core=K", -EINVAL, "core=N" },
	{ "a unit of what isn't bytes", "nofile=1K", -EINVAL, "nofile=N" },
	{ "a negative number", "core=-2", -EINVAL, "core=N" },
	{ "the soft one above the hard one", "core=2:1", -EINVAL, "soft limit above" },
	{ "no soft one below a hard one", "core=unlimited:1", -EINVAL, "soft limit above" },
	{ "twice", "cpu=1,nofile=3,CPU=2", -EINVAL, "cpu is there twice" },
	{ "a misspelled name", "memlok=1", -EINVAL, "did you mean memlock?" },
	{ "another name", "files=1", -EINVAL, "\"files\" is not a resource limit" },
	{ "no name", "=1", -EINVAL, "\"\" is not a resource limit" },
	{ "nothing between commas", "core=1,,cpu=1", -EINVAL, "\"\" is not a resource limit" },
};

static void test_limits(void **state)
{
	const struct limits_row *row = *state;
	struct rlimits limits = { 0 };
	struct failure why = { 0 };
	struct arena a = { 0 };
	struct text shown = { 0 };
	int rc = rlimits_parse(row->text, "--x", &a, &limits, &why);

	assert_outcome(rc, row->rc, &why, rc < 0 ? row->shown : NULL);
	for (size_t i = 0; i < limits.count; i++) {
		text_add(&shown, i > 0 ? "," : "");
		rlimits_add(&limits.at[i], &shown);
	}
	assert_string_equal(text_string(&shown), rc < 0 ? "" : row->shown);
	text_done(&shown);
	arena_done(&a);
}

TESTS(rlimits)
{
	static struct suite s;

	SUITE_ROWS(&s, test_limits, rows);
	return suite_run(&s);
}
