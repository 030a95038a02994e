/* test_finding.c - findings: which are kept where there is no room, how they are shown, and that
 * they are read back as they were written. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/check/finding.h"
#include "daemon/check/finding_read.h"
#include "tests/unit/json.h"

static struct findings found, copy;

static int clear(void **state)
{
	(void)state;
	memset(&found, 0, sizeof found);
	memset(&copy, 0, sizeof copy);
	return 0;
}

static void fill(enum health health)
{
	while (found.count < FINDINGS_MAX)
		findings_add(&found, health, "gpu_ecc", "GPU 1", "x");
}

static unsigned count_of(enum health health)
{
	unsigned n = 0;

	for (unsigned i = 0; i < found.count; i++)
		n += found.at[i].health == health;
	return n;
}

static void test_worst(void **state)
{
	(void)state;
	assert_int_equal(findings_worst(&found), HEALTH_GOOD);
	findings_add(&found, HEALTH_GOOD, "a", "", "x");
	assert_int_equal(findings_worst(&found), HEALTH_GOOD);
	findings_add(&found, HEALTH_UNKNOWN, "b", "", "x");
	assert_int_equal(findings_worst(&found), HEALTH_UNKNOWN);
	findings_add(&found, HEALTH_BAD, "c", "s", "x");
	findings_add(&found, HEALTH_GOOD, "d", "", "x");
	assert_int_equal(findings_worst(&found), HEALTH_BAD);
	assert_null(findings_find(&found, "c", ""));
	assert_ptr_equal(findings_find(&found, "c", "s"), &found.at[2]);
	assert_ptr_equal(findings_find(&found, "c", NULL), &found.at[2]);
}

static void test_bad_ones_find_room(void **state)
{
	(void)state;
	fill(HEALTH_GOOD);
	findings_add(&found, HEALTH_UNKNOWN, "mount", "/a", "x");
	findings_add(&found, HEALTH_BAD, "disk", "/b", "x");
	findings_add(&found, HEALTH_GOOD, "disk", "/c", "x");
	assert_int_equal(found.count, FINDINGS_MAX);
	assert_int_equal(found.left_out, 3);
	assert_non_null(findings_find(&found, "mount", "/a"));
	assert_non_null(findings_find(&found, "disk", "/b"));
	assert_null(findings_find(&found, "disk", "/c"));
}

static void test_unknown_ones_make_room(void **state)
{
	(void)state;
	fill(HEALTH_UNKNOWN);
	for (int i = 0; i < FINDINGS_MAX; i++)
		findings_add(&found, HEALTH_BAD, "disk", "", "%d", i);
	assert_int_equal(count_of(HEALTH_BAD), FINDINGS_MAX);
	findings_add(&found, HEALTH_BAD, "disk", "", "last");
	assert_int_equal(found.left_out, FINDINGS_MAX + 1);
	assert_string_equal(found.at[FINDINGS_MAX - 1].text, "0");
}

static void test_long_texts_show_it(void **state)
{
	char longer[400];

	(void)state;
	memset(longer, 'x', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	findings_add(&found, HEALTH_BAD, longer, longer, "%s", longer);
	assert_int_equal(strlen(found.at[0].check), sizeof found.at[0].check - 1);
	assert_int_equal(strlen(found.at[0].subject), sizeof found.at[0].subject - 1);
	assert_int_equal(strlen(found.at[0].text), sizeof found.at[0].text - 1);
	assert_non_null(strstr(found.at[0].check, "x...x"));
	assert_non_null(strstr(found.at[0].subject, "x...x"));
	assert_non_null(strstr(found.at[0].text, "x...x"));
	findings_add(&found, HEALTH_BAD, "a", "b", "two\nlines");
	assert_string_equal(found.at[1].text, "two lines");
}

/* As a child that went mad leaves it. */
static void test_a_childs_memory_may_be_anything(void **state)
{
	(void)state;
	memset(&copy, 0xff, sizeof copy);
	findings_merge(&found, &copy);
	assert_int_equal(found.count, FINDINGS_MAX);
	for (unsigned i = 0; i < found.count; i++) {
		assert_int_equal(found.at[i].health, HEALTH_UNKNOWN);
		assert_true(strlen(found.at[i].text) < sizeof found.at[i].text);
	}
	found.count = 1u << 31;
	findings_add(&found, HEALTH_BAD, "a", "b", "c");
	assert_non_null(findings_find(&found, "a", "b"));
}

static void add_some(void)
{
	findings_add(&found, HEALTH_GOOD, "gpu_ecc", "GPU 0", "no errors");
	findings_add(&found, HEALTH_BAD, "gpu_ecc", "GPU 1", "2 errors");
	findings_add(&found, HEALTH_GOOD, "gpu_ecc", "GPU 2", "no errors");
	findings_add(&found, HEALTH_UNKNOWN, "clock", "", "nobody \"knows\"\\");
}

