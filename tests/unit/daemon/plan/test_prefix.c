/* test_prefix.c - what stands before lines, and times in it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/plan/prefix.h"

static const struct prefix_values values = { .role_name = "default",
	.hostname = "node-a",
	.local_rank = 12,
	.rank = 4294967295,
	.node_rank = 3,
	.fd = 2,
	.wall_ns = 1795244412345678901 };

static const struct prefix_row {
	const char *says, *template, *prefix;
	bool has_time;
} prefixes[] = {
	{ "torchrun's own", "[${role_name}${local_rank}]:", "[default12]:", false },
	{ "nothing", "", "", false },
	{ "no macro", "> ", "> ", false },
	{ "all of them", "$role_name $local_rank $rank $hostname $node_rank $stream $time",
		"default 12 4294967295 node-a 3 stderr 2026-11-21T07:00:12.345Z", true },
	{ "braced", "${rank}|${hostname}|${node_rank}|${stream}|${time}|",
		"4294967295|node-a|3|stderr|2026-11-21T07:00:12.345Z|", true },
	{ "macros that nobody knows stay", "$pid ${gpu} $timed $", "$pid ${gpu} $timed $", false },
	{ "a time that is none", "$$time ${time", "$time ${time", false },
};

static void test_prefix(void **state)
{
	const struct prefix_row *row = *state;
	struct prefix_values v = values;
	struct text out = { 0 };

	text_add(&out, "of before");
	assert_int_equal(prefix_render(row->template, &v, &out), 0);
	assert_string_equal(text_string(&out), row->prefix);
	assert_int_equal(out.len, strlen(row->prefix));
	assert_int_equal(prefix_has_time(row->template), row->has_time);
	v.fd = 1;
	assert_int_equal(prefix_render("$stream", &v, &out), 0);
	assert_string_equal(text_string(&out), "stdout");
	text_done(&out);
}

/* A line and its prefix fit into the console's buffer: no prefix is longer than lines.h wants it.
 */
static void test_long(void **state)
{
	static char template[2 * PREFIX_MAX];
	struct text out = { 0 };

	(void)state;
	memset(template, 'x', PREFIX_MAX);
	assert_int_equal(prefix_render(template, &values, &out), 0);
	assert_int_equal(out.len, PREFIX_MAX);
	assert_string_equal(out.at, template);
	template[PREFIX_MAX] = 'x';
	assert_int_equal(prefix_render(template, &values, &out), 0);
	assert_int_equal(strlen(out.at), PREFIX_MAX);
	assert_int_equal(out.len, PREFIX_MAX);
	for (size_t before = 1; before <= 4; before++) {
		memcpy(template + PREFIX_MAX - before, "\xf0\x9f\x98\x80$rank", 10);
		assert_int_equal(prefix_render(template, &values, &out), 0);
		assert_int_equal(out.len, before == 4 ? PREFIX_MAX : PREFIX_MAX - before);
	}
	/* not UTF-8: there is no better place */
	memset(template, 0x80, sizeof template - 1);
	assert_int_equal(prefix_render(template, &values, &out), 0);
	assert_int_equal(out.len, PREFIX_MAX - 3);
	text_done(&out);
}

static void test_oom(void **state)
{
	struct text out = { .failed = true };

	(void)state;
	assert_int_equal(prefix_render("a", &values, &out), -ENOMEM);
	assert_string_equal(text_string(&out), "");
	assert_int_equal(prefix_render("a", &values, &out), 0); /* there is some again */
	assert_string_equal(text_string(&out), "a");
	text_done(&out);
}

static const struct time_row {
	const char *says;
	int64_t wall_ns;
	const char *time;
} times[] = {
	{ "the epoch", 0, "1970-01-01T00:00:00.000Z" },
	{ "less than a millisecond", 999999, "1970-01-01T00:00:00.000Z" },
	{ "a millisecond", 1000000, "1970-01-01T00:00:00.001Z" },
	{ "just before the epoch", -1, "1969-12-31T23:59:59.999Z" },
	{ "a day before", -86400000000000, "1969-12-31T00:00:00.000Z" },
	{ "an example", 1795244412345678901, "2026-11-21T07:00:12.345Z" },
	{ "a leap day", 1709251199999999999, "2024-02-29T23:59:59.999Z" },
	{ "the day behind it", 1709251200000000000, "2024-03-01T00:00:00.000Z" },
	{ "a year of 400", 951782400000000000, "2000-02-29T00:00:00.000Z" },
	{ "a year of 100 without leap day", 4107542400000000000, "2100-03-01T00:00:00.000Z" },
	{ "the last one", INT64_MAX, "2262-04-11T23:47:16.854Z" },
	{ "the first one", INT64_MIN, "1677-09-21T00:12:43.145Z" },
};

static void test_time(void **state)
{
	const struct time_row *row = *state;
	char text[PREFIX_TIME_SIZE];

	prefix_time(row->wall_ns, text);
	assert_string_equal(text, row->time);
}

/* The names that are said to be known are those that are replaced. */
static void test_names(void **state)
{
	char names[] = PREFIX_NAMES;
	size_t count = 0;

	(void)state;
	for (char *at = names, *name; (name = strtok_r(at, "|", &at)); count++) {
		char template[64];
		struct text out = { 0 };

		(void)snprintf(template, sizeof template, "${%s}", name);
		assert_int_equal(prefix_render(template, &values, &out), 0);
		assert_null(strchr(text_string(&out), '$'));
		text_done(&out);
	}
	assert_int_equal(count, 7);
}

/* Every day that 64 bits of nanoseconds reach, against the C library. */
static void test_days(void **state)
{
	(void)state;
	for (int64_t day = INT64_MIN / 86400000000000; day <= INT64_MAX / 86400000000000; day++) {
		time_t s = day * 86400 + (day * 7919 % 86400 + 86400) % 86400 * (day < 106751);
		char text[PREFIX_TIME_SIZE], expected[64];
		struct tm tm;

		assert_non_null(gmtime_r(&s, &tm));
		assert_true(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000Z", &tm) > 0);
		prefix_time(s * 1000000000, text);
		assert_string_equal(text, expected);
	}
}

TESTS(prefix)
{
	static struct suite s;

	SUITE_ROWS(&s, test_prefix, prefixes);
	SUITE_ROWS(&s, test_time, times);
	suite_add(&s, "a long prefix is cut between characters", test_long, NULL, NULL);
	suite_add(&s, "no memory for a prefix", test_oom, NULL, NULL);
	suite_add(&s, "the names that a template may have", test_names, NULL, NULL);
	suite_add(&s, "every day is that of the C library", test_days, NULL, NULL);
	return suite_run(&s);
}
