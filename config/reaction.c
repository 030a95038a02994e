/* reaction.c - see reaction.h */
#include "config/reaction.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/words.h"
#include "config/settings.h"

static_assert(NSIG <= REACTION_SIGNALS, "a signal without a place in struct reactions");

/* Signals that are left to the kernel, or that the launcher's own work needs, and why. */
static const struct {
	int signal;
	const char *why;
} left_alone[] = {
	{ SIGKILL, "no process can catch it" },
	{ SIGSTOP, "no process can catch it" },
	{ SIGCHLD, "it only means that a child has ended" },
	{ SIGSEGV, "it means that the launcher itself has crashed" },
	{ SIGBUS, "it means that the launcher itself has crashed" },
	{ SIGFPE, "it means that the launcher itself has crashed" },
	{ SIGILL, "it means that the launcher itself has crashed" },
	{ SIGPIPE, "it only means that nobody reads the launcher's output" },
	{ SIGTTIN, "the terminal stops background jobs with it" },
	{ SIGTTOU, "the terminal stops background jobs with it" },
};

/* NULL: it can be taken. */
static const char *why_not(int signal)
{
	for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
		if (signal == left_alone[i].signal)
			return left_alone[i].why;
	/* the first two real-time signals */
	return signal >= __SIGRTMIN && signal < SIGRTMIN ? "the C library reserves it" : NULL;
}

static void set_defaults(const struct settings *s, struct reactions *ret)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	uint64_t grace_ms = settings_number(s, SET_SHUTDOWN_TIMEOUT);

	*ret = (struct reactions){ 0 };
	for (int n = 1; n <= SIGRTMAX; n++)
		if (!why_not(n))
			ret->of[n] =
				(struct reaction){ REACTION_FORWARD, false, grace_ms, "default" };
	ret->of[SIGTSTP].kind = REACTION_SUSPEND;
	ret->of[SIGCONT].kind = REACTION_RESUME;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		ret->of[ends[i]].kind = REACTION_END;
	if (settings_given(s, SET_REQUEUE_EXIT_CODE)) {
		ret->of[SIGTERM].kind = REACTION_PREEMPT;
		ret->of[SIGTERM].from = settings_where(s, SET_REQUEUE_EXIT_CODE);
	}
}

static int find_signal(const char *where, const char *name, size_t len, struct failure *why)
{
	int signal = signal_number(name, len);

	if (signal < 0)
		return failure_usage(why,
			"%s: \"%.*s\" is not a signal: give a name like TERM or SIGUSR1, or a number",
			where, (int)len, name);
	if (why_not(signal))
		return failure_usage(why, "%s: %s can't be handled: %s", where, signal_name(signal),
			why_not(signal));
	return signal;
}

static int refuse_cont(const char *where, struct failure *why)
{
	return failure_usage(why,
		"%s: SIGCONT always resumes the workers and never ends the job: a shell sends it to resume a job, and mpirun before every SIGTERM",
		where);
}

/* torchrun's list of signals that end the job. Here the usual four do so in any case: without
 * that, one of them would end the launcher alone and leave its workers. */
static int add_ending(const struct settings *s, struct reactions *r, struct failure *why)
{
	const char *where = settings_where(s, SET_SIGNALS_TO_HANDLE);
	const char *list = settings_text(s, SET_SIGNALS_TO_HANDLE);

	while (*list) {
		const char *word;
		size_t len = list_next(&list, &word);
		int signal = find_signal(where, word, len, why);

		if (signal < 0)
			return signal;
		if (signal == SIGCONT)
			return refuse_cont(where, why);
		if (!reaction_ends(&r->of[signal])) {
			r->of[signal].kind = REACTION_END;
			r->of[signal].from = where;
		}
	}
	return 0;
}

