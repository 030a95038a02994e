/* test_reaction.c - what follows each signal: defaults, --signals-to-handle, --on-signal. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "config/reaction.h"

static const struct reaction_row {
	const char *says;
	const char *on_signal, *to_handle; /* NULL: not given */
	int signal;
	enum reaction_kind kind;
	uint64_t grace_ms;
	bool named;
	const char *from, *action;
} rows[] = {
	{ "TERM ends the job", NULL, NULL, SIGTERM, REACTION_END, 30000, false, "default",
		"forward:30" },
	{ "INT ends the job", NULL, NULL, SIGINT, REACTION_END, 30000, false, "default",
		"forward:30" },
	{ "HUP ends the job", NULL, NULL, SIGHUP, REACTION_END, 30000, false, "default",
		"forward:30" },
	{ "QUIT ends the job", NULL, NULL, SIGQUIT, REACTION_END, 30000, false, "default",
		"forward:30" },
	{ "USR1 is forwarded", NULL, NULL, SIGUSR1, REACTION_FORWARD, 30000, false, "default",
		"forward" },
	{ "ALRM is forwarded", NULL, NULL, SIGALRM, REACTION_FORWARD, 30000, false, "default",
		"forward" },
	{ "WINCH is forwarded", NULL, NULL, SIGWINCH, REACTION_FORWARD, 30000, false, "default",
		"forward" },
	{ "URG is forwarded", NULL, NULL, SIGURG, REACTION_FORWARD, 30000, false, "default",
		"forward" },
	{ "the last real-time signal is forwarded", NULL, NULL, 64, REACTION_FORWARD, 30000, false,
		"default", "forward" },
	{ "TSTP suspends", NULL, NULL, SIGTSTP, REACTION_SUSPEND, 30000, false, "default",
		"suspend" },
	{ "CONT resumes", NULL, NULL, SIGCONT, REACTION_RESUME, 30000, false, "default", "resume" },
	{ "KILL is left alone", NULL, NULL, SIGKILL, REACTION_NONE, 0, false, NULL, "" },
	{ "STOP is left alone", NULL, NULL, SIGSTOP, REACTION_NONE, 0, false, NULL, "" },
	{ "CHLD is left alone", NULL, NULL, SIGCHLD, REACTION_NONE, 0, false, NULL, "" },
	{ "SEGV is left alone", NULL, NULL, SIGSEGV, REACTION_NONE, 0, false, NULL, "" },
	{ "PIPE is left alone", NULL, NULL, SIGPIPE, REACTION_NONE, 0, false, NULL, "" },
	{ "TTIN is left alone", NULL, NULL, SIGTTIN, REACTION_NONE, 0, false, NULL, "" },
	{ "the threads library's own is left alone", NULL, NULL, 32, REACTION_NONE, 0, false, NULL,
		"" },

	{ "torchrun's list adds a signal", NULL, "SIGTERM,SIGUSR1", SIGUSR1, REACTION_END, 30000,
		false, "--signals-to-handle", "forward:30" },
	{ "torchrun's list takes none away", NULL, "SIGUSR1", SIGTERM, REACTION_END, 30000, false,
		"default", "forward:30" },
	{ "torchrun's list names one that ends the job anyway", NULL, "SIGUSR1,SIGTERM", SIGTERM,
		REACTION_END, 30000, false, "default", "forward:30" },
	{ "blanks around names", NULL, " SIGTERM , SIGUSR2 ", SIGUSR2, REACTION_END, 30000, false,
		"--signals-to-handle", "forward:30" },
	{ "the list may have TSTP", NULL, "SIGTSTP", SIGTSTP, REACTION_END, 30000, false,
		"--signals-to-handle", "forward:30" },

	{ "ignore", "HUP=ignore", NULL, SIGHUP, REACTION_IGNORE, 30000, true, "--on-signal",
		"ignore" },
	{ "forward, and the job lives", "TERM=forward", NULL, SIGTERM, REACTION_FORWARD, 30000,
		true, "--on-signal", "forward" },
	{ "forward within a time ends the job", "USR1=forward:600", NULL, SIGUSR1, REACTION_END,
		600000, true, "--on-signal", "forward:600" },
	{ "forward within a time shorter than a second", "TERM=forward:0.25", NULL, SIGTERM,
		REACTION_END, 250, true, "--on-signal", "forward:0.25" },
	{ "forward within no time", "TERM=forward:0", NULL, SIGTERM, REACTION_END, 0, true,
		"--on-signal", "forward:0" },
	{ "stop", "INT=stop", NULL, SIGINT, REACTION_STOP, 30000, true, "--on-signal", "stop:30" },
	{ "stop within a time", "USR2=stop:5", NULL, SIGUSR2, REACTION_STOP, 5000, true,
		"--on-signal", "stop:5" },
	{ "preempt", "USR1=preempt", NULL, SIGUSR1, REACTION_PREEMPT, 30000, true, "--on-signal",
		"preempt:30" },
	{ "preempt within a time", "USR1=preempt:2m", NULL, SIGUSR1, REACTION_PREEMPT, 120000, true,
		"--on-signal", "preempt:120" },
	{ "restart", "USR2=restart", NULL, SIGUSR2, REACTION_RESTART, 30000, true, "--on-signal",
		"restart" },
	{ "reopen", "USR1=reopen", NULL, SIGUSR1, REACTION_REOPEN, 30000, true, "--on-signal",
		"reopen" },
	{ "TSTP can be ignored", "TSTP=ignore", NULL, SIGTSTP, REACTION_IGNORE, 30000, true,
		"--on-signal", "ignore" },
	{ "CONT is forwarded in any case", "CONT=forward", NULL, SIGCONT, REACTION_RESUME, 30000,
		true, "--on-signal", "resume" },
	{ "one of several, the first", "USR1=ignore,USR2=stop", NULL, SIGUSR1, REACTION_IGNORE,
		30000, true, "--on-signal", "ignore" },
	{ "one of several, the last", "USR1=ignore, SIGUSR2=stop:1 ,", NULL, SIGUSR2, REACTION_STOP,
		1000, true, "--on-signal", "stop:1" },
	{ "one of several, none of them", "USR1=ignore,USR2=stop", NULL, SIGTERM, REACTION_END,
		30000, false, "default", "forward:30" },
	{ "a signal by its number", "10=ignore", NULL, 10, REACTION_IGNORE, 30000, true,
		"--on-signal", "ignore" },
	{ "a real-time signal", "rtmin+2=ignore", NULL, 36, REACTION_IGNORE, 30000, true,
		"--on-signal", "ignore" },
	{ "--on-signal goes above torchrun's list", "USR1=ignore", "USR1,USR2", SIGUSR1,
		REACTION_IGNORE, 30000, true, "--on-signal", "ignore" },
	{ "--on-signal leaves the rest of torchrun's list", "USR1=ignore", "USR1,USR2", SIGUSR2,
		REACTION_END, 30000, false, "--signals-to-handle", "forward:30" },
};