static void test_table(void **state)
{
	struct text out = { 0 };

	(void)state;
	add_some();
	findings_table(&found, &out);
	assert_string_equal(text_string(&out),
		"bad      gpu_ecc         GPU 1            2 errors\n"
		"unknown  clock                            nobody \"knows\"\\\n"
		"good     gpu_ecc         2 GPUs           no errors\n"
		"\nThis node is bad: 1 bad, 2 good, 1 unknown\n");
	text_done(&out);
}

static void test_prometheus(void **state)
{
	struct text out = { 0 };

	(void)state;
	add_some();
	findings_add(&found, HEALTH_BAD, "gpu_ecc", "GPU 0", "the same, and worse");
	findings_prometheus(&found, "n7", &out);
	assert_string_equal(text_string(&out),
		"# HELP launchd_node_check Whether what was checked is good (1) or bad (0).\n"
		"# TYPE launchd_node_check gauge\n"
		"launchd_node_check{check=\"gpu_ecc\",subject=\"GPU 1\",host=\"n7\"} 0\n"
		"launchd_node_check{check=\"gpu_ecc\",subject=\"GPU 2\",host=\"n7\"} 1\n"
		"launchd_node_check{check=\"gpu_ecc\",subject=\"GPU 0\",host=\"n7\"} 0\n"
		"# HELP launchd_node_check_unknown What could not be checked.\n"
		"# TYPE launchd_node_check_unknown gauge\n"
		"launchd_node_check_unknown{check=\"clock\",subject=\"\",host=\"n7\"} 1\n");
	text_done(&out);
}

static void test_json_is_read_back(void **state)
{
	struct failure why = { 0 };
	struct text out = { 0 };

	(void)state;
	add_some();
	found.left_out = 3;
	findings_json(&found, NULL, &out);
	assert_true(json_is_valid(text_string(&out), out.len));
	assert_contains(text_string(&out), "\"health\":\"bad\"");
	assert_int_equal(findings_parse(text_string(&out), out.len, &copy, &why), 0);
	assert_memory_equal(&copy, &found, sizeof found);
	text_done(&out);
}

static const struct parse_row {
	const char *says, *json;
	int rc;
	unsigned count;
	enum health health; /* of the first */
} parse_rows[] = {
	{ "nothing", "", -EINVAL, 0, HEALTH_GOOD },
	{ "another object", "{\"findings\": []}", -EINVAL, 0, HEALTH_GOOD },
	{ "a list", "[]", -EINVAL, 0, HEALTH_GOOD },
	{ "findings that are none", "{\"launchd_node_check\": 1, \"findings\": 3}", -EINVAL, 0,
		HEALTH_GOOD },
	{ "cut short", "{\"launchd_node_check\": 1, \"findings\": [", -EINVAL, 0, HEALTH_GOOD },
	{ "no findings", "{\"launchd_node_check\": 1, \"findings\": []}", 0, 0, HEALTH_GOOD },
	{ "what is not known is skipped",
		"{\"launchd_node_check\": 2, \"findings\": [7, {\"text\": \"x\"}, {\"check\": \"a\", "
		"\"health\": \"bad\", \"new\": []}]}",
		0, 1, HEALTH_BAD },
	{ "a health of a later launchd's is unknown",
		"{\"launchd_node_check\": 1, \"findings\": [{\"check\": \"a\", \"health\": "
		"\"ill\"}]}",
		0, 1, HEALTH_UNKNOWN },
};

static void test_parse(void **state)
{
	const struct parse_row *row = *state;
	struct failure why = { 0 };
	int rc;

	memset(&copy, 0, sizeof copy);
	copy.count = 77;
	rc = findings_parse(row->json, strlen(row->json), &copy, &why);
	assert_outcome(rc, row->rc, &why, NULL);
	assert_int_equal(copy.count, rc == 0 ? row->count : 77);
	if (rc == 0 && row->count > 0)
		assert_int_equal(copy.at[0].health, row->health);
}

TESTS(finding)
{
	static struct suite s;

	suite_add(&s, "the worst is told", test_worst, clear, NULL);
	suite_add(&s, "a bad one takes a good one's place", test_bad_ones_find_room, clear, NULL);
	suite_add(&s, "and an unknown one's", test_unknown_ones_make_room, clear, NULL);
	suite_add(
		&s, "long texts are cut between characters", test_long_texts_show_it, clear, NULL);
	suite_add(&s, "a child's memory may be anything", test_a_childs_memory_may_be_anything,
		clear, NULL);
	suite_add(&s, "the table has the worst first, and one line for what is alike", test_table,
		clear, NULL);
	suite_add(&s, "Prometheus hears of each check and subject once", test_prometheus, clear,
		NULL);
	suite_add(&s, "JSON is read back as it was", test_json_is_read_back, clear, NULL);
	SUITE_ROWS(&s, test_parse, parse_rows);
	return suite_run(&s);
}
