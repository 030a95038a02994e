/* bulletin.c - see bulletin.h */
#include "daemon/service/bulletin.h"

#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/job_end.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"

/* A line of its own, whatever it quotes, and whole characters only: systemd takes no other. */
static void add_status(struct text *out, struct text *status)
{
	const char *said = text_string(status);
	size_t len = strlen(said);

	text_add(out, "STATUS=");
	text_add_shown(out, said, len < BULLETIN_STATUS_MAX ? len : BULLETIN_STATUS_MAX);
	text_add(out, "\n");
	text_done(status);
}

static void add_workers(const struct bulletin *n, struct text *out)
{
	unsigned alive = n->started > n->ended ? n->started - n->ended : 0;

	text_printf(out, "attempt %u: %u of %u worker%s running", n->attempt, alive,
		n->plan->start_count, n->plan->start_count == 1 ? "" : "s");
	if (n->failed > 0)
		text_printf(out, ", %u failed", n->failed);
	if (n->plan->ready_joined && !n->ready && n->started == n->plan->start_count)
		text_add(out, ", not all have joined the store");
	if (n->plan->nnodes > 1)
		text_printf(out, " on node %u of %u nodes", n->plan->node_rank, n->plan->nnodes);
}

static void status_workers(const struct bulletin *n, struct text *out)
{
	struct text status = { 0 };

	add_workers(n, &status);
	add_status(out, &status);
}

/* Only who has rank 0 hears of the others. */
static void status_meeting(const struct bulletin *n, struct text *out)
{
	const struct plan *p = n->plan;
	struct text status = { 0 };
	unsigned awaited = 0;

	for (unsigned i = 0; n->joined && i < p->nnodes; i++)
		if (!n->joined[i])
			n->awaited[awaited++] = i;
	if (awaited > 0) {
		text_printf(&status, "waiting for %u of %u nodes: ", awaited, p->nnodes);
		nodes_add(&status, n->awaited, awaited, p->node_names,
			BULLETIN_STATUS_MAX - status.len);
	} else if (p->nnodes > 1) {
		text_printf(&status, "waiting for the job's %u nodes to meet", p->nnodes);
	} else {
		text_add(&status, "starting");
	}
	if (!n->joined && p->nnodes > 1 && p->master_addr)
		text_printf(&status, " at %s", p->master_addr);
	add_status(out, &status);
}

void bulletin_begin(struct bulletin *n, const struct plan *plan, bool meets, bool node_rank_known,
	struct arena *arena, struct text *out)
{
	*n = (struct bulletin){ .plan = plan, .meets = meets && plan->nnodes > 1 };
	if (n->meets && node_rank_known && plan->node_rank == 0)
		n->awaited = arena_alloc(arena, plan->nnodes * sizeof *n->awaited);
	if (n->awaited)
		n->joined = arena_alloc(arena, plan->nnodes * sizeof *n->joined);
	if (n->joined) {
		memset(n->joined, 0, plan->nnodes * sizeof *n->joined);
		n->joined[0] = true;
	}
	status_meeting(n, out);
}

static void take_join(struct bulletin *n, const struct event *e, struct text *out)
{
	if (!n->meets || !n->joined || e->other.rank >= n->plan->nnodes)
		return;
	n->joined[e->other.rank] = e->kind == EVENT_NODE_JOINED;
	status_meeting(n, out);
}

static void take_loss(struct bulletin *n, const struct event *e, struct text *out)
{
	struct text status = { 0 };

	if (n->meets) {
		take_join(n, e, out);
		return;
	}
	text_add(&status, "lost ");
	node_name_add(&status, e->other.rank, e->other.name);
	text_printf(&status, ": %s; ", e->other.detail);
	add_workers(n, &status);
	add_status(out, &status);
}

static void take_job(struct bulletin *n, const struct event *e)
{
	n->plan = e->job_started.plan;
	n->meets = false;
	n->joined = NULL;
	n->awaited = NULL;
}

static void take_attempt(struct bulletin *n, const struct event *e, struct text *out)
{
	struct text status = { 0 };

	n->attempt = e->attempt_started.attempt;
	n->started = n->ended = n->failed = 0;
	text_printf(&status, "attempt %u: starting %u worker%s", n->attempt, n->plan->start_count,
		n->plan->start_count == 1 ? "" : "s");
	add_status(out, &status);
}

static void ready(struct bulletin *n, struct text *out)
{
	if (!n->ready)
		text_add(out, "READY=1\n");
	n->ready = true;
	status_workers(n, out);
}

static void take_worker_started(struct bulletin *n, const struct event *e, struct text *out)
{
	if (e->worker->pid <= 0 || ++n->started < n->plan->start_count)
		return;
	if (n->plan->ready_joined)
		status_workers(n, out);
	else
		ready(n, out);
}

static void take_worker_ended(struct bulletin *n, const struct event *e, struct text *out)
{
	const struct outcome *o = e->worker;

	n->ended += o->pid > 0;
	n->failed += o->asked == ASKED_NOTHING && !ending_is_success(&o->end);
	if (!n->stopping)
		status_workers(n, out);
}

