/* restart.c - see restart.h */
#include "daemon/job/restart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "config/lists.h"
#include "daemon/job/phrases.h"

enum { NS_PER_MS = 1000000 };

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

uint64_t restart_window_ns(const struct job *j, uint64_t now_ns)
{
	uint64_t window_ns = j->policy.window_ms * NS_PER_MS;

	return now_ns > window_ns ? now_ns - window_ns : 0;
}

/* Attempts before this one that followed a failure. */
unsigned restarts_counted(const struct job *j, uint64_t now_ns)
{
	return j->policy.window_ms > 0 ?
		history_restarts_since(&j->past, restart_window_ns(j, now_ns)) :
		j->attempt - j->asked_restarts;
}

uint64_t restart_delay_ms(const struct job *j, uint64_t now_ns)
{
	uint64_t ms = is_asked_for(j) ? 0 : j->policy.delay_ms;

	for (unsigned i = restarts_counted(j, now_ns); i > 0 && ms < RESTART_DELAY_MAX_MS && ms > 0;
		i--)
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

/* The exception of the attempt before, at the same line. */
static bool add_against_repeat(const struct job *j, struct text *out)
{
	const struct past_attempt *last;
	const char *site;

	if (!j->policy.not_on || !ends_have_repeat(j->policy.not_on) || !history_repeats(&j->past))
		return false;
	last = history_nth(&j->past, history_count(&j->past) - 1);
	site = last->site.text;
	text_add_shown(out, site, strlen(site));
	text_printf(out, ", as in attempt %u, and repeat is in --no-restart-on", last->attempt - 1);
	return true;
}

unsigned restart_is_futile(const struct job *j, const struct result *r)
{
	bool fails = cause_failed(&r->cause) || is_hang(j, &r->cause);
	bool asked = is_asked_for(j) || (j->asked.kind != CAUSE_NONE && !is_hang(j, &j->asked));

	if (j->policy.no_progress == 0 || j->policy.max_restarts == 0 || !fails || asked ||
		!restart_is_possible(j) || j->past.idle < j->policy.no_progress)
		return 0;
	return j->past.idle;
}

static void add_futile(const struct job *j, unsigned futile, struct text *out)
{
	text_printf(out, "%u attempt%s in a row ended without a new step (", futile,
		futile == 1 ? "" : "s");
	if (j->past.any_step)
		text_printf(out, "the best is %" PRIu64, j->past.best_step);
	else
		text_add(out, "there never was one");
	text_add(out, "): --no-progress-restarts");
}

static void add_limit(const struct job *j, struct text *out)
{
	char span[SPAN_SIZE];

	if (j->policy.window_ms == 0) {
		text_add(out, "the limit is reached");
		return;
	}
	span_format(j->policy.window_ms * NS_PER_MS, span);
	text_printf(out, "the limit is reached: %u within %s", j->policy.max_restarts, span);
}

void restart_reason(const struct job *j, uint64_t now_ns, char ret[WHY_NOT_SIZE])
{
	unsigned next = restarts_counted(j, now_ns) + 1;
	char span[SPAN_SIZE];

	span_format(j->policy.window_ms * NS_PER_MS, span);
	if (is_asked_for(j))
		(void)snprintf(ret, WHY_NOT_SIZE, "it was requested");
	else if (j->policy.window_ms > 0)
		(void)snprintf(ret, WHY_NOT_SIZE, "restart %u of at most %u within %s", next,
			j->policy.max_restarts, span);
	else
		(void)snprintf(ret, WHY_NOT_SIZE, "restart %u of at most %u", next,
			j->policy.max_restarts);
}

static bool add_against(
	const struct job *j, const struct result *r, uint64_t now_ns, struct text *out)
{
	const struct outcome *culprit = cause_failed(&r->cause);
	unsigned max = j->policy.max_restarts, futile = restart_is_futile(j, r);

	if (j->asked.kind != CAUSE_NONE && !is_hang(j, &j->asked))
		text_add(out, "the job was asked to end");
	else if (add_missing_node(j, out))
		return true;
	else if (r->cause.kind == CAUSE_HANGUP)
		text_add(out, "launchd's output has no reader any more");
	else if (futile)
		add_futile(j, futile, out);
	else if (restarts_counted(j, now_ns) >= max)
		add_limit(j, out);
	else if (is_hang(j, &r->cause))
		return false;
	else if (!culprit)
		text_add(out, "it is not known which worker failed");
	else
		return add_against_ending(&j->policy, &culprit->end, out) ||
			add_against_repeat(j, out) || add_against_uptime(j, culprit, out);
	return true;
}

bool restart_is_due(
	const struct job *j, const struct result *r, uint64_t now_ns, char why[WHY_NOT_SIZE])
{
	struct text text = { 0 };
	bool due;

	*why = '\0';
	if (is_asked_for(j))
		due = !add_missing_node(j, &text);
	else if (j->policy.max_restarts == 0 ||
		(!cause_failed(&r->cause) && r->cause.kind != CAUSE_NODE_LOST &&
			!is_hang(j, &r->cause)))
		return false; /* nobody expects one */
	else
		due = !add_against(j, r, now_ns, &text);
	(void)snprintf(why, WHY_NOT_SIZE, "%s", text_string(&text));
	text_done(&text);
	return due;
}
