/* test_error_file.c - error files: those that torch writes, and whatever else a worker may leave.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/job/evidence.h"
#include "daemon/os/cjson.h"
#include "daemon/report/error_file.h"

static const char no_json[] = "truncated, or not JSON", no_message[] = "without a message";

static const struct record_row {
	const char *says;
	const char *text;
	struct error_record record; /* raw: NULL or the text itself */
} rows[] = {
	{ "as torch writes it",
		"{\"message\": {\"message\": \"ValueError: x\", \"extraInfo\": {\"py_callstack\": "
		"\"Trace\\n  File\\n\", \"timestamp\": \"1763705999\"}}}",
		{ "ValueError: x", "Trace\n  File\n", 1763705999, NULL, NULL } },
	{ "as a parent torchrun copies it",
		"{\"message\":{\"message\":\"x\",\"errorCode\":1,\"extraInfo\":{\"py_callstack\":"
		"\"T\",\"timestamp\":5}},\"errorTraits\":{\"a\":[1,2]}}",
		{ "x", "T", 5, NULL, NULL } },
	{ "a plain message", "{\"message\": \"x\", \"timestamp\": \"7\"}",
		{ "x", NULL, 7, NULL, NULL } },
	{ "a plain message, time as a number", "{\"timestamp\":7.9,\"message\":\"x\"}",
		{ "x", NULL, 7, NULL, NULL } },
	{ "no extra", "{\"message\":{\"message\":\"x\"}}", { .message = "x" } },
	{ "extra that is none", "{\"message\":{\"message\":\"x\",\"extraInfo\":\"y\"}}",
		{ .message = "x" } },
	{ "a traceback only", "{\"message\":{\"extraInfo\":{\"py_callstack\":\"T\"}}}",
		{ .traceback = "T" } },
	{ "times that are none",
		"{\"message\":{\"message\":\"x\",\"extraInfo\":{\"timestamp\":\"-1\"}}}",
		{ .message = "x" } },
	{ "a time out of range", "{\"message\":\"x\",\"timestamp\":1e300}", { .message = "x" } },
	{ "a time before 1970", "{\"message\":\"x\",\"timestamp\":-5}", { .message = "x" } },
	{ "a time that is a list", "{\"message\":\"x\",\"timestamp\":[]}", { .message = "x" } },
	{ "escapes and bytes that are not UTF-8", "{\"message\":\"\\u00fc\\n\xff\x1b\"}",
		{ .message = "\xc3\xbc\n\xff\x1b" } },
	{ "the first one of two messages", "{\"message\":\"x\",\"message\":\"y\"}",
		{ .message = "x" } },
	{ "names are whole and case counts", "{\"Message\":\"x\",\"message2\":\"y\"}",
		{ .raw_why = no_message } },
	{ "an empty object", "{}", { .raw_why = no_message } },
	{ "a list", "[\"message\"]", { .raw_why = no_message } },
	{ "a list of objects", "[{\"message\":\"x\"}]", { .raw_why = no_message } },
	{ "a text", "\"message\"", { .raw_why = no_message } },
	{ "a number", "7", { .raw_why = no_message } },
	{ "a message that is a number", "{\"message\":7}", { .raw_why = no_message } },
	{ "a message that is a list", "{\"message\":[{\"message\":\"x\"}]}",
		{ .raw_why = no_message } },
	{ "a message that is nothing", "{\"message\":{\"message\":null,\"extraInfo\":{}}}",
		{ .raw_why = no_message } },
	{ "cut off in its message", "{\"message\": {\"message\": \"Val", { .raw_why = no_json } },
	{ "cut off behind an escape", "{\"message\": \"Val\\", { .raw_why = no_json } },
	{ "cut off in a code point", "{\"message\": \"Val\\ud8", { .raw_why = no_json } },
	{ "cut off in its traceback",
		"{\"message\":{\"message\":\"x\",\"extraInfo\":{\"py_callstack\":\"Tra",
		{ .message = "x" } },
	{ "cut off behind a string", "{\"message\": \"Val\"", { .message = "Val" } },
	{ "cut off behind a comma", "{\"message\":\"x\",\"a\":[1,\"y\",", { .message = "x" } },
	{ "cut off in a number", "{\"message\":\"x\",\"a\":[1,-", { .message = "x" } },
	{ "cut off in a word", "{\"message\":\"x\",\"a\":[true,tr", { .message = "x" } },
	{ "cut off in a word of Python's", "{\"message\":\"x\",\"a\":-Inf", { .message = "x" } },
	{ "cut off in a name", "{\"message\":\"x\",\"a\":{\"b\":2,\"na", { .message = "x" } },
	{ "cut off behind a name", "{\"message\":\"x\",\"a\":{\"name\"", { .message = "x" } },
	{ "cut off behind a colon", "{\"message\":\"x\",\"a\":{\"name\": ", { .message = "x" } },
	{ "cut off behind a bracket", "{\"message\":\"x\",\"a\":[{", { .message = "x" } },
	{ "cut off before its message", "{\"1\":1,\"message\":", { .raw_why = no_json } },
	{ "cut off in a name that would be a message's", "{\"message", { .raw_why = no_json } },
	{ "no JSON at all", "Traceback: no", { .raw_why = no_json } },
	{ "half a pair of surrogates",
		"{\"message\":\"a\\ud800b\\udce9\\ud83d\\ud83d\\ude00\\uDFFF\"}",
		{ .message = "a\xef\xbf\xbd"
			     "b"
			     "\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd" } },
	{ "a surrogate's name behind a backslash is text", "{\"message\":\"\\\\ud800\"}",
		{ .message = "\\ud800" } },
	{ "a NUL in a message doesn't end it", "{\"message\":\"a\\u0000b\"}",
		{ .message = "a\xef\xbf\xbd"
			     "b" } },
	{ "numbers that only Python writes",
		"{\"loss\": NaN, \"a\": [Infinity, -Infinity, NaN], \"message\": \"NaN -Infinity\"}",
		{ .message = "NaN -Infinity" } },
	{ "a time that is no number",
		"{\"message\":{\"message\":\"x\",\"extraInfo\":{\"timestamp\":NaN}}}",
		{ .message = "x" } },
	{ "an integer of 90 digits",
		"{\"seed\":-111111111122222222223333333333444444444455555555556666666666777777777788888888889999999999,"
		"\"message\":\"x\",\"timestamp\":5}",
		{ .message = "x", .timestamp = 5 } },
	{ "behind a byte order mark", "\xef\xbb\xbf{\"message\":\"x\"}", { .message = "x" } },
	{ "a word that not even Python writes", "{\"message\":\"x\",\"a\":nan}",
		{ .raw_why = no_json } },
	{ "blanks", " \n", { .raw_why = no_json } },
	{ "nothing", "", { .raw_why = "empty" } },
};