/* "forward", "forward:600", "stop", "stop:5", "preempt", "preempt:100", "restart", "ignore" */
static int parse_action(const char *text, size_t len, struct reaction *ret)
{
	const char *colon = memchr(text, ':', len);
	size_t word = colon ? (size_t)(colon - text) : len;
	char seconds[32];

	if (word == 7 && strncmp(text, "forward", word) == 0)
		ret->kind = colon ? REACTION_END : REACTION_FORWARD;
	else if (word == 4 && strncmp(text, "stop", word) == 0)
		ret->kind = REACTION_STOP;
	else if (word == 7 && strncmp(text, "preempt", word) == 0)
		ret->kind = REACTION_PREEMPT;
	else if (word == 7 && strncmp(text, "restart", word) == 0 && !colon)
		ret->kind = REACTION_RESTART;
	else if (word == 6 && strncmp(text, "ignore", word) == 0 && !colon)
		ret->kind = REACTION_IGNORE;
	else if (word == 6 && strncmp(text, "reopen", word) == 0 && !colon)
		ret->kind = REACTION_REOPEN;
	else
		return -EINVAL;
	if (!colon)
		return 0;
	if (len - word - 1 >= sizeof seconds)
		return -EINVAL;
	memcpy(seconds, colon + 1, len - word - 1);
	seconds[len - word - 1] = '\0';
	return num_parse_seconds(seconds, setting_rows[SET_SHUTDOWN_TIMEOUT].max, &ret->grace_ms);
}

/* One SIGNAL=ACTION. */
static int put_action(
	const char *where, const char *word, size_t len, struct reactions *r, struct failure *why)
{
	const char *equals = memchr(word, '=', len);
	size_t name = equals ? (size_t)(equals - word) : len;
	struct reaction *to, now;
	int signal;

	if (!equals)
		return failure_usage(why, "%s: \"%.*s\" is not SIGNAL=ACTION, as in USR1=ignore",
			where, (int)len, word);
	signal = find_signal(where, word, name, why);
	if (signal < 0)
		return signal;
	to = &r->of[signal];
	if (to->named)
		return failure_usage(why, "%s: %s is listed twice", where, signal_name(signal));
	now = (struct reaction){ .named = true, .grace_ms = to->grace_ms, .from = where };
	if (parse_action(equals + 1, len - name - 1, &now) < 0)
		return failure_usage(why,
			"%s: \"%.*s\" is not an action: use forward, forward:SECONDS, stop, "
			"stop:SECONDS, preempt, preempt:SECONDS, restart, reopen or ignore",
			where, (int)len, word);
	if (signal == SIGCONT && now.kind != REACTION_FORWARD)
		return refuse_cont(where, why);
	if (signal == SIGCONT)
		now.kind = REACTION_RESUME;
	*to = now;
	return 0;
}

static int find_preempt(const struct settings *s, struct reactions *r, struct failure *why)
{
	const char *name = settings_text(s, SET_PREEMPT_SIGNAL);
	int signal = find_signal(settings_where(s, SET_PREEMPT_SIGNAL), name, strlen(name), why);

	r->preempt = signal;
	return signal < 0 ? signal : 0;
}

int reactions_make(const struct settings *s, struct reactions *ret, struct failure *why)
{
	const char *list = settings_text(s, SET_ON_SIGNAL);
	struct reactions r;
	int rc;

	set_defaults(s, &r);
	rc = add_ending(s, &r, why);
	if (rc == 0)
		rc = find_preempt(s, &r, why);
	while (rc == 0 && list && *list) {
		const char *word;
		size_t len = list_next(&list, &word);

		rc = put_action(settings_where(s, SET_ON_SIGNAL), word, len, &r, why);
	}
	if (rc == 0)
		*ret = r;
	return rc;
}

/* How each kind is called, to people and as --on-signal writes it. */
static const struct {
	const char *word, *action;
	bool has_grace;
} names[] = {
	[REACTION_NONE] = { "", "", false },
	[REACTION_IGNORE] = { "ignore", "ignore", false },
	[REACTION_REOPEN] = { "reopen log files", "reopen", false },
	[REACTION_FORWARD] = { "forward", "forward", false },
	[REACTION_SUSPEND] = { "stop workers and launchd, until SIGCONT", "suspend", false },
	[REACTION_RESUME] = { "resume workers that were stopped", "resume", false },
	[REACTION_END] = { "forward, and end the job", "forward", true },
	[REACTION_STOP] = { "send SIGTERM, and end the job", "stop", true },
	[REACTION_PREEMPT] = { "tell workers of a preemption, and end", "preempt", true },
	[REACTION_RESTART] = { "send SIGTERM, and restart the job", "restart", false },
};

bool reaction_ends(const struct reaction *r)
{
	return r->kind == REACTION_END || r->kind == REACTION_STOP || r->kind == REACTION_PREEMPT;
}

const char *reaction_word(enum reaction_kind kind)
{
	return names[kind].word;
}

const char *reaction_action(struct arena *arena, const struct reaction *r)
{
	if (!names[r->kind].has_grace)
		return names[r->kind].action;
	return arena_printf(arena, "%s:%s", names[r->kind].action, num_seconds(r->grace_ms).text);
}
