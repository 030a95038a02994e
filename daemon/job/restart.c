/* restart.c - see restart.h */
#include "daemon/job/restart.h"

#include <stdio.h>

#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "config/lists.h"
#include "daemon/job/phrases.h"

static bool list_has(const char *list, const struct ending *e)
{
	bool is_signal = e->how == ENDED_SIGNAL;

	return ends_contain(list, is_signal, is_signal ? e->value : ending_exit_code(e));
}

/* Somebody asked for another attempt, and nobody for the end of the job. */
static bool is_asked_for(const struct job *j)
{
	return j->restart.kind != CAUSE_NONE && j->asked.kind == CAUSE_NONE;
}

/* Attempts before this one that followed a failure. */
static unsigned counted(const struct job *j)
{
	return j->attempt - j->asked_restarts;
}

uint64_t restart_delay_ms(const struct job *j)
{
	uint64_t ms = is_asked_for(j) ? 0 : j->policy.delay_ms;

	for (unsigned i = counted(j); i > 0 && ms < RESTART_DELAY_MAX_MS && ms > 0; i--)
		ms *= 2;
	return ms < RESTART_DELAY_MAX_MS ? ms : RESTART_DELAY_MAX_MS;
}

/* "exit code 2", "SIGSEGV" */
static void add_code(const struct ending *e, struct text *out)
{
	if (e->how == ENDED_SIGNAL)
		text_add(out, signal_name(e->value));
	else
		text_printf(out, "exit code %d", ending_exit_code(e));
}

/* A node that can't start its workers again; first the one whose loss ended the job. */
static bool add_missing_node(const struct job *j, struct text *out)
{
	static const char *const gone[NODE_STATES] = {
		[NODE_LOST] = "was lost",
		[NODE_LEFT] = "has ended and left",
		[NODE_ABSENT] = "runs without launchd",
	};

	if (j->lost.kind != CAUSE_NONE) {
		text_printf(out, "node %u", j->lost.node);
		loss_add(out, &j->lost);
		return true;
	}
	for (unsigned i = 0; i < j->nnodes; i++)
		if (gone[j->nodes[i].state]) {
			text_printf(out, "node %u %s", i, gone[j->nodes[i].state]);
			return true;
		}
	return false;
}

bool restart_is_possible(const struct job *j)
{
	struct text text = { 0 };
	bool possible = !add_missing_node(j, &text);

	text_done(&text);
	return possible;
}

/* What the culprit's end has against a restart. A program that isn't there, or can't be executed,
 * fails in the same way the next time, unless --restart-on asks for it. */
static bool add_against_ending(
	const struct restart_policy *p, const struct ending *e, struct text *out)
{
	int code = ending_exit_code(e);

	if (p->not_on && list_has(p->not_on, e)) {
		add_code(e, out);
		text_add(out, " is in --no-restart-on");
	} else if (p->on && !list_has(p->on, e)) {
		add_code(e, out);
		text_add(out, " is not in --restart-on");
	} else if (!p->on && (code == 126 || code == 127)) {
		text_printf(out, "exit code %d means that a program could not be started", code);
	} else {
		return false;
	}
	return true;
}

static bool add_against_uptime(const struct job *j, const struct outcome *culprit, struct text *out)
{
	enum { NS_PER_MS = 1000000 };
	uint64_t least_ns = j->policy.min_uptime_ms * NS_PER_MS;

	if (culprit->ended_ns >= j->started_ns && culprit->ended_ns - j->started_ns >= least_ns)
		return false;
	if (least_ns == 0)
		return false;
	text_printf(out, "rank %u failed ", culprit->rank);
	span_add(out, j->started_ns, culprit->ended_ns);
	text_printf(out, " after the start, sooner than --restart-min-uptime (%s s)",
		num_seconds(j->policy.min_uptime_ms).text);
	return true;
}

/* --on-hang restart: it is like a failure. */
static bool is_hang(const struct job *j, const struct cause *c)
{
	return c->kind == CAUSE_HANG && j->policy.hangs;
}

static bool add_against(const struct job *j, const struct result *r, struct text *out)
{
	const struct outcome *culprit = result_culprit(r);
	unsigned max = j->policy.max_restarts;

	if (j->asked.kind != CAUSE_NONE && !is_hang(j, &j->asked))
		text_add(out, "the job was asked to end");
	else if (add_missing_node(j, out))
		return true;
	else if (counted(j) >= max)
		text_add(out, "the limit is reached");
	else if (is_hang(j, &r->cause))
		return false;
	else if (!culprit)
		text_add(out, "it is not known which worker failed");
	else
		return add_against_ending(&j->policy, &culprit->end, out) ||
			add_against_uptime(j, culprit, out);
	return true;
}

bool restart_is_due(const struct job *j, const struct result *r, char why[WHY_NOT_SIZE])
{
	struct text text = { 0 };
	bool due;

	*why = '\0';
	if (is_asked_for(j))
		due = !add_missing_node(j, &text);
	else if (j->policy.max_restarts == 0 ||
		(r->cause.kind != CAUSE_FAILURE && r->cause.kind != CAUSE_NODE_LOST &&
			!is_hang(j, &r->cause)))
		return false; /* nobody expects one */
	else
		due = !add_against(j, r, &text);
	(void)snprintf(why, WHY_NOT_SIZE, "%s", text_string(&text));
	text_done(&text);
	return due;
}
