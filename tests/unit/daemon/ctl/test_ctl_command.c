/* test_ctl_command.c - launchctl's command line: what is understood, and what is wrong with it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "common/words.h"
#include "common/vec.h"
#include "daemon/ctl/ctl_command.h"

static const struct command_line {
	const char *says, *words;
	const char *what; /* is understood; NULL: it is refused */
	const char *why;  /* part of the sentence */
} lines[] = {
	{ "list", "list", "0", NULL },
	{ "list as JSON", "list --json", "0 json", NULL },
	{ "status", "status", "1", NULL },
	{ "status of a job", "status train", "1 of train", NULL },
	{ "the job as an option, anywhere", "status -j train --json", "1 of train json", NULL },
	{ "the job before the command", "--job=train status", "1 of train", NULL },
	{ "a job's name like an option's", "status -- -x", "1 of -x", NULL },
	{ "watch", "status -w", "1 watch 2000", NULL },
	{ "watch as often, by the letter", "status -w5", "1 watch 5000", NULL },
	{ "watch as often", "status --watch=0.5", "1 watch 500", NULL },
	{ "the name after a flag", "status -w train", "1 of train watch 2000", NULL },
	{ "all nodes", "status --all-nodes --json", "1 json all nodes", NULL },
	{ "all nodes, in a letter", "status -a train", "1 of train all nodes", NULL },
	{ "logs", "logs", "2", NULL },
	{ "logs of ranks", "logs 3 0-2 1,7", "2 ranks 0 1 2 3 7", NULL },
	{ "follow", "logs -f -n 5 3", "2 follow lines 5 ranks 3", NULL },
	{ "a value in the same word", "logs -n5", "2 lines 5", NULL },
	{ "a signal", "signal usr1", "3 SIGUSR1", NULL },
	{ "a signal's number", "signal 9 2", "3 SIGKILL ranks 2", NULL },
	{ "stop", "stop", "4", NULL },
	{ "stop now", "stop train --now", "4 of train now", NULL },
	{ "restart", "restart", "5", NULL },
	{ "reopen", "reopen train", "6 of train", NULL },
	{ "env", "env 3", "7 ranks 3", NULL },
	{ "stack", "-j 811 stack 3", "8 of 811 ranks 3", NULL },
	{ "events", "events -f", "9 follow", NULL },
	{ "metrics", "metrics", "10", NULL },
	{ "loglevel", "loglevel", "11", NULL },
	{ "another level", "loglevel quiet", "11 quiet", NULL },
	{ "help", "status --help --nope", "12", NULL },
	{ "version", "--version", "13", NULL },
	{ "version as a command", "version", "13", NULL },
	/* and what is wrong */
	{ "nothing", "", NULL, "no command is given" },
	{ "only a job", "-j train", NULL, "no command is given" },
	{ "no such command", "fly", NULL, "there is no command \"fly\"" },
	{ "no such option", "status --fly", NULL, "there is no option --fly" },
	{ "no such letter", "status -x", NULL, "there is no option -x" },
	{ "letters together", "status -wf", NULL, "not \"f\"" },
	{ "half an option", "status --js", NULL, "there is no option --js" },
	{ "another command's option", "status --now", NULL, "status has no option --now" },
	{ "a command of this node alone", "signal -a USR1", NULL,
		"signal has no option --all-nodes" },
	{ "another command's option, before it", "-f stop", NULL, "stop has no option --follow" },
	{ "a value of a flag", "status --json=yes", NULL, "--json takes no value: --json=yes" },
	{ "no value", "status -j", NULL, "--job needs a value" },
	{ "no time", "status --watch=often", NULL, "not \"often\"" },
	{ "never", "status --watch=0", NULL, "not \"0\"" },
	{ "too many lines", "logs -n 1001", NULL, "a number from 1 to 1000" },
	{ "no rank", "logs a", NULL, "\"a\" is not a rank" },
	{ "a range that goes back", "logs 3-1", NULL, "\"3-1\" is not a rank" },
	{ "an empty rank", "logs 3,,4", NULL, "\"3,,4\" is not a rank" },
	{ "a million ranks", "logs 0-999999", NULL, "more than 1000 ranks" },
	{ "two jobs", "status a b", NULL, "two jobs are named: \"a\" and \"b\"" },
	{ "a job too many", "list -j a", NULL, "list is not about one job" },
	{ "a word too many", "list a", NULL, "list takes no \"a\"" },
	{ "no signal", "signal", NULL, "which one?" },
	{ "no such signal", "signal 3,4", NULL, "\"3,4\" is no signal" },
	{ "env of none", "env", NULL, "env: exactly one rank" },
	{ "env of two", "env 1-2", NULL, "env: exactly one rank" },
	{ "events of the past", "events", NULL, "-f is needed" },
	{ "no such level", "loglevel loud", NULL, "\"loud\" is no level" },
	{ "two levels", "loglevel quiet info", NULL, "\"info\" is no level" },
};

static void describe(const struct ctl_command *c, struct text *out)
{
	text_printf(out, "%d", (int)c->what);
	if (c->job)
		text_printf(out, " of %s", c->job);
	text_add(out, c->json ? " json" : "");
	text_add(out, c->now ? " now" : "");
	text_add(out, c->follow ? " follow" : "");
	text_add(out, c->all_nodes ? " all nodes" : "");
	if (c->watch_ms)
		text_printf(out, " watch %d", (int)c->watch_ms);
	if (c->lines)
		text_printf(out, " lines %u", c->lines);
	if (c->signal)
		text_printf(out, " %s", c->signal);
	if (c->level)
		text_printf(out, " %s", c->level);
	for (size_t i = 0; i < c->rank_count; i++)
		text_printf(out, "%s %u", i == 0 ? " ranks" : "", c->ranks[i]);
}

static void test_line(void **state)
{
	const struct command_line *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct ctl_command c;
	struct vec words = { 0 };
	struct text got = { 0 };
	const char *fault;
	int rc;

	assert_int_equal(words_split(row->words, &arena, &words, &fault), 0);
	rc = ctl_command_read((const char *const *)vec_argv(&words), &arena, &c, &why);
	assert_outcome(rc, row->what ? 0 : -EINVAL, &why, row->why);
	if (row->what) {
		describe(&c, &got);
		assert_string_equal(text_string(&got), row->what);
	} else {
		assert_int_equal(why.class, FAILURE_USAGE);
	}
	text_done(&got);
	arena_done(&arena);
}

static void test_print(void **state)
{
	struct text out = { 0 };

	(void)state;
	ctl_command_help(&out);
	assert_contains(text_string(&out), "\n  logs [-n LINES] [-f] [RANK...]");
	for (const char *line = text_string(&out), *end; (end = strchr(line, '\n')); line = end + 1)
		assert_true(end - line < 100);
	text_done(&out);
	ctl_command_bash(&out);
	assert_contains(text_string(&out), "list status logs signal");
	text_done(&out);
	ctl_command_zsh(&out);
	assert_contains(text_string(&out), "'stop:Stop the job");
	assert_contains(text_string(&out), "'metrics:Print the job'\\''s metrics");
	text_done(&out);
}

TESTS(ctl_command)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_line, lines);
	suite_add(&s, "help and completions", test_print, NULL, NULL);
	return suite_run(&s);
}
