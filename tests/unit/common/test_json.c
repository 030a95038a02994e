/* test_json.c - the writer puts the commas, whatever is written in whatever order. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "common/text.h"
#include "common/vec.h"
#include "tests/unit/json.h"

/* A value in letters: { } [ ] for themselves, s a string, n a number, t and f the truth, z null,
 * d a decimal, l a list of words, / a new line, | before all: in lines. In objects members have the
 * keys "a", "b", ... */
static const struct row {
	const char *says, *letters, *text;
} rows[] = {
	{ "an empty object", "{}", "{}" },
	{ "an empty array", "[]", "[]" },
	{ "a value alone", "n", "-7" },
	{ "one member has no comma", "{s}", "{\"a\":\"x\\\"\\u000a\"}" },
	{ "members have commas between them", "{stfz}",
		"{\"a\":\"x\\\"\\u000a\",\"b\":true,\"c\":false,\"d\":null}" },
	{ "elements have no keys", "[nsz]", "[-7,\"x\\\"\\u000a\",null]" },
	{ "an object behind an empty object", "[{}{}n]", "[{},{},-7]" },
	{ "a member behind an empty array", "{[]n}", "{\"a\":[],\"b\":-7}" },
	{ "an array in an array in an object", "{[[n]n]t}", "{\"a\":[[-7],-7],\"b\":true}" },
	{ "decimals keep their zeros", "[d]", "[1.000045]" },
	{ "a list of words", "{ln}", "{\"a\":[\"one\",\"\"],\"b\":-7}" },
	{ "a new line comes behind the comma", "{n/n}", "{\"a\":-7,\n \"b\":-7}" },
	{ "a new line as deep as the member", "[/[/n/]]", "[\n [\n  -7]]" },
	{ "members of the outermost object in lines", "|{n[nn]n}",
		"{\n \"a\":-7,\n \"b\":[-7,-7],\n \"c\":-7}" },
	{ "and objects, wherever they are", "|{[{}{n{n}n}]}",
		"{\n \"a\":[\n  {},\n  {\"a\":-7,\n   \"b\":{\"a\":-7},\"c\":-7}]}" },
};

static void write_letters(struct json *j, const char *letters)
{
	static const char *const words[] = { "one", "", NULL };
	const struct vec list = { (const char **)(void *)(uintptr_t)words, 2, 2 };
	char open[33] = "", key[2] = "a", next[33] = "";
	unsigned depth = 0;

	for (; *letters; letters++) {
		bool keyed = depth > 0 && open[depth - 1] == '{' && !strchr("}]/|", *letters);
		const char *k = keyed ? key : NULL;

		if (keyed)
			key[0] = (char)('a' + next[depth - 1]++);
		switch (*letters) {
		case '{':
		case '[':
			(*letters == '{' ? json_object_begin : json_array_begin)(j, k);
			open[depth] = *letters;
			next[depth++] = 0;
			break;
		case '}':
		case ']':
			(*letters == '}' ? json_object_end : json_array_end)(j);
			depth--;
			break;
		case 's':
			json_string(j, k, "x\"\n");
			break;
		case 'n':
			json_number(j, k, -7);
			break;
		case 't':
		case 'f':
			json_bool(j, k, *letters == 't');
			break;
		case 'z':
			json_number_if(j, k, false, 7);
			break;
		case 'd':
			json_decimal(j, k, 1000045, 6);
			break;
		case 'l':
			json_strings(j, k, &list);
			break;
		case '/':
			json_line(j);
			break;
		default:
			j->lines = true;
		}
	}
}

static void test_row(void **state)
{
	const struct row *row = *state;
	struct text t = { 0 };
	struct json j = { .out = &t };

	write_letters(&j, row->letters);
	assert_string_equal(text_string(&t), row->text);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_int_equal(j.depth, 0);
	text_done(&t);
}

static void keyless(struct json *j)
{
	json_object_begin(j, NULL);
	json_number(j, NULL, 1);
}

static void keyed_element(struct json *j)
{
	json_array_begin(j, NULL);
	json_number(j, "a", 1);
}

static void keyed_top(struct json *j)
{
	json_number(j, "a", 1);
}

static void crossed(struct json *j)
{
	json_array_begin(j, NULL);
	json_object_end(j);
}

static void too_many_ends(struct json *j)
{
	json_object_begin(j, NULL);
	json_object_end(j);
	json_object_end(j);
}

static void second_value(struct json *j)
{
	json_object_begin(j, NULL);
	json_object_end(j);
	json_object_begin(j, NULL);
}

static void too_deep(struct json *j)
{
	for (int i = 0; i < 33; i++)
		json_array_begin(j, NULL);
}

/* What is no JSON. */
static const struct wrong_row {
	const char *says;
	void (*write)(struct json *j);
} wrong[] = {
	{ "a member without a key", keyless },
	{ "an element with a key", keyed_element },
	{ "a key for the whole value", keyed_top },
	{ "an array that ends as an object", crossed },
	{ "more ends than begins", too_many_ends },
	{ "a second value", second_value },
	{ "deeper than the writer counts", too_deep },
};

static void test_wrong(void **state)
{
	const struct wrong_row *row = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct text t = { 0 };
		struct json j = { .out = &t };

		(void)signal(SIGABRT, SIG_DFL);
		(void)close(2); /* of what assert() says */
		row->write(&j);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TESTS(json)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	SUITE_ROWS(&s, test_wrong, wrong);
	return suite_run(&s);
}
