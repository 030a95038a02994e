/* event.c - see event.h */
#include "daemon/observe/event.h"

#include "common/json.h"
#include "common/signame.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/job/job_end.h"
#include "daemon/plan/plan.h"
#include "daemon/report/goodput_json.h"
#include "daemon/report/outcome_json.h"

enum { VERSION = 1, TIME_DIGITS = 6, MS_DIGITS = 3 };

static void add_job_started(struct json *j, const struct event *e)
{
	const struct plan *p = e->job_started.plan;

	json_string(j, "run_id", p->run_id);
	json_string(j, "launchd", LAUNCHD_VERSION);
	json_string(j, "host", e->job_started.host);
	json_number(j, "nnodes", p->nnodes);
	json_number(j, "nproc_per_node", p->nproc);
	json_number(j, "first_rank", p->first_rank);
	json_number(j, "world_size", p->world_size);
	json_number(j, "max_restarts", p->max_restarts);
	json_array_begin(j, "command");
	json_string(j, NULL, p->script);
	for (size_t i = 0; i < p->args->count; i++)
		json_string(j, NULL, p->args->at[i]);
	json_array_end(j);
}

static void add_attempt_started(struct json *j, const struct event *e)
{
	json_number(j, "attempt", e->attempt_started.attempt);
	json_string(j, "master_addr", e->attempt_started.master_addr);
	json_number(j, "master_port", e->attempt_started.master_port);
}

static void add_worker_started(struct json *j, const struct event *e)
{
	const struct outcome *o = e->worker;

	json_number(j, "rank", o->rank);
	json_number(j, "local_rank", o->local_rank);
	json_number(j, "attempt", o->attempt);
	json_number_if(j, "pid", o->pid > 0, o->pid);
}

static void add_worker_ended(struct json *j, const struct event *e)
{
	const struct outcome *o = e->worker;

	add_worker_started(j, e);
	json_string(j, "how", json_how_word(o->end.how));
	json_ending(j, o);
	json_asked(j, o);
	json_seconds(j, "seconds", o->started_ns, o->ended_ns);
}

static void add_signal_received(struct json *j, const struct event *e)
{
	json_string(j, "signal", signal_name(e->received.signal));
	json_sender(j, e->received.sender);
	json_string(j, "reaction", e->received.reaction);
}

static void add_signal_forwarded(struct json *j, const struct event *e)
{
	json_string(j, "signal", signal_name(e->forwarded));
}

static void add_stop(struct json *j, const struct event *e)
{
	const struct cause *c = e->stop.cause;

	json_string(j, "urgency", e->stop.urgency);
	json_string(j, "cause", json_cause_word(c->kind));
	json_number(j, "cause_node", c->node);
	json_signal(j, "cause_signal", c->kind == CAUSE_SIGNAL ? c->signal : 0);
	json_string(j, "detail", *c->detail ? c->detail : NULL);
	json_signal(j, "signal", e->stop.signal);
	json_decimal(j, "grace_seconds", e->stop.grace_ms, MS_DIGITS);
}

static void add_node_joined(struct json *j, const struct event *e)
{
	json_number(j, "node_rank", e->other.rank);
	json_string(j, "name", e->other.name);
}

static void add_node_lost(struct json *j, const struct event *e)
{
	add_node_joined(j, e);
	json_string(j, "detail", e->other.detail);
}

/* Why; "no" is in the verdict. */
static void add_decision(struct json *j, const struct history *h)
{
	unsigned count = history_count(h);

	json_string(j, "decision", "restart");
	json_string(j, "reason", count ? history_nth(h, count - 1)->reason : NULL);
}

static void add_restart(struct json *j, const struct event *e)
{
	json_number(j, "next_attempt", e->restart.attempt);
	json_decimal(j, "delay_seconds", e->restart.delay_ms, MS_DIGITS);
	add_decision(j, &e->restart.end->past);
	json_exclude(j, e->restart.end->verdict.cause.exclude);
}

static void add_check_started(struct json *j, const struct event *e)
{
	json_number(j, "attempt", e->check_started.attempt);
	json_string(j, "phases", e->check_started.phases);
	json_decimal(j, "limit_seconds", e->check_started.limit_ms, MS_DIGITS);
}

static void add_check_ended(struct json *j, const struct event *e)
{
	json_number(j, "attempt", e->check_ended.attempt);
	json_number(j, "nodes", e->check_ended.nodes);
	json_number(j, "bad", e->check_ended.bad);
	json_number(j, "unknown", e->check_ended.unknown);
	json_decimal(j, "seconds", e->check_ended.took_ns / 1000000, MS_DIGITS);
	json_exclude(j, e->check_ended.exclude);
}

