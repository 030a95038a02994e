/* test_saying.c - launchd's own lines as JSON. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/observe/say.h"
#include "daemon/observe/saying.h"
#include "tests/unit/json.h"

#define TIME "\"time\":\"2025-11-21T06:19:59.345678Z\""
#define LINE(level, text) \
	"{\"v\":1," TIME ",\"level\":\"" level "\",\"node\":3,\"text\":\"" text "\"}\n"

static const struct saying node3 = { 1763705999345678901, true, 3 };

static const struct row {
	const char *says;
	const char *lines, *json;
} rows[] = {
	{ "nothing", "", "" },
	{ "a note", "launchd: note: x\n", LINE("note", "x") },
	{ "a warning", "launchd: warning: x\n", LINE("warning", "x") },
	{ "an error", "launchd: error: x: y\n", LINE("error", "x: y") },
	{ "several lines, each with its level",
		"launchd: error: a\nlaunchd: note: b\nlaunchd: error:     c\n",
		LINE("error", "a") LINE("note", "b") LINE("error", "    c") },
	{ "a line without a level has that before it", "launchd: error: a\n  b\nlaunchd: c\n",
		LINE("error", "a") LINE("error", "  b") LINE("error", "launchd: c") },
	{ "the first one is a note", "a\n", LINE("note", "a") },
	{ "an unknown level is text", "launchd: shout: a\n", LINE("note", "launchd: shout: a") },
	{ "a level that goes on is none", "launchd: notes: a\n",
		LINE("note", "launchd: notes: a") },
	{ "an empty line", "\n", LINE("note", "") },
	{ "no end of line", "launchd: error: a\nlaunchd: note: b",
		LINE("error", "a") LINE("note", "b") },
	{ "what JSON escapes", "launchd: error: \"\\\x1b[0m\x7f\n",
		LINE("error", "\\\"\\\\\\u001b[0m\\u007f") },
	{ "what is not UTF-8", "launchd: error: \xff\xc3\n", LINE("error", "\\ufffd\\ufffd") },
};

/* Every line is an object for itself. */
static void assert_lines(const char *json)
{
	for (const char *end; *json; json = end + 1) {
		end = strchr(json, '\n');
		assert_non_null(end);
		assert_true(json_is_valid(json, (size_t)(end - json)));
	}
}

static void test_lines(void **state)
{
	const struct row *row = *state;
	struct text t = { 0 };

	saying_add_lines(&t, &node3, row->lines, strlen(row->lines));
	assert_string_equal(text_string(&t), row->json);
	assert_lines(text_string(&t));
	text_done(&t);
}

static void test_node_unknown(void **state)
{
	static const struct saying nobody = { 1763705999345678901, false, 3 };
	struct text t = { 0 };

	(void)state;
	saying_add(&t, &nobody, "warning", "two\nlines");
	assert_string_equal(text_string(&t),
		"{\"v\":1," TIME ",\"level\":\"warning\",\"node\":null,"
		"\"text\":\"two\\u000alines\"}\n");
	text_done(&t);
}

static void take(void *owner, const char *bytes, size_t len)
{
	text_add_bytes(owner, bytes, len);
}

/* The words can go elsewhere than to stderr, as text and as JSON. */
static void test_through(void **state)
{
	struct text taken = { 0 }, report = { 0 };

	(void)state;
	say_through(take, &taken);
	say("note", "a");
	text_add(&report, "launchd: error: b\nlaunchd: error: c\n");
	say_text(&report);
	assert_int_equal(report.len, 0);
	assert_string_equal(
		text_string(&taken), "launchd: note: a\nlaunchd: error: b\nlaunchd: error: c\n");
	taken.len = 0;
	say_json();
	say("note", "a");
	assert_contains(text_string(&taken), "\"level\":\"note\",\"node\":null,\"text\":\"a\"}\n");
	say_node(7);
	text_add(&report, "launchd: error: b\nlaunchd: error: c\n");
	say_text(&report);
	assert_contains(text_string(&taken), "\"level\":\"error\",\"node\":7,\"text\":\"b\"}\n{");
	assert_lines(text_string(&taken));
	say_text(&report); /* nothing is nothing */
	say_through(NULL, NULL);
	text_done(&taken);
}

int main(void)
{
	static struct suite s;

	SUITE_ROWS(&s, test_lines, rows);
	suite_add(&s, "the node is not known yet", test_node_unknown, NULL, NULL);
	suite_add(&s, "through somebody else", test_through, NULL, NULL);
	return suite_run(&s);
}