static void assert_text(const char *text, const char *expected)
{
	assert_int_equal(text != NULL, expected != NULL);
	if (expected)
		assert_string_equal(text, expected);
}

static void assert_record(
	const struct error_record *r, const struct error_record *expected, const char *raw)
{
	assert_text(r->message, expected->message);
	assert_text(r->traceback, expected->traceback);
	assert_int_equal(r->timestamp, expected->timestamp);
	assert_text(r->raw_why, expected->raw_why);
	assert_text(r->raw, expected->raw_why ? raw : NULL);
}

static void open_library(struct cjson *c)
{
	struct failure why = { 0 };

	if (cjson_open(NULL, c, &why) < 0)
		fail_msg("%s", why.text);
}

/* Parses bytes that lie in memory of their own size and one NUL. */
static void parse(const struct cjson *c, const char *bytes, size_t len, struct arena *arena,
	struct error_record *ret)
{
	char *exact = malloc(len + 1);

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	exact[len] = '\0';
	record_parse(c, "nobody knows it", exact, len, arena, ret);
	free(exact); /* nothing of it is borrowed */
	assert_false(arena_failed(arena));
}

static void test_parse(void **state)
{
	const struct record_row *row = *state;
	struct error_record r = { .message = "old" };
	struct arena arena = { 0 };
	struct cjson c = { 0 };

	open_library(&c);
	parse(&c, row->text, strlen(row->text), &arena, &r);
	cjson_close(&c);
	assert_record(&r, &row->record, row->text);
	arena_done(&arena);
}

