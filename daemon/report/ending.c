/* ending.c - see ending.h */
#include "daemon/report/ending.h"

#include <errno.h>
#include <signal.h>

#include "common/signame.h"
#include "common/text.h"

bool ending_is_success(const struct ending *e)
{
	return e->how == ENDED_EXIT && e->value == 0;
}

int ending_exit_code(const struct ending *e)
{
	switch (e->how) {
	case ENDED_NONE:
		return 1;
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
	switch (r->cause.kind) {
	case CAUSE_NONE:
		return 0;
	case CAUSE_FAILURE:
		return ending_exit_code(&r->culprit->end);
	case CAUSE_SIGNAL:
		return 128 + r->cause.signal;
	case CAUSE_MAX_RUNTIME:
		return EXIT_MAX_RUNTIME;
	case CAUSE_GUARD:
		return 128 + SIGKILL;
	case CAUSE_LAUNCHER:
	case CAUSE_HANGUP:
		return 128 + SIGHUP;
	case CAUSE_NODE_LOST:
		return EXIT_NODE_LOST;
	}
	__builtin_unreachable();
}

bool result_is_together(const struct result *r, const struct outcome *o)
{
	enum { TOGETHER_NS = 200000 }; /* below that the order is right in most cases, not in all */
	const struct outcome *c = r->culprit;
	uint64_t gap;

	if (!c || o == c || o->asked != ASKED_NOTHING || ending_is_success(&o->end) || !o->pid ||
		!c->pid)
		return false;
	gap = o->ended_ns > c->ended_ns ? o->ended_ns - c->ended_ns : c->ended_ns - o->ended_ns;
	return gap < TOGETHER_NS;
}

void ending_describe(const struct ending *e, struct text *out)
{
	switch (e->how) {
	case ENDED_NONE:
		text_add(out, "not started");
		return;
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
