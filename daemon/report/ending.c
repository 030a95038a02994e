/* ending.c - see ending.h */
#include "daemon/report/ending.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

bool ending_is_success(const struct ending *e)
{
	return e->how == ENDED_EXIT && e->value == 0;
}

int ending_exit_code(const struct ending *e)
{
	switch (e->how) {
	case ENDED_EXIT:
		return e->value;
	case ENDED_SIGNAL:
		return 128 + e->value;
	case ENDED_UNSTARTED:
		if (e->value == ENOENT)
			return 127;
		return e->value == EACCES || e->value == ENOEXEC ? 126 : 1;
	}
	__builtin_unreachable();
}

int result_exit_code(const struct result *r)
{
	if (r->first_failure)
		return ending_exit_code(&r->first_failure->end);
	if (r->ended_by)
		return 128 + r->ended_by;
	for (size_t i = 0; i < r->count; i++)
		if (!ending_is_success(&r->outcomes[i].end))
			return ending_exit_code(&r->outcomes[i].end);
	return 0;
}

const char *signal_name(int signal)
{
	static char name[32];
	const char *known = sigabbrev_np(signal); /* glibc 2.32 */

	if (known)
		(void)snprintf(name, sizeof name, "SIG%s", known);
	else if (signal >= SIGRTMIN && signal <= SIGRTMAX)
		(void)snprintf(name, sizeof name, "SIGRTMIN+%d", signal - SIGRTMIN);
	else
		(void)snprintf(name, sizeof name, "signal %d", signal);
	return name;
}

void ending_describe(const struct ending *e, struct text *out)
{
	switch (e->how) {
	case ENDED_EXIT:
		text_printf(out, "exit code %d", e->value);
		return;
	case ENDED_SIGNAL:
		text_printf(out, "killed by %s%s", signal_name(e->value),
			e->core ? " (core dumped)" : "");
		return;
	case ENDED_UNSTARTED:
		text_add(out, "could not be started");
		return;
	}
}