static void test_no_library(void **state)
{
	const struct error_record expected = { .raw_why = "not parsed (nobody knows it)" };
	struct arena arena = { 0 };
	struct error_record r;

	(void)state;
	parse(NULL, "{\"message\":\"x\"}", 15, &arena, &r);
	assert_record(&r, &expected, "{\"message\":\"x\"}");
	arena_done(&arena);
}

static void test_library(void **state)
{
	struct failure absent = { 0 }, other = { 0 };
	struct cjson c = { 0 };

	(void)state;
	assert_outcome(cjson_open("libnowhere.so.1", &c, &absent), -ELIBACC, &absent,
		"libcjson: libnowhere.so.1: cannot open");
	assert_outcome(cjson_open("libc.so.6", &c, &other), -ELIBBAD, &other,
		"libcjson: libc.so.6 has no cJSON_ParseWithLength (Debian's package is libcjson1; 1.7.13");
	assert_null(c.library);
	cjson_close(&c); /* half-built ones, too */
	open_library(&c);
	cjson_close(&c);
	assert_null(c.library);
}

static void test_nul_bytes(void **state)
{
	const struct error_record expected = { .raw_why = no_json };
	struct arena arena = { 0 };
	struct cjson c = { 0 };
	struct error_record r;

	(void)state;
	open_library(&c);
	parse(&c, "\0x\0y", 4, &arena, &r);
	assert_record(&r, &expected, " x y");
	cjson_close(&c);
	arena_done(&arena);
}

/* Deep enough to end a reader that calls itself for each level. */
static void test_deep(void **state)
{
	enum { DEEP = 200000 };
	struct arena arena = { 0 };
	struct cjson c = { 0 };
	struct error_record r;
	char *text = malloc(DEEP);

	(void)state;
	assert_non_null(text);
	open_library(&c);
	memset(text, '[', DEEP);
	parse(&c, text, DEEP, &arena, &r);
	assert_string_equal(r.raw_why, no_json);
	assert_int_equal(strlen(r.raw), 4096);
	cjson_close(&c);
	free(text);
	arena_done(&arena);
}

/* As deep as Python's own encoder goes, and further; what lies deeper than anybody reads is left
 * out, with the brackets in its strings. */
static void test_deep_message(void **state)
{
	enum { DEEP = 20000 };
	static const char head[] = "{\"a\":", inside[] = "\"]}\\\"]\"",
			  tail[] = ",\"message\":\"x\"}";
	struct arena arena = { 0 };
	struct cjson c = { 0 };
	struct text t = { 0 };
	struct error_record r;

	(void)state;
	open_library(&c);
	text_add(&t, head);
	for (int i = 0; i < DEEP; i++)
		text_add(&t, "[");
	text_add(&t, inside);
	for (int i = 0; i < DEEP; i++)
		text_add(&t, "]");
	text_add(&t, tail);
	parse(&c, text_string(&t), t.len, &arena, &r);
	assert_record(&r, &(struct error_record){ .message = "x" }, NULL);
	cjson_close(&c);
	text_done(&t);
	arena_done(&arena);
}

/* What lies where the error file should. */
struct bench {
	char dir[32];
	char path[64];
	struct arena arena;
	struct failure why;
	struct error_record record;
};

static void bench_make(struct bench *b)
{
	*b = (struct bench){ .dir = "/tmp/record.XXXXXX" };
	assert_non_null(mkdtemp(b->dir));
	(void)snprintf(b->path, sizeof b->path, "%s/error.json", b->dir);
}

/* Before what is asserted, so that nothing is left behind a failure. */
static int bench_load(struct bench *b)
{
	struct record_text text;
	int rc;

	record_read(b->path, &b->arena, &text);
	rc = record_load(&text, &b->arena, &b->record, &b->why);
	(void)(unlink(b->path) == 0 || rmdir(b->path) == 0);
	(void)rmdir(b->dir);
	return rc;
}

static void bench_write(const struct bench *b, const char *bytes, size_t len)
{
	autoclose fd = open(b->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, bytes, len), 0);
}