static int make(struct settings_fixture *b, const char *on_signal, const char *to_handle,
	struct reactions *ret)
{
	settings_fixture_make(b, false);
	settings_fixture_put(b, SET_ON_SIGNAL, on_signal, "--on-signal");
	settings_fixture_put(b, SET_SIGNALS_TO_HANDLE, to_handle, "--signals-to-handle");
	return reactions_make(&b->s, ret, &b->why);
}

static void test_reaction(void **state)
{
	const struct reaction_row *row = *state;
	struct reactions all;
	const struct reaction *r = &all.of[row->signal];
	struct settings_fixture b;
	int rc = make(&b, row->on_signal, row->to_handle, &all);

	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(r->kind, row->kind);
	assert_true(r->grace_ms == row->grace_ms);
	assert_int_equal(r->named, row->named);
	assert_true((r->from == NULL) == (row->from == NULL));
	if (r->from)
		assert_string_equal(r->from, row->from);
	assert_string_equal(reaction_action(&b.arena, r), row->action);
	assert_true((*reaction_word(r->kind) == '\0') == (row->kind == REACTION_NONE));
	settings_fixture_done(&b);
}

static const struct refused_row {
	const char *says, *on_signal, *to_handle, *part;
} refusals[] = {
	{ "an unknown signal", "TERMINATE=stop", NULL,
		"--on-signal: \"TERMINATE\" is not a signal: give a name like TERM or SIGUSR1" },
	{ "no signal", "=stop", NULL, "\"\" is not a signal" },
	{ "the number of no signal", "65=stop", NULL, "\"65\" is not a signal" },
	{ "blanks before '='", "TERM =stop", NULL, "\"TERM \" is not a signal" },
	{ "no action", "TERM", NULL, "\"TERM\" is not SIGNAL=ACTION, as in USR1=ignore" },
	{ "an empty action", "TERM=", NULL, "\"TERM=\" is not an action: use forward" },
	{ "an unknown action", "TERM=kill", NULL, "\"TERM=kill\" is not an action" },
	{ "an unknown action of six letters", "TERM=reload", NULL, "\"TERM=reload\" is not an" },
	{ "an unknown action of seven", "TERM=discard", NULL, "\"TERM=discard\" is not an" },
	{ "an action's beginning", "TERM=forw", NULL, "\"TERM=forw\" is not an action" },
	{ "an action and more", "TERM=stops", NULL, "\"TERM=stops\" is not an action" },
	{ "a grace that is none", "TERM=stop:x", NULL, "\"TERM=stop:x\" is not an action" },
	{ "an empty grace", "TERM=stop:", NULL, "\"TERM=stop:\" is not an action" },
	{ "a grace below 0", "TERM=stop:-1", NULL, "\"TERM=stop:-1\" is not an action" },
	{ "a grace over a year", "TERM=stop:31536001", NULL, "\"TERM=stop:31536001\" is not an" },
	{ "a grace without end", "TERM=stop:00000000000000000000000000000000001", NULL,
		"is not an action" },
	{ "a grace for ignore", "TERM=ignore:5", NULL, "\"TERM=ignore:5\" is not an action" },
	{ "a grace for reopen", "HUP=reopen:5", NULL, "\"HUP=reopen:5\" is not an action" },
	{ "a grace for a restart", "HUP=restart:5", NULL, "\"HUP=restart:5\" is not an action" },
	{ "CONT to reopen", "CONT=reopen", NULL, "SIGCONT always resumes" },
	{ "the second is wrong", "USR1=ignore,TERM=x", NULL, "\"TERM=x\" is not an action" },
	{ "an empty entry", "USR1=ignore,,TERM=stop", NULL, "\"\" is not SIGNAL=ACTION" },
	{ "one twice", "TERM=stop,TERM=stop", NULL, "--on-signal: SIGTERM is listed twice" },
	{ "one twice by two names", "TERM=stop,15=ignore", NULL, "SIGTERM is listed twice" },
	{ "KILL", "KILL=ignore", NULL, "SIGKILL can't be handled: no process can catch it" },
	{ "STOP", "STOP=ignore", NULL, "SIGSTOP can't be handled: no process can catch it" },
	{ "SEGV", "SEGV=ignore", NULL, "SIGSEGV can't be handled: it means that the launcher" },
	{ "CHLD", "CHLD=forward", NULL, "SIGCHLD can't be handled: it only means that a child" },
	{ "PIPE", "PIPE=ignore", NULL, "SIGPIPE can't be handled" },
	{ "TTOU", "TTOU=ignore", NULL, "SIGTTOU can't be handled" },
	{ "one of the threads library's own", "33=ignore", NULL,
		"signal 33 can't be handled: the C library reserves it" },
	{ "CONT as an end", "CONT=stop", NULL, "--on-signal: SIGCONT always resumes the workers" },
	{ "CONT as an end within a time", "CONT=forward:5", NULL, "SIGCONT always resumes" },
	{ "CONT ignored", "CONT=ignore", NULL, "SIGCONT always resumes" },
	{ "torchrun's list with an unknown signal", NULL, "SIGTERM,SIGFOO",
		"--signals-to-handle: \"SIGFOO\" is not a signal" },
	{ "torchrun's list with an empty entry", NULL, "SIGTERM,,SIGINT", "\"\" is not a signal" },
	{ "torchrun's list of blanks", NULL, " ", "\"\" is not a signal" },
	{ "torchrun's list with KILL", NULL, "SIGKILL",
		"--signals-to-handle: SIGKILL can't be handled: no process" },
	{ "torchrun's list with CONT", NULL, "SIGCONT",
		"--signals-to-handle: SIGCONT always resumes" },
};

