/* test_text.c - what is printed is read back by those it is for: a shell, a reader of JSON. */
#include "tests/unit/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/unit/json.h"

static void test_grows(void **state)
{
	struct text t = { 0 };

	(void)state;
	assert_string_equal(text_string(&t), "");
	for (int i = 0; i < 10000; i++)
		text_printf(&t, "%d", i % 10);
	text_add(&t, "end");
	assert_int_equal(t.len, 10003);
	assert_int_equal(strlen(text_string(&t)), t.len);
	assert_false(t.failed);
	text_done(&t);
	assert_string_equal(text_string(&t), "");
}

static void test_whole(void **state)
{
	static const char s[] = "a\xc3\xa4\xe2\x82\xac";
	static const size_t whole[] = { 0, 1, 1, 3, 3, 3 };

	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		assert_int_equal(text_whole(s, i), whole[i]);
	assert_int_equal(text_whole("\x80\x80", 1), 0); /* no character at all */
}

static const struct fit_row {
	const char *says, *text, *fitted; /* into 16 bytes */
} fits[] = {
	{ "nothing", "", "" },
	{ "as much as there is room for", "0123456789abcde", "0123456789abcde" },
	{ "a byte more", "0123456789abcdef", "01234...9abcdef" },
	{ "much more", "/scratch/a/very/deep/place/logs", "/scra...ce/logs" },
	{ "characters stay whole", "0123\xc3\xa4 in the middle\xe2\x82\xac 678",
		"0123...e\xe2\x82\xac 678" },
};

static void test_fit(void **state)
{
	const struct fit_row *row = *state;
	char room[17] = "................";

	text_fit(room, 16, row->text);
	assert_string_equal(room, row->fitted);
}

static void test_sticky(void **state)
{
	struct text t = { 0 };

	(void)state;
	text_add(&t, "before");
	text_add_bytes(&t, "x", SIZE_MAX / 2); /* refused before it is read */
	assert_true(t.failed);
	text_add(&t, "after");
	assert_true(t.failed);
	assert_string_equal(text_string(&t), "before");
	text_done(&t);
}

static const struct plain_row {
	const char *says, *word;
	bool plain;
} plains[] = {
	{ "a path stays plain", "/data/train-1.py", true },
	{ "an option with a value stays plain", "--lr=1e-3,x:y@z+%^", true },
	{ "nothing is quoted", "", false },
	{ "a blank is quoted", "a b", false },
	{ "a dollar is quoted", "$x", false },
	{ "a backtick is quoted", "`x`", false },
	{ "a star is quoted", "*", false },
	{ "a question mark is quoted", "?", false },
	{ "a bracket is quoted", "[a]", false },
	{ "a brace is quoted", "{a,b}", false },
	{ "a tilde is quoted", "~", false },
	{ "a hash is quoted", "#x", false },
	{ "an exclamation mark is quoted", "!x", false },
	{ "an ampersand is quoted", "a&b", false },
	{ "a semicolon is quoted", "a;b", false },
	{ "a double quote is quoted", "\"a\"", false },
	{ "a single quote is quoted", "it's", false },
	{ "a backslash is quoted", "a\\b", false },
	{ "letters that are not ASCII are quoted", "\xc3\xa9", false },
	{ "bytes that are no letters are quoted", "\xff\xfe", false },
};

/* What a shell reads the word as: its script is "printf %s WORD". */
static void shell_reads(const char *shell, const char *quoted, char *ret, size_t size)
{
	struct text line = { 0 };
	FILE *out;
	size_t n;

	text_printf(&line, "exec %s <<'LAUNCHD_END'\nprintf %%s %s\nLAUNCHD_END\n", shell, quoted);
	out = popen(text_string(&line), "re");
	text_done(&line);
	assert_non_null(out);
	n = fread(ret, 1, size - 1, out);
	ret[n] = '\0';
	assert_int_equal(pclose(out), 0);
}

static void test_plain(void **state)
{
	const struct plain_row *row = *state;
	struct text t = { 0 };
	char back[256];

	text_add_shell(&t, row->word);
	assert_int_equal(strcmp(text_string(&t), row->word) == 0, row->plain);
	shell_reads("sh", text_string(&t), back, sizeof back);
	text_done(&t);
	assert_string_equal(back, row->word);
}

