/* test_saying.c - launchd's own lines as JSON. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/patience.h"
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

/* What `fd` led to until now, to be given back; it leads to `to`, which is closed. */
static int redirect(int fd, int to)
{
	int before = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	(void)fflush(NULL);
	assert_true(to >= 0 && before >= 0);
	assert_int_equal(dup2(to, fd), fd);
	(void)close(to);
	return before;
}

/* In a hurry, each word still comes as long as somebody reads. */
static void test_hurry(void **state)
{
	char text[64] = "";
	int p[2], before;

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	before = redirect(STDERR_FILENO, p[1]);
	say_patience(PATIENCE_ASKED_MS);
	say("note", "a");
	say("note", "b");
	(void)close(redirect(STDERR_FILENO, before));
	assert_true(read(p[0], text, sizeof text - 1) > 0);
	(void)close(p[0]);
	assert_string_equal(text, "launchd: note: a\nlaunchd: note: b\n");
}

/* Who asks for --help has to see that it didn't come. */
static void test_print(void **state)
{
	struct text said = { 0 }, printed = { 0 };
	int before, rc;

	(void)state;
	if (access("/dev/full", W_OK) < 0)
		needs(false, "needs /dev/full");
	say_through(take, &said);
	text_add(&printed, "x");
	before = redirect(STDOUT_FILENO, open("/dev/full", O_WRONLY | O_CLOEXEC));
	rc = print_text(&printed);
	(void)close(redirect(STDOUT_FILENO, before));
	assert_int_equal(rc, 1);
	assert_contains(text_string(&said), "launchd: error: can't write to standard output\n");
	say_through(NULL, NULL);
	text_done(&said);
}

TESTS(saying)
{
	static struct suite s;

	SUITE_ROWS(&s, test_lines, rows);
	suite_add(&s, "the node is not known yet", test_node_unknown, NULL, NULL);
	suite_add(&s, "what can't be printed is told", test_print, NULL, NULL);
	suite_add(&s, "words in a hurry", test_hurry, NULL, NULL);
	suite_add(&s, "through somebody else", test_through, NULL, NULL);
	return suite_run(&s);
}
