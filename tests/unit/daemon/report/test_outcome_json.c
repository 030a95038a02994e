/* test_outcome_json.c - members that the report and the events share. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>

#include "common/json.h"
#include "common/text.h"
#include "daemon/report/outcome_json.h"
#include "tests/unit/json.h"

static const struct sender_row {
	const char *says;
	struct sender sender;
	const char *text;
} senders[] = {
	{ "nobody knows", { .pid = 0 }, "{\"sender\":null}" },
	{ "a process", { 812, 1000, false, "bash" },
		"{\"sender\":{\"pid\":812,\"uid\":1000,\"command\":\"bash\",\"kernel\":false}}" },
	{ "a process that is gone", { 812, 0, false, "" },
		"{\"sender\":{\"pid\":812,\"uid\":0,\"command\":null,\"kernel\":false}}" },
	{ "the kernel", { 0, 0, true, "" },
		"{\"sender\":{\"pid\":null,\"uid\":null,\"command\":null,\"kernel\":true}}" },
	{ "a name without its NUL",
		{ 1, 0, false,
			{ 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
				'p' } },
		"{\"sender\":{\"pid\":1,\"uid\":0,\"command\":\"abcdefghijklmnop\","
		"\"kernel\":false}}" },
};

static void test_sender(void **state)
{
	const struct sender_row *row = *state;
	struct text t = { 0 };
	struct json j = { .out = &t };

	json_object_begin(&j, NULL);
	json_sender(&j, &row->sender);
	json_object_end(&j);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static const struct ending_row {
	const char *says;
	struct outcome outcome;
	const char *text;
} endings[] = {
	{ "an exit code", { .end = { ENDED_EXIT, 3, true } },
		"{\"exit_code\":3,\"signal\":null,\"error\":null,\"core_dumped\":false,\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,"
		"\"ended_by_launchd\":false,\"killed_by_launchd\":false,\"asked_signal\":null}" },
	{ "a signal with a core, after ours",
		{ .end = { ENDED_SIGNAL, SIGSEGV, true },
			.oom = OOM_LIKELY,
			.asked = ASKED_TO_STOP,
			.asked_signal = SIGTERM },
		"{\"exit_code\":null,\"signal\":\"SIGSEGV\",\"error\":null,\"core_dumped\":true,"
		"\"oom\":\"likely\",\"oom_limit\":null,\"oom_limit_bytes\":null,\"ended_by_launchd\":true,\"killed_by_launchd\":false,"
		"\"asked_signal\":\"SIGTERM\"}" },
	{ "killed by us",
		{ .end = { ENDED_SIGNAL, SIGKILL, false },
			.oom = OOM_YES,
			.oom_limit = OOM_LIMIT_ABOVE,
			.oom_bytes = 4096,
			.asked = ASKED_KILLED,
			.asked_signal = SIGINT },
		"{\"exit_code\":null,\"signal\":\"SIGKILL\",\"error\":null,\"core_dumped\":false,"
		"\"oom\":\"yes\",\"oom_limit\":\"above\",\"oom_limit_bytes\":4096,\"ended_by_launchd\":true,\"killed_by_launchd\":true,"
		"\"asked_signal\":\"SIGINT\"}" },
	{ "not started", { .end = { ENDED_UNSTARTED, ENOENT, false } },
		"{\"exit_code\":null,\"signal\":null,\"error\":\"No such file or directory\","
		"\"core_dumped\":false,\"oom\":\"no\",\"oom_limit\":null,\"oom_limit_bytes\":null,\"ended_by_launchd\":false,"
		"\"killed_by_launchd\":false,\"asked_signal\":null}" },
};

static void test_ending(void **state)
{
	const struct ending_row *row = *state;
	struct text t = { 0 };
	struct json j = { .out = &t };

	json_object_begin(&j, NULL);
	json_ending(&j, &row->outcome);
	json_asked(&j, &row->outcome);
	json_object_end(&j);
	assert_true(json_is_valid(text_string(&t), t.len));
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

static const struct seconds_row {
	const char *says;
	uint64_t from_ns, to_ns;
	const char *text;
} seconds[] = {
	{ "microseconds, cut", 1, 1500000999, "{\"s\":1.500000}" },
	{ "leading zeros", 1, 45001, "{\"s\":0.000045}" },
	{ "never backwards", 9000, 1, "{\"s\":0.000000}" },
	{ "no beginning", 0, 9000, "{\"s\":null}" },
	{ "no end", 9000, 0, "{\"s\":null}" },
};

static void test_seconds(void **state)
{
	const struct seconds_row *row = *state;
	struct text t = { 0 };
	struct json j = { .out = &t };

	json_object_begin(&j, NULL);
	json_seconds(&j, "s", row->from_ns, row->to_ns);
	json_object_end(&j);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

/* Each word is one of launchd(1)'s, and none is missing. */
static void test_words(void **state)
{
	(void)state;
	for (int kind = CAUSE_NONE; kind <= CAUSE_PREEMPTED; kind++)
		assert_true(json_cause_word((enum cause_kind)kind)[0] >= 'a');
	for (int how = ENDED_NONE; how <= ENDED_SENT; how++)
		assert_true(json_how_word((enum how)how)[0] >= 'a');
	assert_string_equal(json_cause_word(CAUSE_GUARD), "launchd_killed");
	assert_string_equal(json_how_word(ENDED_UNMADE), "not_startable");
	assert_string_equal(json_how_word(ENDED_SENT), "sent_signal");
}

TESTS(outcome_json)
{
	static struct suite s;

	SUITE_ROWS(&s, test_sender, senders);
	SUITE_ROWS(&s, test_ending, endings);
	SUITE_ROWS(&s, test_seconds, seconds);
	suite_add(&s, "words", test_words, NULL, NULL);
	return suite_run(&s);
}
