/* event.c - see event.h */
#include "daemon/observe/event.h"

#include "common/signame.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/report/json_parts.h"

enum { VERSION = 1, TIME_DIGITS = 6, MS_PER_S = 1000 };

static void next(struct text *out)
{
	text_add(out, ",");
}

static void add_ms(struct text *out, const char *key, uint64_t ms)
{
	text_printf(out, "\"%s\":%llu.%03u", key, (unsigned long long)(ms / MS_PER_S),
		(unsigned)(ms % MS_PER_S));
}

static void add_job_started(struct text *out, const struct event *e)
{
	const struct plan *p = e->job_started.plan;

	json_add_string(out, "run_id", p->run_id);
	next(out);
	json_add_string(out, "launchd", LAUNCHD_VERSION);
	next(out);
	json_add_string(out, "host", e->job_started.host);
	text_printf(out,
		",\"nnodes\":%u,\"nproc_per_node\":%u,\"first_rank\":%u,\"world_size\":%u,"
		"\"max_restarts\":%u,\"command\":[",
		p->nnodes, p->nproc, p->first_rank, p->world_size, p->max_restarts);
	text_add_json(out, p->script);
	for (size_t i = 0; i < p->args->count; i++) {
		next(out);
		text_add_json(out, p->args->at[i]);
	}
	text_add(out, "]");
}

static void add_attempt_started(struct text *out, const struct event *e)
{
	text_printf(out, "\"attempt\":%u,", e->attempt_started.attempt);
	json_add_string(out, "master_addr", e->attempt_started.master_addr);
	text_printf(out, ",\"master_port\":%u", e->attempt_started.master_port);
}

static void add_worker(struct text *out, const struct outcome *o)
{
	text_printf(out, "\"rank\":%u,\"local_rank\":%u,\"attempt\":%u,", o->rank, o->local_rank,
		o->attempt);
	json_add_number(out, "pid", o->pid > 0, o->pid);
}

static void add_worker_started(struct text *out, const struct event *e)
{
	add_worker(out, e->worker);
}

static void add_worker_ended(struct text *out, const struct event *e)
{
	const struct outcome *o = e->worker;

	add_worker(out, o);
	next(out);
	json_add_string(out, "how", json_how_word(o->end.how));
	next(out);
	json_add_ending(out, o);
	text_printf(out, ",\"ended_by_launchd\":%s,\"killed_by_launchd\":%s,",
		json_bool(o->asked != ASKED_NOTHING), json_bool(o->asked == ASKED_KILLED));
	json_add_string(out, "asked_signal", o->asked_signal ? signal_name(o->asked_signal) : NULL);
	next(out);
	json_add_seconds(out, "seconds", o->started_ns, o->ended_ns);
}

static void add_signal_received(struct text *out, const struct event *e)
{
	json_add_string(out, "signal", signal_name(e->received.signal));
	next(out);
	json_add_sender(out, e->received.sender);
	next(out);
	json_add_string(out, "reaction", e->received.reaction);
}

static void add_signal_forwarded(struct text *out, const struct event *e)
{
	json_add_string(out, "signal", signal_name(e->forwarded));
}

static void add_stop(struct text *out, const struct event *e)
{
	const struct cause *c = e->stop.cause;

	json_add_string(out, "urgency", e->stop.urgency);
	next(out);
	json_add_string(out, "cause", json_cause_word(c->kind));
	text_printf(out, ",\"cause_node\":%u,", c->node);
	json_add_string(
		out, "cause_signal", c->kind == CAUSE_SIGNAL ? signal_name(c->signal) : NULL);
	next(out);
	json_add_string(out, "detail", *c->detail ? c->detail : NULL);
	next(out);
	json_add_string(out, "signal", e->stop.signal ? signal_name(e->stop.signal) : NULL);
	next(out);
	add_ms(out, "grace_seconds", e->stop.grace_ms);
}

static void add_node_joined(struct text *out, const struct event *e)
{
	text_printf(out, "\"node_rank\":%u,", e->other.rank);
	json_add_string(out, "name", e->other.name);
}

static void add_node_lost(struct text *out, const struct event *e)
{
	add_node_joined(out, e);
	next(out);
	json_add_string(out, "detail", e->other.detail);
}

static void add_restart(struct text *out, const struct event *e)
{
	text_printf(out, "\"next_attempt\":%u,", e->restart.attempt);
	add_ms(out, "delay_seconds", e->restart.delay_ms);
}

static void add_verdict(struct text *out, const struct event *e)
{
	const struct outcome *culprit = e->verdict.culprit;

	text_printf(
		out, "\"attempt\":%u,\"exit_code\":%d,", e->verdict.attempt, e->verdict.exit_code);
	json_add_string(out, "text", e->verdict.text);
	next(out);
	json_add_number(out, "culprit_rank", culprit != NULL, culprit ? culprit->rank : 0);
}

static void add_job_ended(struct text *out, const struct event *e)
{
	json_add_number(out, "exit_code", true, e->exit_code);
}

/* All that is known of a kind. */
static const struct {
	const char *name;
	void (*add)(struct text *out, const struct event *e);
} kinds[EVENT_KINDS] = {
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
	[EVENT_VERDICT] = { "verdict", add_verdict },
	[EVENT_JOB_ENDED] = { "job_ended", add_job_ended },
};

const char *event_name(enum event_kind kind)
{
	return kinds[kind].name;
}

void event_add(struct text *out, const struct event *e, const struct event_frame *frame)
{
	/* unsigned differences wrap as they should: an event may be a moment after `now` */
	int64_t wall_ns = frame->wall_ns - (int64_t)(frame->now_ns - e->at_ns);

	text_printf(out, "{\"v\":%d,\"event\":\"%s\",\"mono_ns\":%llu,\"time\":\"", VERSION,
		kinds[e->kind].name, (unsigned long long)e->at_ns);
	utc_add(out, wall_ns, TIME_DIGITS);
	text_add(out, "\",");
	json_add_number(out, "node", frame->node_known, frame->node);
	next(out);
	kinds[e->kind].add(out, e);
	text_add(out, "}\n");
}
