/* test_said.c - what the report shows of the culprit's own words: last lines and log. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/said.h"
#include "tests/unit/daemon/report/report_fixture.h"
#include "tests/unit/json.h"

#define E             "launchd: error: "
#define I             "    "
#define HEAD_OF_TRACE "Traceback (most recent call last):\n"
#define TRACE         "  File \"t.py\", line 3\n    pour()\n"
#define CHAINED       "\nThe above exception was the direct cause of this one:\n\n"
#define OF_RECORD     "  File \"/torch/errors/__init__.py\", line 357, in wrapper\n    return f()\n"

/* clang-format off */
static const struct said_row {
	const char *says;
	const char *message, *traceback; /* of the error file; both NULL: there is none */
	struct last_words words;
	unsigned tail;
	const char *text, *json;
} rows[] = {
	{ "nothing is "
	  "known", NULL, NULL, { NULL, NULL }, 20, "", "\"last_lines\":null,\"log\":null" },
	{ "nothing was "
	  "written", NULL, NULL, { "", NULL }, 20, "", "\"last_lines\":[],\"log\":null" },
	{ "nothing but ends of lines", NULL, NULL, { "\n\r\n\n", NULL }, 20, "",
	  "\"last_lines\":[],\"log\":null" },
	{ "only a log", NULL, NULL, { NULL, "/logs/{stdout,stderr}.log" }, 20,
	  E "log: /logs/{stdout,stderr}.log\n",
	  "\"last_lines\":null,\"log\":\"/logs/{stdout,stderr}.log\"" },
	{ "an empty log is "
	  "none", NULL, NULL, { NULL, "" }, 20, "", "\"last_lines\":null,\"log\":\"\"" },
	{ "one line, without its end", NULL, NULL, { "segfault", NULL }, 20,
	  E "last line:\n" I "segfault\n", "\"last_lines\":[\"segfault\"],\"log\":null" },
	{ "lines, and an empty one among them", NULL, NULL, { "a\n\nb\r\n", "/l" }, 20,
	  E "last 3 lines:\n" I "a\n" "\n" I "b\n" E "log: /l\n",
	  "\"last_lines\":[\"a\",\n   \"\",\n   \"b\"],\"log\":\"/l\"" },
	{ "as many as are wanted", NULL, NULL, { "1\n2\n3\n4\n", NULL }, 2,
	  E "last 2 lines:\n" I "3\n" I "4\n", "\"last_lines\":[\"3\",\n   \"4\"],\"log\":null" },
	{ "none are wanted", NULL, NULL, { "1\n2\n", "/l" }, 0, E "log: /l\n",
	  "\"last_lines\":[],\"log\":\"/l\"" },
	{ "a progress bar as it stood", NULL, NULL, { " 10%\r 20%\r 30%\ndone\r\n", NULL }, 20,
	  E "last 2 lines:\n" I " 30%\n" I "done\n", "\"last_lines\":[\" 30%\",\n   \"done\"]" },
	{ "nothing that a terminal obeys", NULL, NULL,
	  { "\x1b]0;x\x07\n\xff\xc3\xbc\x9b\n", "/a\nlaunchd: error: b" }, 20,
	  E "last 2 lines:\n" I "\\x1b]0;x\\x07\n" I "\\xff\xc3\xbc\\x9b\n"
	  E "log: /a\\x0alaunchd: error: b\n",
	  "\"last_lines\":[\"\\u001b]0;x\\u0007\",\n   \"\\ufffd\xc3\xbc\\ufffd\"],"
	  "\"log\":\"/a\\u000alaunchd: error: b\"" },

	{ "an error file and other words: both", "E: why", HEAD_OF_TRACE TRACE "E: why\n",
	  { "step 9\n", "/l" }, 20,
	  E "exception: E: why\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n"
	  E "last line:\n" I "step 9\n" E "log: /l\n", "\"last_lines\":[\"step 9\"]" },
	{ "the error file's traceback on stderr, too: once", "E: why",
	  HEAD_OF_TRACE TRACE "E: why\n",
	  { "step 9\n" HEAD_OF_TRACE TRACE "E: why\nbye\n", NULL }, 20,
	  E "exception: E: why\n" E "last 6 lines:\n" I "step 9\n"
	  I "Traceback (most recent call last):\n" I "  File \"t.py\", line 3\n" I "    pour()\n"
	  I "E: why\n" I "bye\n", "" },
	{ "with torch's marks, and @record's frames before it", "E: why",
	  HEAD_OF_TRACE OF_RECORD TRACE "E: why\n",
	  { "[rank3]: " HEAD_OF_TRACE "[rank3]:   File \"t.py\", line 9, in <module>\n"
	    "[rank3]:   File \"/torch/errors/__init__.py\", line 357, in wrapper\n"
	    "[rank3]:     return f()\n[rank3]:   File \"t.py\", line 3\n"
	    "[rank3]:     pour()\n[rank3]: E: why\n", NULL }, 20,
	  E "exception: E: why\n" E "last 7 lines:\n"
	  I "[rank3]: Traceback (most recent call last):\n"
	  I "[rank3]:   File \"t.py\", line 9, in <module>\n"
	  I "[rank3]:   File \"/torch/errors/__init__.py\", line 357, in wrapper\n"
	  I "[rank3]:     return f()\n" I "[rank3]:   File \"t.py\", line 3\n"
	  I "[rank3]:     pour()\n" I "[rank3]: E: why\n", "" },
	{ "the last lines begin in the middle of it: once, and whole", "E: why",
	  HEAD_OF_TRACE OF_RECORD TRACE "E: why\n",
	  { "    return f()\n" TRACE "E: why\n", NULL }, 3,
	  E "exception: E: why\n" I "Traceback (most recent call last):\n"
	  I "  File \"/torch/errors/__init__.py\", line 357, in wrapper\n" I "    return f()\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" I "E: why\n", "" },
	{ "and what follows it", "E: why", HEAD_OF_TRACE OF_RECORD TRACE "E: why\n",
	  { "    return f()\n" TRACE "E: why\nbye\n", NULL }, 4,
	  E "exception: E: why\n" I "Traceback (most recent call last):\n"
	  I "  File \"/torch/errors/__init__.py\", line 357, in wrapper\n" I "    return f()\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" I "E: why\n" E "last line:\n" I "bye\n", "" },
	{ "one that was raised from another, with Python's own frames before @record's: once",
	  "E: why", HEAD_OF_TRACE TRACE CHAINED HEAD_OF_TRACE OF_RECORD TRACE "E: why\n",
	  { HEAD_OF_TRACE TRACE CHAINED HEAD_OF_TRACE "  File \"t.py\", line 9, in <module>\n"
	    OF_RECORD TRACE "E: why\n", NULL }, 10,
	  E "exception: E: why\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" "\n" I "The above exception was the direct cause of this one:\n" "\n"
	  I "Traceback (most recent call last):\n"
	  I "  File \"/torch/errors/__init__.py\", line 357, in wrapper\n" I "    return f()\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" I "E: why\n", "" },
	{ "with a line of another thread in the middle: once", "E: why",
	  HEAD_OF_TRACE TRACE "E: why\n",
	  { HEAD_OF_TRACE "  File \"t.py\", line 3\nstep 10\n    pour()\nE: why\n", NULL }, 20,
	  E "exception: E: why\n" E "last 5 lines:\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "step 10\n" I "    pour()\n" I "E: why\n", "" },
	{ "another traceback that ends alike: both", "E: why", HEAD_OF_TRACE TRACE "E: why\n",
	  { "step 9\nother()\nE: why\n", NULL }, 20,
	  E "exception: E: why\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n"
	  E "last 3 lines:\n" I "step 9\n" I "other()\n" I "E: why\n", "" },
	{ "one that has only its last line there", "other", "before\nE: why\n",
	  { "step 9\nE: why\n", NULL }, 20,
	  E "exception: other\n" I "before\n" I "E: why\n"
	  E "last 2 lines:\n" I "step 9\n" I "E: why\n", "" },
	{ "a mark that is none", "E: why", "E: why\n", { "no [x]: E: why\n", NULL }, 20,
	  E "exception: E: why\n" I "E: why\n" E "last line:\n" I "no [x]: E: why\n", "" },
	{ "a traceback of one line on stderr", "other", "E: why\n", { "E: why\n", NULL }, 20,
	  E "exception: other\n" E "last line:\n" I "E: why\n", "" },
};

/* The same, and what stands last on the console. */
static const struct shown_row {
	const char *says;
	const char *message, *traceback;
	struct last_words words;
	unsigned tail;
	const char *text, *json, *shown;
} shown_rows[] = {
	{ "what stands on the console isn't said again", NULL, NULL,
	  { HEAD_OF_TRACE TRACE "E: why\n", "/l" }, 20,
	  E "its last lines are above\n" E "log: /l\n",
	  "\"last_lines\":[\"Traceback (most recent call last):\",",
	  "step 9\n" HEAD_OF_TRACE TRACE "E: why\n" },
	{ "also behind a prefix, and torch's marks", NULL, NULL,
	  { "[rank3]: " HEAD_OF_TRACE "[rank3]: E: why\n", NULL }, 20,
	  E "its last lines are above\n", "",
	  "[default0]:[rank3]: " HEAD_OF_TRACE "[default0]:[rank3]: E: why\n" },
	{ "of its stdout, which is elsewhere, the rest is", NULL, NULL,
	  { "step 9\nstep 10\n" HEAD_OF_TRACE TRACE "E: why\n", NULL }, 20,
	  E "its last lines are above\n" E "last 2 lines before those:\n" I "step 9\n" I "step 10\n",
	  "", "hello\n" HEAD_OF_TRACE TRACE "E: why\n" },
	{ "another's line behind it: again", NULL, NULL, { HEAD_OF_TRACE TRACE "E: why\n", NULL }, 20,
	  E "last 4 lines:\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" I "E: why\n", "",
	  HEAD_OF_TRACE TRACE "E: why\nlaunchd: note: a note\n" },
	{ "another's line within it: again", NULL, NULL, { HEAD_OF_TRACE TRACE "E: why\n", NULL }, 20,
	  E "last 4 lines:\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" I "E: why\n", "",
	  HEAD_OF_TRACE "of another\n" TRACE "E: why\n" },
	{ "an error file's traceback that stands there, too", "E: why",
	  HEAD_OF_TRACE OF_RECORD TRACE "E: why\n", { TRACE "E: why\n", NULL }, 3,
	  E "exception: E: why\n" E "its last lines are above\n", "",
	  HEAD_OF_TRACE OF_RECORD TRACE "E: why\n" },
	{ "and one that does not", "E: other", HEAD_OF_TRACE OF_RECORD "E: other\n",
	  { HEAD_OF_TRACE TRACE "E: why\n", NULL }, 20,
	  E "exception: E: other\n" I "Traceback (most recent call last):\n"
	  I "  File \"/torch/errors/__init__.py\", line 357, in wrapper\n" I "    return f()\n"
	  E "its last lines are above\n", "", HEAD_OF_TRACE TRACE "E: why\n" },
	{ "with an empty line in it", NULL, NULL, { HEAD_OF_TRACE TRACE "\nE: why\n", NULL }, 20,
	  E "its last lines are above\n", "",
	  "[0]: " HEAD_OF_TRACE "[0]:   File \"t.py\", line 3\n[0]:     pour()\n[0]: \n[0]: E: why\n" },
	{ "which is none where something stands", NULL, NULL,
	  { HEAD_OF_TRACE TRACE "\nE: why\n", NULL }, 20,
	  E "last 5 lines:\n" I "Traceback (most recent call last):\n"
	  I "  File \"t.py\", line 3\n" I "    pour()\n" "\n" I "E: why\n", "",
	  HEAD_OF_TRACE TRACE "x\nE: why\n" },
	{ "other words are said again", NULL, NULL, { "a\nb\n", NULL }, 20,
	  E "last 2 lines:\n" I "a\n" I "b\n", "", "a\nb\n" },
};
/* clang-format on */

static const struct outcome failed = { .pid = 10, .end = { ENDED_EXIT, 1, false } };
static const struct result failure = { .outcomes = &failed,
	.count = 1,
	.cause = { .kind = CAUSE_FAILURE,
		.culprit = { .pid = 10, .end = { ENDED_EXIT, 1, false } } } };

static const char *shown; /* what stands last on the console; NULL: not known */

static char *made(
	const struct said_row *row, void (*make)(const struct report_input *, struct text *))
{
	const struct error_record record = { .message = row->message, .traceback = row->traceback };
	struct vec args = { 0 };
	const struct plan plan = {
		.script = "./train",
		.use_env = true,
		.args = &args,
		.start_count = 1,
		.output.tail_lines = row->tail,
	};

	return report_made(
		(struct report_input){
			.result = &failure,
			.plan = &plan,
			.record = row->message || row->traceback ? &record : NULL,
			.words = row->words,
			.shown = shown,
		},
		make);
}

static void test_said(void **state)
{
	const struct said_row *row = *state;
	char *text = made(row, said_add), *json = made(row, report_json);

	assert_string_equal(text, row->text);
	assert_true(json_is_valid(json, strlen(json)));
	assert_contains(json, row->json);
	free(text);
	free(json);
}

static void test_shown(void **state)
{
	const struct shown_row *row = *state;
	const struct said_row said = { row->says, row->message, row->traceback, row->words,
		row->tail, row->text, row->json };
	const void *in_turn = &said;

	shown = row->shown;
	test_said((void **)&in_turn);
	shown = NULL;
}

/* In the whole report they follow the command. */
static void test_in_report(void **state)
{
	static const struct said_row row = { .words = { "a\n", "/l" }, .tail = 20 };
	char *text = made(&row, report_text);

	(void)state;
	assert_contains(text, E "command: ./train\n" E "last line:\n" I "a\n" E "log: /l\n");
	free(text);
}

/* Nobody is the culprit: nobody's words are shown. */
static void test_no_culprit(void **state)
{
	const struct result r = { .cause = { .kind = CAUSE_MAX_RUNTIME } };
	const struct report_input in = { .result = &r, .words = { "a\n", "/l" } };
	char *text = report_made(in, report_text), *json = report_made(in, report_json);

	(void)state;
	assert_null(strstr(text, "last line"));
	assert_null(strstr(text, "/l"));
	assert_contains(json, "\"culprit\":null");
	free(text);
	free(json);
}

/* 8 KiB of whatever kind, and as many lines as may be wanted. */
static void test_bounds(void **state)
{
	static char lines[LAST_LINES_BYTES + 1];
	static const struct said_row row = { .words = { lines, NULL }, .tail = 1000 };
	char *text;

	(void)state;
	memset(lines, '\x1b', LAST_LINES_BYTES);
	text = made(&row, said_add);
	assert_contains(text, E "last line:\n" I "\\x1b\\x1b");
	assert_contains(text, "\\x1b ...\n");
	assert_true(strlen(text) < 4 * 400 + 100);
	free(text);
	for (size_t i = 0; i < LAST_LINES_BYTES; i++)
		lines[i] = i % 2 ? '\n' : 'x';
	text = made(&row, said_add);
	assert_contains(text, E "last 1000 lines:\n" I "x\n");
	assert_true(strlen(text) == strlen(E "last 1000 lines:\n") + 1000 * strlen(I "x\n"));
	free(text);
}

/* A traceback of 110 lines, of which the last 20 are the last lines: once, its start and its end.
 */
static void test_long_traceback(void **state)
{
	enum { LINES = 110, LAST = 20 };
	static char whole[LINES * 16];
	struct said_row row = { .message = "E: why", .traceback = whole, .tail = LAST };
	char *text, wanted[32];
	size_t len = 0, from = 0;

	(void)state;
	for (int i = 1; i <= LINES; i++) {
		from = i == LINES - LAST + 1 ? len : from;
		len += (size_t)snprintf(whole + len, sizeof whole - len, "  line %d\n", i);
	}
	row.words.lines = whole + from;
	text = made(&row, said_add);
	assert_contains(text, I "  line 15\n" I "[80 lines between]\n" I "  line 96\n");
	assert_null(strstr(text, "last 20 lines"));
	for (int i = 1; i <= LINES; i++) {
		const char *at;

		(void)snprintf(wanted, sizeof wanted, I "  line %d\n", i);
		at = strstr(text, wanted);
		assert_int_equal(at != NULL, i <= 15 || i > 95);
		assert_true(!at || !strstr(at + 1, wanted));
	}
	free(text);
}

TESTS(said)
{
	static struct suite s;

	SUITE_ROWS(&s, test_said, rows);
	SUITE_ROWS(&s, test_shown, shown_rows);
	suite_add(&s, "their place in the report", test_in_report, NULL, NULL);
	suite_add(&s, "no culprit, no words", test_no_culprit, NULL, NULL);
	suite_add(&s, "a traceback of 110 lines", test_long_traceback, NULL, NULL);
	suite_add(&s, "8 KiB of anything", test_bounds, NULL, NULL);
	return suite_run(&s);
}