/* $'...' came to POSIX in 2024 and is not in every sh yet; bash reads it since ever. */
static const struct control_row {
	const char *says, *word;
} controls[] = {
	{ "a newline stays on the line", "a\nb" },
	{ "a tab", "\t" },
	{ "a control character before a hexadecimal digit",
		"\x01"
		"0\x1b"
		"ff\nabc" },
	{ "a control character beside quotes", "it's\n\"so\"" },
	{ "a control character beside a backslash", "a\\n\n\\" },
	{ "a control character beside a dollar", "$x\r${y}`z`" },
	{ "DEL", "\x7f" },
	{ "a control character beside other bytes", "\xff\n\xc3\xa9" },
};

static void test_control(void **state)
{
	const struct control_row *row = *state;
	struct text t = { 0 };
	char back[256];

	needs(access("/bin/bash", X_OK) == 0, "bash");
	text_add_shell(&t, row->word);
	for (const char *p = text_string(&t); *p; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
	shell_reads("/bin/bash", text_string(&t), back, sizeof back);
	text_done(&t);
	assert_string_equal(back, row->word);
}

static const struct label_row {
	const char *says, *text, *label;
} labels[] = {
	{ "a plain label", "gpu07", "\"gpu07\"" },
	{ "an empty label", "", "\"\"" },
	{ "a quote in a label", "a\"b", "\"a\\\"b\"" },
	{ "a backslash in a label", "a\\b", "\"a\\\\b\"" },
	{ "a newline in a label", "a\nb", "\"a\\nb\"" },
	{ "all three in a label", "\\\"\n", "\"\\\\\\\"\\n\"" },
	{ "a label's other control characters", "\t\r\x01", "\"\t\r\x01\"" },
	{ "a label in UTF-8", "gr\xc3\xb6\xc3\x9f", "\"gr\xc3\xb6\xc3\x9f\"" },
	{ "a label that is not UTF-8",
		"a\xff"
		"b",
		"\"a\xef\xbf\xbd"
		"b\"" },
	{ "a label that is cut", "a\xc3", "\"a\xef\xbf\xbd\"" },
};

static void test_label(void **state)
{
	const struct label_row *row = *state;
	struct text t = { 0 };

	text_add_label(&t, row->text);
	assert_string_equal(text_string(&t), row->label);
	text_done(&t);
}

static const struct json_row {
	const char *says, *text, *back;
} jsons[] = {
	{ "plain text", "abc", "abc" },
	{ "nothing", "", "" },
	{ "quotes and backslashes", "\"\\/", "\"\\/" },
	{ "control characters", "\x01\b\f\n\r\t\x1f\x7f", "\x01\b\f\n\r\t\x1f\x7f" },
	{ "two bytes", "\xc2\x80\xdf\xbf", "\xc2\x80\xdf\xbf" },
	{ "three bytes", "\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf" },
	{ "four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "next to the surrogates", "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80" },
	{ "a byte that begins nothing",
		"a\xff"
		"b",
		"a\\ufffdb" },
	{ "a continuation alone", "\x80", "\\ufffd" },
	{ "a sequence cut short", "\xe2\x82", "\\ufffd\\ufffd" },
	{ "a sequence cut short by a letter", "\xc3x", "\\ufffdx" },
	{ "a quote instead of a continuation", "\xc3\"", "\\ufffd\"" },
	{ "an overlong slash", "\xc0\xaf", "\\ufffd\\ufffd" },
	{ "an overlong form of three bytes", "\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd" },
	{ "an overlong form of four bytes", "\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd" },
	{ "a surrogate", "\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd" },
	{ "beyond Unicode", "\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd" },
	{ "five bytes", "\xf8\x88\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd" },
};

static void test_json(void **state)
{
	const struct json_row *row = *state;
	struct text t = { 0 };
	char back[256];

	text_add_json(&t, row->text);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_true(json_unquote(text_string(&t), t.len, back, sizeof back) >= 0);
	text_done(&t);
	assert_string_equal(back, row->back);
}

static void test_json_every_pair(void **state)
{
	(void)state;
	for (unsigned a = 1; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			const char word[3] = { (char)a, (char)b, '\0' };
			struct text t = { 0 };

			text_add_json(&t, word);
			if (!json_is_valid(text_string(&t), t.len))
				fail_msg("bytes %02x %02x: %s", a, b, text_string(&t));
			text_done(&t);
		}
}

static void test_json_null(void **state)
{
	struct text t = { 0 };

	(void)state;
	text_add_json(&t, NULL);
	assert_string_equal(text_string(&t), "null");
	text_done(&t);
}

static void test_wrapped(void **state)
{
	struct text t = { 0 };

	(void)state;
	text_add_wrapped(&t, "one two  three four-and-a-long-word five", 0, 2, 10);
	assert_string_equal(text_string(&t), "one two\n  three\n  four-and-a-long-word\n  five");
	text_done(&t);
}

/* The judge of JSON is judged itself, or it could let everything pass. */
static const struct judge_row {
	const char *says, *text;
	bool valid;
} judged[] = {
	{ "a full object is JSON", " {\"a\":[1,-2.5e+3,0],\"b\":{},\"c\":[true,null]}\n", true },
	{ "a comma too many is none", "[1,]", false },
	{ "a key without quotes is none", "{a:1}", false },
	{ "a bare newline in a string is none", "\"a\nb\"", false },
	{ "a leading zero is none", "[01]", false },
	{ "an unknown escape is none", "\"\\x41\"", false },
	{ "a short escape is none", "\"\\u12\"", false },
	{ "something behind is none", "{} {}", false },
	{ "an open string is none", "\"a", false },
	{ "bytes that are not UTF-8 are none", "\"\xff\"", false },
	{ "nothing is none", "", false },
};

static void test_judge(void **state)
{
	const struct judge_row *row = *state;

	assert_int_equal(json_is_valid(row->text, strlen(row->text)), row->valid);
}

static const struct shown_row {
	const char *says;
	const char *bytes;
	size_t len; /* 0: all of it */
	const char *shown;
} shown_rows[] = {
	{ "plain text", "rank 3: a/b", 0, "rank 3: a/b" },
	{ "UTF-8", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 0,
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
	{ "a tab", "a\tb", 0, "a    b" },
	{ "control characters", "\x1b[31m\a\n\r\x7f", 0, "\\x1b[31m\\x07\\x0a\\x0d\\x7f" },
	{ "C1 control characters", "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", 0,
		"\\x80\\x9b\\x9f\xc2\xa0" },
	{ "bytes that are not UTF-8", "\x80\xff\xc3 \xed\xa0\x80", 0,
		"\\x80\\xff\\xc3 \\xed\\xa0\\x80" },
	{ "a NUL", "a\0b", 3, "a\\x00b" },
	{ "a character that is cut is dropped", "a\xc3\xbc", 2, "a" },
	{ "a cut character that would be none", "\xe0\x80\x80", 2, "\\xe0\\x80" },
};

static void test_shown(void **state)
{
	const struct shown_row *row = *state;
	size_t len = row->len ? row->len : strlen(row->bytes);
	char *exact = malloc(len); /* so that a look too far is seen */
	struct text t = { 0 };

	assert_non_null(exact);
	memcpy(exact, row->bytes, len);
	text_add_shown(&t, exact, len);
	assert_string_equal(text_string(&t), row->shown);
	text_done(&t);
	free(exact);
}

TESTS(text)
{
	static struct suite s;

	suite_add(&s, "a text grows and stays a string", test_grows, NULL, NULL);
	suite_add(&s, "failure is sticky and keeps what was there", test_sticky, NULL, NULL);
	suite_add(&s, "a character that is cut does not count", test_whole, NULL, NULL);
	suite_add(&s, "lines break between words", test_wrapped, NULL, NULL);
	suite_add(&s, "NULL is JSON's null", test_json_null, NULL, NULL);
	suite_add(&s, "any two bytes make valid JSON", test_json_every_pair, NULL, NULL);
	SUITE_ROWS(&s, test_fit, fits);
	SUITE_ROWS(&s, test_judge, judged);
	SUITE_ROWS(&s, test_plain, plains);
	SUITE_ROWS(&s, test_control, controls);
	SUITE_ROWS(&s, test_label, labels);
	SUITE_ROWS(&s, test_json, jsons);
	SUITE_ROWS(&s, test_shown, shown_rows);
	return suite_run(&s);
}