/* --requeue-exit-code and --preempt-signal. */
static const struct preempt_row {
	const char *says, *code, *signal, *on_signal, *to_handle;
	int told; /* what workers get */
	const char *term, *from;
} preempts[] = {
	{ "without any of them SIGTERM is a stop", NULL, NULL, NULL, NULL, SIGTERM, "forward:30",
		"default" },
	{ "a signal of the user's", NULL, "USR1", NULL, NULL, SIGUSR1, "forward:30", "default" },
	{ "... by its number", NULL, "12", NULL, NULL, SIGUSR2, "forward:30", "default" },
	{ "with an exit code SIGTERM is a preemption", "75", NULL, NULL, NULL, SIGTERM,
		"preempt:30", "--requeue-exit-code" },
	{ "... also where torchrun's list has it", "3", "USR2", NULL, "SIGTERM,SIGINT", SIGUSR2,
		"preempt:30", "--requeue-exit-code" },
	{ "... but not where --on-signal says what it is", "3", NULL, "TERM=stop:5", NULL, SIGTERM,
		"stop:5", "--on-signal" },
};

static void test_preempt(void **state)
{
	const struct preempt_row *row = *state;
	struct settings_fixture b;
	struct reactions all;
	int rc;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_REQUEUE_EXIT_CODE, row->code, "--requeue-exit-code");
	settings_fixture_put(&b, SET_PREEMPT_SIGNAL, row->signal, "--preempt-signal");
	settings_fixture_put(&b, SET_ON_SIGNAL, row->on_signal, "--on-signal");
	settings_fixture_put(&b, SET_SIGNALS_TO_HANDLE, row->to_handle, "--signals-to-handle");
	rc = reactions_make(&b.s, &all, &b.why);
	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(all.preempt, row->told);
	assert_string_equal(reaction_action(&b.arena, &all.of[SIGTERM]), row->term);
	assert_string_equal(all.of[SIGTERM].from, row->from);
	settings_fixture_done(&b);
}

