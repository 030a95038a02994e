/* report.c - see report.h */
#include "daemon/report/report.h"

#include <stddef.h>

#include "common/signame.h"
#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"

/* "0.03 s", "12.3 s", "2 h 05 min" */
static void add_span(struct text *out, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ms = to_ns > from_ns ? (to_ns - from_ns) / 1000000 : 0;

	if (ms < 10000)
		text_printf(out, "%.2f s", (double)ms / 1000);
	else if (ms < 600000)
		text_printf(out, "%.1f s", (double)ms / 1000);
	else if (ms < 36000000)
		text_printf(
			out, "%u min %02u s", (unsigned)(ms / 60000), (unsigned)(ms / 1000 % 60));
	else
		text_printf(out, "%u h %02u min", (unsigned)(ms / 3600000),
			(unsigned)(ms / 60000 % 60));
}

static void add_worker(struct text *out, const struct outcome *o)
{
	text_printf(out, "rank %u (local rank %u", o->rank, o->local_rank);
	if (o->pid)
		text_printf(out, ", pid %d", (int)o->pid);
	text_add(out, ")");
}

static void add_command(struct text *out, const struct plan *plan)
{
	text_add_shell(out, plan->script);
	for (size_t i = 0; i < plan->args->count && i < 8; i++) {
		text_add(out, " ");
		text_add_shell(out, plan->args->at[i]);
	}
	if (plan->args->count > 8)
		text_add(out, " ...");
}

/* How it ended and what we had to do with it. */
static void add_story(struct text *out, const struct outcome *o)
{
	bool unstarted = o->end.how == ENDED_UNSTARTED;

	if (!o->pid && !unstarted) {
		text_add(out, "not started");
		return;
	}
	if (o->asked == ASKED_KILLED && o->asked_signal) {
		text_add(out, "still there ");
		add_span(out, o->asked_ns, o->ended_ns);
		text_printf(out, " after launchd's %s: ", signal_name(o->asked_signal));
	}
	ending_describe(&o->end, out);
	if (unstarted)
		return;
	if (o->asked == ASKED_TO_STOP) {
		text_add(out, ", ");
		add_span(out, o->asked_ns, o->ended_ns);
		text_printf(out, " after launchd's %s", signal_name(o->asked_signal));
	} else if (o->asked == ASKED_NOTHING) {
		text_add(out, " after ");
		add_span(out, o->started_ns, o->ended_ns);
	}
}

void report_failure(
	const struct result *r, const struct plan *plan, const char *hostname, struct text *out)
{
	const struct outcome *first = r->culprit;

	if (result_exit_code(r) == 0)
		return;
	if (first) {
		text_add(out, "launchd: error: first to fail: ");
		add_worker(out, first);
		text_printf(out, " on %s (node %u): ", hostname, plan->node_rank);
		add_story(out, first);
		text_add(out, "\nlaunchd: error: its script: ");
		add_command(out, plan);
	} else {
		text_printf(out, "launchd: error: the job was ended by %s on %s (node %u)",
			signal_name(r->cause.signal), hostname, plan->node_rank);
	}
	text_add(out, "\n");
	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o == first)
			continue;
		text_add(out, "launchd: note: ");
		add_worker(out, o);
		text_add(out, ": ");
		add_story(out, o);
		text_add(out, "\n");
	}
}