static void add_hang(struct json *j, const struct event *e)
{
	json_string(j, "state", e->hang.state);
	json_string(j, "class", e->hang.kind);
	json_array_begin(j, "ranks");
	for (size_t i = 0; i < e->hang.count; i++)
		json_number(j, NULL, e->hang.ranks[i]);
	json_array_end(j);
	json_decimal(j, "quiet_seconds", e->hang.quiet_ms, MS_DIGITS);
	json_string(j, "text", e->hang.text);
}

static void add_step(struct json *j, const struct event *e)
{
	json_number(j, "attempt", e->step.attempt);
	json_number(j, "step", (long long)e->step.step);
}

static void add_blackbox(struct json *j, const struct event *e)
{
	json_number(j, "attempt", e->blackbox.attempt);
	json_string(j, "path", e->blackbox.path);
	json_string(j, "error", e->blackbox.error);
}

static void add_preemption(struct json *j, const struct event *e)
{
	const struct cause *c = e->preemption.cause;

	json_string(j, "source", preemption_source(c));
	json_number(j, "cause_node", c->node);
	json_decimal(j, "seconds_left", e->preemption.left_ms, MS_DIGITS);
	json_signal(j, "signal", e->preemption.signal);
}

static void add_verdict(struct json *j, const struct event *e)
{
	const struct outcome *culprit = e->verdict.culprit;

	json_number(j, "attempt", e->verdict.attempt);
	json_number(j, "exit_code", e->verdict.exit_code);
	json_string(j, "text", e->verdict.text);
	json_number_if(j, "culprit_rank", culprit != NULL, culprit ? culprit->rank : 0);
	json_string(j, "cause", e->verdict.cause ? json_cause_word(e->verdict.cause->kind) : NULL);
	json_exclude(j, e->verdict.cause ? e->verdict.cause->exclude : NULL);
	if (!e->verdict.why_not || !*e->verdict.why_not) {
		json_string(j, "restart", NULL);
		return;
	}
	json_object_begin(j, "restart");
	json_string(j, "decision", "no");
	json_string(j, "reason", e->verdict.why_not);
	json_object_end(j);
}

static void add_job_ended(struct json *j, const struct event *e)
{
	const struct run_end *end = e->job_ended.end;

	json_number(j, "exit_code", e->job_ended.exit_code);
	json_goodput(j, end ? &end->job.goodput : NULL);
}

/* All that is known of a kind. */
static const struct {
	const char *name;
	void (*add)(struct json *j, const struct event *e);
} kinds[EVENT_LINES] = {
	[EVENT_JOB_STARTED] = { "job_started", add_job_started },
	[EVENT_ATTEMPT_STARTED] = { "attempt_started", add_attempt_started },
	[EVENT_WORKER_STARTED] = { "worker_started", add_worker_started },
	[EVENT_WORKER_ENDED] = { "worker_ended", add_worker_ended },
	[EVENT_SIGNAL_RECEIVED] = { "signal_received", add_signal_received },
	[EVENT_SIGNAL_FORWARDED] = { "signal_forwarded", add_signal_forwarded },
	[EVENT_STOP] = { "stop", add_stop },
	[EVENT_NODE_JOINED] = { "node_joined", add_node_joined },
	[EVENT_NODE_LOST] = { "node_lost", add_node_lost },
	[EVENT_RESTART] = { "restart", add_restart },
	[EVENT_CHECK_STARTED] = { "check_started", add_check_started },
	[EVENT_CHECK_ENDED] = { "check_ended", add_check_ended },
	[EVENT_HANG] = { "hang", add_hang },
	[EVENT_BLACKBOX] = { "blackbox", add_blackbox },
	[EVENT_PREEMPTION] = { "preemption", add_preemption },
	[EVENT_STEP] = { "step", add_step },
	[EVENT_VERDICT] = { "verdict", add_verdict },
	[EVENT_JOB_ENDED] = { "job_ended", add_job_ended },
};

void event_add(struct text *out, const struct event *e, const struct event_frame *frame)
{
	/* unsigned differences wrap as they should: an event may be a moment after `now` */
	int64_t wall_ns = frame->wall_ns - (int64_t)(frame->now_ns - e->at_ns);
	struct json j = { .out = out };
	char time[UTC_SIZE];

	utc_write(time, wall_ns, TIME_DIGITS);
	json_object_begin(&j, NULL);
	json_number(&j, "v", VERSION);
	json_string(&j, "event", kinds[e->kind].name);
	json_number(&j, "mono_ns", (long long)e->at_ns);
	json_string(&j, "time", time);
	json_number_if(&j, "node", frame->node_known, frame->node);
	kinds[e->kind].add(&j, e);
	json_object_end(&j);
	text_add(out, "\n");
}