static void test_load(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	bench_write(&b, "{\"message\":\"x\"}", 15);
	assert_int_equal(bench_load(&b), 1);
	assert_record(&b.record, &(struct error_record){ .message = "x" }, NULL);
	arena_done(&b.arena);
}

static void test_load_none(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	b.record.message = "untouched";
	assert_int_equal(bench_load(&b), 0);
	assert_string_equal(b.record.message, "untouched");
	assert_int_equal(b.why.code, 0);
	arena_done(&b.arena);
}

static void test_load_empty(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	bench_write(&b, "", 0);
	assert_int_equal(bench_load(&b), 1);
	assert_record(&b.record, &(struct error_record){ .raw_why = "empty" }, "");
	arena_done(&b.arena);
}

static void load_huge(const char *head, struct bench *b)
{
	enum { HUGE = 3 * RECORD_MAX_BYTES };
	char *text = malloc(HUGE);

	assert_non_null(text);
	bench_make(b);
	memset(text, 'x', HUGE);
	memcpy(text, head, strlen(head));
	bench_write(b, text, HUGE);
	assert_int_equal(bench_load(b), 1);
	free(text);
}

/* Of the message of a state dict, which may have megabytes. */
static void test_load_huge(void **state)
{
	static const char
		message[] = "{\"message\":{\"message\":\"",
		traceback[] = "{\"message\":{\"message\":\"m\",\"extraInfo\":{\"py_callstack\":\"";
	struct bench b;

	(void)state;
	load_huge(message, &b);
	assert_null(b.record.raw);
	assert_int_equal(strlen(b.record.message), RECORD_MAX_BYTES - strlen(message));
	arena_done(&b.arena);
	load_huge(traceback, &b);
	assert_string_equal(b.record.message, "m");
	assert_int_equal(strlen(b.record.traceback), RECORD_MAX_BYTES - strlen(traceback));
	arena_done(&b.arena);
}

static void test_load_huge_raw(void **state)
{
	struct bench b;

	(void)state;
	load_huge("no JSON", &b);
	assert_string_equal(b.record.raw_why, "too long to be read whole");
	assert_int_equal(strlen(b.record.raw), 4096);
	assert_memory_equal(b.record.raw, "no JSONxx", 9);
	arena_done(&b.arena);
}

static void test_load_fifo(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	assert_int_equal(mkfifo(b.path, 0600), 0);
	assert_outcome(bench_load(&b), -EINVAL, &b.why, "is not a regular file");
	arena_done(&b.arena);
}

static void test_load_directory(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	assert_int_equal(mkdir(b.path, 0700), 0);
	assert_outcome(bench_load(&b), -EINVAL, &b.why, "is not a regular file");
	arena_done(&b.arena);
}

static void test_load_link(void **state)
{
	struct bench b;

	(void)state;
	bench_make(&b);
	assert_int_equal(symlink("/etc/passwd", b.path), 0);
	assert_outcome(bench_load(&b), -ELOOP, &b.why, "can't be read");
	arena_done(&b.arena);
}

TESTS(error_file)
{
	static struct suite s;

	SUITE_ROWS(&s, test_parse, rows);
	suite_add(&s, "without a library the text is shown", test_no_library, NULL, NULL);
	suite_add(&s, "a library that is not there, or another", test_library, NULL, NULL);
	suite_add(&s, "NULs are no end", test_nul_bytes, NULL, NULL);
	suite_add(&s, "200,000 lists within each other", test_deep, NULL, NULL);
	suite_add(
		&s, "20,000 lists within each other, and a message", test_deep_message, NULL, NULL);
	suite_add(&s, "a file", test_load, NULL, NULL);
	suite_add(&s, "no file", test_load_none, NULL, NULL);
	suite_add(&s, "an empty file", test_load_empty, NULL, NULL);
	suite_add(&s, "a file without end", test_load_huge, NULL, NULL);
	suite_add(&s, "a file without end that is no JSON", test_load_huge_raw, NULL, NULL);
	suite_add(&s, "a FIFO does not hold us up", test_load_fifo, NULL, NULL);
	suite_add(&s, "a directory", test_load_directory, NULL, NULL);
	suite_add(&s, "a link is not followed", test_load_link, NULL, NULL);
	return suite_run(&s);
}
