/* goodput.c - see goodput.h */
#include "daemon/job/goodput.h"

#include "common/text.h"
#include "daemon/job/phrases.h"

/* In which something went wrong, so that work since the last checkpoint is lost. */
static bool is_failure(enum cause_kind kind)
{
	return kind == CAUSE_FAILURE || kind == CAUSE_NODE_LOST || kind == CAUSE_HANG ||
		kind == CAUSE_TIMEOUT;
}

/* Of a lost node's ranks nothing is known. */
static bool is_known(const struct result *r, const struct outcome *o)
{
	return o->node >= r->node_count || !r->nodes[o->node].lost || o->started_ns > 0;
}

/* When the last rank had started; 0: not all have. */
static uint64_t all_ran_ns(const struct result *r)
{
	uint64_t last = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (!is_known(r, o))
			continue;
		if (o->pid == 0 || o->started_ns == 0)
			return 0;
		if (o->started_ns > last)
			last = o->started_ns;
	}
	return last;
}

/* When the first rank had ended, or was lost with its node. */
static uint64_t one_ended_ns(const struct result *r)
{
	uint64_t first = r->ended_ns;

	for (size_t i = 0; i < r->count; i++)
		if (r->outcomes[i].ended_ns > 0 && r->outcomes[i].ended_ns < first)
			first = r->outcomes[i].ended_ns;
	if (r->cause.kind == CAUSE_NODE_LOST && r->cause.at_ns < first)
		first = r->cause.at_ns;
	return first;
}

/* The time from where all is counted up to then. */
static uint64_t pass(struct goodput *g, uint64_t ns)
{
	uint64_t passed = ns > g->at_ns ? ns - g->at_ns : 0;

	g->at_ns += passed;
	g->total_ns += passed;
	return passed;
}

/* What is lost of the time in which all ranks ran, from `from` to `to`. */
static uint64_t lost_work_ns(const struct goodput_attempt *a, bool knows_steps,
	const struct cause *c, uint64_t from, uint64_t to)
{
	uint64_t lost = c->kind == CAUSE_HANG ? c->quiet_ns : 0;

	if (!is_failure(c->kind))
		return 0;
	if (!a->has_step && knows_steps)
		return to - from;
	if (a->has_step && to > a->step_ns && to - a->step_ns > lost)
		lost = to - a->step_ns;
	return lost < to - from ? lost : to - from;
}

/* What was spent on steps that had been done before. */
static uint64_t again_ns(
	const struct goodput *g, const struct goodput_attempt *a, uint64_t from, uint64_t to)
{
	if (!g->knows_steps || !a->has_step)
		return 0;
	if (a->beyond_ns == 0 || a->beyond_ns > to)
		return to - from;
	return a->beyond_ns > from ? a->beyond_ns - from : 0;
}

static void lose_work(struct goodput *g, enum cause_kind to, uint64_t ns)
{
	g->lost[to].ns += ns;
	g->lost[to].work_ns += ns;
}

/* In which not all ranks run: before the first that did, it is the start-up's. */
static void lose(struct goodput *g, enum cause_kind to, uint64_t until_ns)
{
	uint64_t ns = pass(g, until_ns);

	if (g->attempts == 0)
		g->startup_ns += ns;
	else
		g->lost[to].ns += ns;
}

static void add_running(struct goodput *g, const struct goodput_attempt *a, const struct cause *c,
	uint64_t until_ns)
{
	uint64_t from = g->at_ns, ran = pass(g, until_ns);
	uint64_t again = again_ns(g, a, from, from + ran);
	uint64_t lost = lost_work_ns(a, g->knows_steps, c, from + again, from + ran);

	g->running_ns += ran - again - lost;
	lose_work(g, g->last, again);
	lose_work(g, c->kind, lost);
}

void goodput_add(struct goodput *g, const struct goodput_attempt *a, const struct result *r)
{
	uint64_t ran_ns = all_ran_ns(r);
	const struct cause *c = &r->cause;

	if (g->at_ns == 0)
		g->at_ns = a->started_ns;
	lose(g, g->last, ran_ns > 0 ? ran_ns : a->started_ns);
	if (ran_ns > 0)
		add_running(g, a, c, one_ended_ns(r));
	if (c->kind == CAUSE_NONE)
		g->ending_ns += pass(g, r->ended_ns);
	else
		g->lost[c->kind].ns += pass(g, r->ended_ns);
	g->lost[c->kind].attempts++;
	g->attempts++;
	g->knows_steps = g->knows_steps || a->has_step;
	g->last = c->kind;
}

void goodput_stop(struct goodput *g, uint64_t now_ns)
{
	if (g->attempts > 0)
		lose(g, g->last, now_ns);
}

unsigned goodput_per_mille(const struct goodput *g)
{
	enum { NS_PER_US = 1000 };
	uint64_t total = g->total_ns / NS_PER_US;

	return total > 0 ? (unsigned)(g->running_ns / NS_PER_US * 1000 / total) : 0;
}

/* Of several with an s. */
static const char *const lost_to[CAUSE_KINDS] = {
	[CAUSE_FAILURE] = "failure",
	[CAUSE_SIGNAL] = "signal",
	[CAUSE_MAX_RUNTIME] = "time limit",
	[CAUSE_GUARD] = "killed launcher",
	[CAUSE_LAUNCHER] = "launcher's end",
	[CAUSE_HANGUP] = "hang-up",
	[CAUSE_NODE_LOST] = "lost node",
	[CAUSE_RESTART] = "requested restart",
	[CAUSE_BAD_NODE] = "bad node",
	[CAUSE_HANG] = "hang",
	[CAUSE_PREEMPTED] = "preemption",
	[CAUSE_TIMEOUT] = "time-out",
};

void goodput_text(const struct goodput *g, struct text *out)
{
	unsigned per_mille = goodput_per_mille(g);
	bool any = false, failed = false;

	text_printf(out, "goodput %u.%u %% of ", per_mille / 10, per_mille % 10);
	span_add(out, 0, g->total_ns);
	text_add(out, ": all ranks ran for ");
	span_add(out, 0, g->running_ns);
	text_add(out, ", start-up took ");
	span_add(out, 0, g->startup_ns);
	for (int i = CAUSE_NONE + 1; i < CAUSE_KINDS; i++) {
		const struct goodput_loss *l = &g->lost[i];

		if (l->attempts == 0)
			continue;
		text_add(out, any ? ", " : "; lost: ");
		span_add(out, 0, l->ns);
		text_printf(
			out, " to %u %s%s", l->attempts, lost_to[i], l->attempts > 1 ? "s" : "");
		any = true;
		failed = failed || is_failure((enum cause_kind)i);
	}
	if (failed && !g->knows_steps)
		text_add(out, "; work that was done again is not known without --progress");
}