static const struct unfit_row {
	const char *says, *signal, *part;
} unfit[] = {
	{ "no signal", "WARN", "--preempt-signal: \"WARN\" is not a signal: give a name" },
	{ "one that kills", "KILL", "--preempt-signal: SIGKILL can't be handled: no process" },
	{ "one that nobody sees", "CHLD", "--preempt-signal: SIGCHLD can't be handled" },
};

static void test_unfit(void **state)
{
	const struct unfit_row *row = *state;
	struct reactions all = { 0 };
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_PREEMPT_SIGNAL, row->signal, "--preempt-signal");
	rc = reactions_make(&b.s, &all, &b.why);
	assert_outcome(rc, -EINVAL, &b.why, row->part);
	assert_int_equal(all.preempt, 0); /* untouched */
	settings_fixture_done(&b);
}

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	struct reactions all = { 0 };
	struct settings_fixture b;
	int rc = make(&b, row->on_signal, row->to_handle, &all);

	assert_outcome(rc, -EINVAL, &b.why, row->part);
	for (int n = 0; n < REACTION_SIGNALS; n++)
		assert_int_equal(all.of[n].kind, REACTION_NONE); /* untouched */
	settings_fixture_done(&b);
}

/* One grace for all, whatever sets it. */
static void test_grace(void **state)
{
	struct reactions all;
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_SHUTDOWN_TIMEOUT, "2.5", "--shutdown-timeout");
	assert_outcome(reactions_make(&b.s, &all, &b.why), 0, &b.why, NULL);
	assert_true(all.of[SIGTERM].grace_ms == 2500 && all.of[SIGHUP].grace_ms == 2500);
	settings_fixture_done(&b);
}

TESTS(reaction)
{
	static struct suite s;

	SUITE_ROWS(&s, test_reaction, rows);
	SUITE_ROWS(&s, test_refused, refusals);
	SUITE_ROWS(&s, test_preempt, preempts);
	SUITE_ROWS(&s, test_unfit, unfit);
	suite_add(&s, "the grace is that of --shutdown-timeout", test_grace, NULL, NULL);
	return suite_run(&s);
}
