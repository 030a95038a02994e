/* reaction.c - see reaction.h */
#include "config/reaction.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/signame.h"
#include "config/settings.h"

/* Signals that say that this process itself has gone wrong, that can't be caught, or that its own
 * work needs: they are left to the kernel, or to the launcher. */
static bool is_takable(int signal)
{
	static const int left_alone[] = { SIGKILL, SIGSTOP, SIGCHLD, SIGSEGV, SIGBUS, SIGFPE,
		SIGILL, SIGPIPE, SIGTTIN, SIGTTOU };

	for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
		if (signal == left_alone[i])
			return false;
	/* the C library keeps the first two real-time signals to itself */
	return signal < __SIGRTMIN || signal >= SIGRTMIN;
}

static void presets(const struct settings *s, struct reactions *ret)
{
	static const int ends[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

	*ret = (struct reactions){ 0 };
	for (int n = 1; n <= SIGRTMAX; n++)
		if (is_takable(n))
			ret->of[n].kind = REACTION_FORWARD;
	ret->of[SIGTSTP].kind = REACTION_SUSPEND;
	ret->of[SIGCONT].kind = REACTION_RESUME;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		ret->of[ends[i]].kind = REACTION_END;
	for (int n = 1; n < REACTION_SIGNALS; n++)
		ret->of[n].grace_ms = settings_number(s, SET_SHUTDOWN_TIMEOUT);
}

/* One word up to a comma; *list is moved behind it. */
static const char *next_word(const char **list, size_t *ret_len)
{
	const char *word = *list + strspn(*list, " ");
	size_t len = strcspn(word, ",");

	*list = word + len + (word[len] == ',');
	while (len > 0 && word[len - 1] == ' ')
		len--;
	*ret_len = len;
	return word;
}

static int find_signal(const char *where, const char *name, size_t len, struct failure *why)
{
	int signal = signal_number(name, len);

	if (signal < 0)
		return failure_set(why, -EINVAL,
			"%s: \"%.*s\" is not a signal; it needs a name like TERM or SIGUSR1, or a "
			"number",
			where, (int)len, name);
	if (!is_takable(signal))
		return failure_set(why, -EINVAL, "%s: %s can't be handled by a launcher", where,
			signal_name(signal));
	return signal;
}

/* torchrun's list of signals that end the job. Here the usual four do so in any case: without
 * that, one of them would end the launcher alone and leave its workers. */
static int add_ending(const struct settings *s, struct reactions *r, struct failure *why)
{
	const char *where = settings_where(s, SET_SIGNALS_TO_HANDLE);
	const char *list = settings_text(s, SET_SIGNALS_TO_HANDLE);

	while (*list) {
		size_t len;
		const char *word = next_word(&list, &len);
		int signal = find_signal(where, word, len, why);

		if (signal < 0)
			return signal;
		if (signal == SIGCONT || signal == SIGTSTP)
			return failure_set(
				why, -EINVAL, "%s: %s can't end a job", where, signal_name(signal));
		r->of[signal].kind = REACTION_END;
	}
	return 0;
}

/* "forward", "forward:600", "stop", "stop:5", "ignore" */
static int parse_action(const char *text, size_t len, struct reaction *ret)
{
	const char *colon = memchr(text, ':', len);
	size_t word = colon ? (size_t)(colon - text) : len;
	char seconds[32];

	if (word == 7 && strncmp(text, "forward", word) == 0)
		ret->kind = colon ? REACTION_END : REACTION_FORWARD;
	else if (word == 4 && strncmp(text, "stop", word) == 0)
		ret->kind = REACTION_STOP;
	else if (word == 6 && strncmp(text, "ignore", word) == 0 && !colon)
		ret->kind = REACTION_IGNORE;
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
	struct reaction *to;
	int signal;

	if (!equals)
		return failure_set(
			why, -EINVAL, "%s: \"%.*s\" is not SIGNAL=ACTION", where, (int)len, word);
	signal = find_signal(where, word, name, why);
	if (signal < 0)
		return signal;
	to = &r->of[signal];
	if (to->named)
		return failure_set(
			why, -EINVAL, "%s: %s is there twice", where, signal_name(signal));
	if (parse_action(equals + 1, len - name - 1, to) < 0)
		return failure_set(why, -EINVAL,
			"%s: \"%.*s\" is not an action; it needs forward, forward:SECONDS, stop, "
			"stop:SECONDS or ignore",
			where, (int)(len - name - 1), equals + 1);
	if (signal == SIGCONT && (to->kind == REACTION_END || to->kind == REACTION_STOP))
		return failure_set(why, -EINVAL,
			"%s: SIGCONT can't end a job: mpirun sends it ahead of every SIGTERM, and "
			"a shell to wake a job",
			where);
	to->named = true;
	return 0;
}

int reactions_make(const struct settings *s, struct reactions *ret, struct failure *why)
{
	const char *list = settings_text(s, SET_ON_SIGNAL);
	struct reactions r;
	int rc;

	presets(s, &r);
	rc = add_ending(s, &r, why);
	while (rc == 0 && list && *list) {
		size_t len;
		const char *word = next_word(&list, &len);

		rc = put_action(settings_where(s, SET_ON_SIGNAL), word, len, &r, why);
	}
	if (rc == 0)
		*ret = r;
	return rc;
}

const char *reaction_word(enum reaction_kind kind)
{
	switch (kind) {
	case REACTION_NONE:
		break;
	case REACTION_IGNORE:
		return "ignore";
	case REACTION_FORWARD:
		return "forward";
	case REACTION_SUSPEND:
		return "stop the workers' processes until SIGCONT";
	case REACTION_RESUME:
		return "wake the workers' processes";
	case REACTION_END:
		return "forward, and end the job";
	case REACTION_STOP:
		return "SIGTERM, and end the job";
	}
	return "";
}