/* For how long from now on systemd is not to end us by force. */
static void extend(struct text *out, uint64_t grace_ms)
{
	text_printf(out, "EXTEND_TIMEOUT_USEC=%" PRIu64 "\n", (grace_ms + BULLETIN_REST_MS) * 1000);
}

static void stopping(struct bulletin *n, struct text *out)
{
	if (!n->stopping)
		text_add(out, "STOPPING=1\n");
	n->stopping = true;
}

static void status_stop(const char *why, uint64_t grace_ms, struct text *out)
{
	struct text status = { 0 };

	text_printf(&status, "%s; the workers have %s s to end", why, num_seconds(grace_ms).text);
	add_status(out, &status);
}

/* Before all that follows of it, also where no worker runs: other nodes' may. */
static void take_signal(struct bulletin *n, const struct event *e, struct text *out)
{
	const struct reaction *r = &n->plan->reactions.of[e->received.signal];

	if (r->kind != REACTION_END && r->kind != REACTION_STOP && r->kind != REACTION_PREEMPT)
		return;
	stopping(n, out);
	extend(out, r->grace_ms);
}

/* Where another attempt may follow, nothing is stopping: systemd would take it for the end, and
 * begins to count TimeoutStopSec= then. */
static void take_stop(struct bulletin *n, const struct event *e, struct text *out)
{
	const struct cause *c = e->stop.cause;
	struct text why = { 0 };

	if (c->kind != CAUSE_FAILURE && c->kind != CAUSE_TIMEOUT && c->kind != CAUSE_RESTART)
		stopping(n, out);
	if (n->stopping)
		extend(out, e->stop.grace_ms);
	cause_brief_add(c, n->plan->max_runtime_ms, &why);
	status_stop(text_string(&why), e->stop.grace_ms, out);
	text_done(&why);
}

static void take_restart(const struct event *e, struct text *out)
{
	struct text status = { 0 };

	text_printf(&status, "attempt %u starts in %s s; the one before: %s", e->restart.attempt,
		num_seconds(e->restart.delay_ms).text, e->restart.end->verdict.text);
	add_status(out, &status);
}

/* It may take longer than systemd waits for a service to start. */
static void take_check(const struct bulletin *n, const struct event *e, struct text *out)
{
	struct text status = { 0 };

	if (!n->ready)
		extend(out, e->check_started.limit_ms);
	text_printf(&status, "attempt %u: checking nodes (%s) before the workers start", n->attempt,
		e->check_started.phases);
	add_status(out, &status);
}

static void take_verdict(struct bulletin *n, const struct event *e, struct text *out)
{
	struct text status = { 0 };

	stopping(n, out);
	extend(out, 0);
	text_printf(&status, "ended with exit code %d", e->verdict.exit_code);
	if (*e->verdict.text)
		text_printf(&status, ": %s", e->verdict.text);
	add_status(out, &status);
}

static void take_end(struct bulletin *n, const struct event *e, struct text *out)
{
	struct text status = { 0 };

	if (e->job_ended.end)
		return; /* the verdict was told */
	stopping(n, out);
	text_printf(
		&status, "ended with exit code %d: no worker was started", e->job_ended.exit_code);
	add_status(out, &status);
}

void bulletin_take(struct bulletin *n, const struct event *e, struct text *out)
{
	switch (e->kind) {
	case EVENT_NODE_JOINED:
		take_join(n, e, out);
		break;
	case EVENT_NODE_LOST:
		take_loss(n, e, out);
		break;
	case EVENT_JOB_STARTED:
		take_job(n, e);
		break;
	case EVENT_ATTEMPT_STARTED:
		take_attempt(n, e, out);
		break;
	case EVENT_WORKER_STARTED:
		take_worker_started(n, e, out);
		break;
	case EVENT_WORKER_ENDED:
		take_worker_ended(n, e, out);
		break;
	case EVENT_WORKERS_JOINED:
		if (!n->stopping)
			ready(n, out);
		break;
	case EVENT_SIGNAL_RECEIVED:
		take_signal(n, e, out);
		break;
	case EVENT_STOP:
		take_stop(n, e, out);
		break;
	case EVENT_RESTART:
		take_restart(e, out);
		break;
	case EVENT_CHECK_STARTED:
		take_check(n, e, out);
		break;
	case EVENT_VERDICT:
		take_verdict(n, e, out);
		break;
	case EVENT_JOB_ENDED:
		take_end(n, e, out);
		break;
	case EVENT_SIGNAL_FORWARDED:
	case EVENT_CHECK_ENDED:
	case EVENT_HANG:
	case EVENT_BLACKBOX:
	case EVENT_PREEMPTION:
	case EVENT_STEP:
	case EVENT_NOTE:
	case EVENT_UNFINISHED:
	case EVENT_KILLED:
	case EVENT_KINDS:
		break;
	}
}

uint64_t bulletin_watchdog_ms(const char *usec, const char *pid, long own_pid)
{
	uint64_t every, whose;

	if (!usec || num_parse(usec, 1, UINT64_MAX, &every) < 0)
		return 0;
	if (pid && (num_parse(pid, 1, INT32_MAX, &whose) < 0 || (long)whose != own_pid))
		return 0;
	return every / 2000 > 0 ? every / 2000 : 1;
}
