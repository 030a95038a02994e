/* ending.c - see ending.h */
#include "daemon/job/ending.h"

#include <errno.h>
#include <signal.h>

#include "common/signame.h"
#include "common/text.h"

bool ending_is_success(const struct ending *e)
{
	return e->how == ENDED_EXIT && e->value == 0;
}

bool ending_is_unstarted(const struct ending *e)
{
	return e->how == ENDED_UNSTARTED || e->how == ENDED_UNMADE;
}

int ending_exit_code(const struct ending *e)
{
	switch (e->how) {
	case ENDED_NONE:
	case ENDED_UNMADE:
		return 1;
	case ENDED_EXIT:
		return e->value;
	case ENDED_SIGNAL:
	case ENDED_SENT:
		return 128 + e->value;
	case ENDED_UNSTARTED: /* as a shell has it; execve(2) says ENOTDIR of "train.py/x" */
		return e->value == ENOENT || e->value == ENOTDIR ? 127 : 126;
	}
	__builtin_unreachable();
}

struct cause cause_of_failure(const struct outcome *culprit)
{
	return (struct cause){
		.kind = CAUSE_FAILURE,
		.culprit = *culprit,
		.at_ns = culprit->ended_ns,
		.node = culprit->node,
	};
}

const struct outcome *cause_culprit(const struct cause *c)
{
	bool known = c->kind == CAUSE_FAILURE || (c->kind == CAUSE_TIMEOUT && c->has_culprit);

	return known ? &c->culprit : NULL;
}

const struct outcome *cause_failed(const struct cause *c)
{
	bool is_victim = c->kind == CAUSE_TIMEOUT ||
		(c->kind == CAUSE_HANGUP && c->victim.end.how != ENDED_NONE);

	return is_victim ? &c->victim : cause_culprit(c);
}

const struct outcome *result_culprit(const struct result *r)
{
	return cause_culprit(&r->cause);
}

bool result_is_culprit(const struct result *r, const struct outcome *o)
{
	const struct outcome *c = result_culprit(r);

	return c && c->rank == o->rank;
}

int cause_exit_code(const struct cause *c)
{
	if (c->futile)
		return EXIT_NO_PROGRESS;
	switch (c->kind) {
	case CAUSE_NONE:
		return 0;
	case CAUSE_FAILURE:
		return ending_exit_code(&c->culprit.end);
	case CAUSE_TIMEOUT:
		return ending_exit_code(&c->victim.end);
	case CAUSE_SIGNAL:
		return 128 + c->signal;
	case CAUSE_MAX_RUNTIME:
		return EXIT_MAX_RUNTIME;
	case CAUSE_GUARD:
		return 128 + SIGKILL;
	case CAUSE_HANGUP:
		return cause_failed(c) ? ending_exit_code(&c->victim.end) : 128 + SIGHUP;
	case CAUSE_LAUNCHER:
		return 128 + SIGHUP;
	case CAUSE_NODE_LOST:
		return c->signal ? 128 + c->signal : EXIT_NODE_LOST;
	case CAUSE_RESTART:
		return 128 + SIGTERM;
	case CAUSE_BAD_NODE:
		return EXIT_BAD_NODE;
	case CAUSE_HANG:
		return EXIT_HANG;
	case CAUSE_PREEMPTED:
		return (int)c->requeue_code;
	}
	__builtin_unreachable();
}

int result_exit_code(const struct result *r)
{
	return cause_exit_code(&r->cause);
}

static uint64_t clock_error_ns(const struct result *r, const struct outcome *o)
{
	return o->node < r->node_count ? r->nodes[o->node].clock_error_ns : 0;
}

uint64_t result_tolerance_ns(
	const struct result *r, const struct outcome *a, const struct outcome *b)
{
	enum { TOGETHER_NS = 200000 }; /* below that the order is right in most cases, not in all */
	const struct outcome *later = a->ended_ns > b->ended_ns ? a : b;
	uint64_t doubt;

	if (a->node == b->node)
		return TOGETHER_NS; /* their order is known, and only says little */
	doubt = clock_error_ns(r, a) + clock_error_ns(r, b) + later->late_ns;
	return doubt > TOGETHER_NS ? doubt : TOGETHER_NS;
}

bool result_is_close(const struct result *r, const struct outcome *a, const struct outcome *b)
{
	uint64_t gap =
		a->ended_ns > b->ended_ns ? a->ended_ns - b->ended_ns : b->ended_ns - a->ended_ns;

	return gap < result_tolerance_ns(r, a, b);
}

enum failing outcome_failing(const struct outcome *o)
{
	switch (o->blames) {
	case BLAMES_ITSELF:
		return FAILING_ITSELF;
	case BLAMES_A_PEER:
	case BLAMES_A_WAIT:
	case BLAMES_OUTPUT:
		return FAILING_PEER;
	case BLAMES_NOBODY:
		break;
	}
	if (ending_exit_code(&o->end) == 128 + SIGABRT) /* also of a shell whose child aborted */
		return FAILING_ABORT;
	return o->end.how == ENDED_EXIT ? FAILING_MUTE : FAILING_ITSELF;
}

bool result_is_together(const struct result *r, const struct outcome *o)
{
	const struct outcome *c = result_culprit(r);

	if (!c || r->cause.kind != CAUSE_FAILURE || result_is_culprit(r, o) ||
		o->asked != ASKED_NOTHING || ending_is_success(&o->end) || !o->pid || !c->pid)
		return false;
	if ((outcome_failing(o) == FAILING_PEER) != (outcome_failing(c) == FAILING_PEER))
		return false;
	return result_is_close(r, o, c);
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
	case ENDED_SENT:
		text_printf(out, "sent %s to launchd", signal_name(e->value));
		return;
	case ENDED_UNSTARTED:
	case ENDED_UNMADE:
		text_add(out, "could not be started");
		return;
	}
}
