/* metrics.c - see metrics.h */
#include "daemon/service/metrics.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"

#define SECOND_NS 1000000000ull

enum { US_DIGITS = 6, NS_PER_US = 1000 };

static const char *const doing_names[DOING_COUNT] = {
	[DOING_PENDING] = "pending",
	[DOING_RUNNING] = "running",
	[DOING_STOPPING] = "stopping",
	[DOING_SUCCEEDED] = "succeeded",
	[DOING_FAILED] = "failed",
	[DOING_STOPPED] = "stopped",
};

/* As --events and the report call a cause, where they do. */
static const char *const ended_by_names[ENDED_BY_COUNT] = {
	[ENDED_BY_EXIT] = "exit",
	[ENDED_BY_SIGNAL] = "signal",
	[ENDED_BY_OOM] = "oom",
	[ENDED_BY_START] = "not_startable",
	[ENDED_BY_SUCCESS] = "success",
	[ENDED_BY_REQUEST] = "stop_signal",
	[ENDED_BY_MAX_RUNTIME] = "max_runtime",
	[ENDED_BY_GUARD] = "launchd_killed",
	[ENDED_BY_LAUNCHER] = "launcher_ended",
	[ENDED_BY_HANGUP] = "hang_up",
	[ENDED_BY_NODE_LOST] = "node_lost",
	[ENDED_BY_RESTART] = "restart_requested",
	[ENDED_BY_BAD_NODE] = "bad_node",
	[ENDED_BY_HANG] = "hang",
	[ENDED_BY_PREEMPTION] = "preempted",
	[ENDED_BY_TIMEOUT] = "collective_timeout",
	[ENDED_BY_UNKNOWN] = "unknown",
};

static const char *const node_names[NODE_STATES] = {
	[NODE_AWAITED] = "awaited",
	[NODE_JOINED] = "joined",
	[NODE_ENDED] = "ended",
	[NODE_LEFT] = "left",
	[NODE_LOST] = "lost",
	[NODE_ABSENT] = "absent",
};

static const char *const stream_names[2] = { "stdout", "stderr" };

/* --- counting --- */

static void set_doing(struct metrics *m, unsigned rank, enum doing next)
{
	unsigned char *at;

	if (!m->doing || rank < m->first || rank - m->first >= m->count)
		return;
	at = &m->doing[rank - m->first];
	m->workers[*at]--;
	m->workers[next]++;
	*at = (unsigned char)next;
}

static void set_all(struct metrics *m, enum doing from, enum doing next)
{
	for (unsigned i = 0; m->doing && i < m->count; i++)
		if (m->doing[i] == from)
			set_doing(m, m->first + i, next);
}

static void begin_workers(struct metrics *m)
{
	memset(m->workers, 0, sizeof m->workers);
	if (!m->doing)
		return;
	memset(m->doing, DOING_PENDING, m->count);
	m->workers[DOING_PENDING] = m->count;
}

static enum ended_by failure_of(const struct outcome *o)
{
	if (ending_is_unstarted(&o->end))
		return ENDED_BY_START;
	if (o->oom != OOM_NO)
		return ENDED_BY_OOM;
	return o->end.how == ENDED_SIGNAL ? ENDED_BY_SIGNAL : ENDED_BY_EXIT;
}

static enum ended_by cause_of(const struct cause *c)
{
	switch (c->kind) {
	case CAUSE_NONE:
		return ENDED_BY_SUCCESS;
	case CAUSE_FAILURE:
		return failure_of(&c->culprit);
	case CAUSE_SIGNAL:
		return ENDED_BY_REQUEST;
	case CAUSE_MAX_RUNTIME:
		return ENDED_BY_MAX_RUNTIME;
	case CAUSE_GUARD:
		return ENDED_BY_GUARD;
	case CAUSE_LAUNCHER:
		return ENDED_BY_LAUNCHER;
	case CAUSE_HANGUP:
		return ENDED_BY_HANGUP;
	case CAUSE_NODE_LOST:
		return ENDED_BY_NODE_LOST;
	case CAUSE_RESTART:
		return ENDED_BY_RESTART;
	case CAUSE_BAD_NODE:
		return ENDED_BY_BAD_NODE;
	case CAUSE_HANG:
		return ENDED_BY_HANG;
	case CAUSE_PREEMPTED:
		return ENDED_BY_PREEMPTION;
	case CAUSE_TIMEOUT:
		return ENDED_BY_TIMEOUT;
	}
	__builtin_unreachable();
}

static void hear_job_started(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	const struct plan *p = e->job_started.plan;

	m->started = true;
	m->started_wall_ns = wall_ns;
	m->run_id = p->run_id;
	(void)snprintf(m->host, sizeof m->host, "%s", e->job_started.host);
	m->node_rank = p->node_rank;
	m->nnodes = p->nnodes;
	m->world_size = p->world_size;
	m->max_restarts = p->max_restarts;
	m->hang_watched = p->on_hang != ON_HANG_OFF && !p->hang_modest && p->node_rank == 0;
	m->first = p->first_rank + p->start_first;
	m->count = p->start_count;
	m->doing = arena_alloc(m->arena, m->count);
	begin_workers(m);
}

/* Why the attempt failed is known the better the later it is asked. */
static void note_failure(struct metrics *m, uint64_t at_ns, enum ended_by cause)
{
	if (m->failure_ns == 0 || at_ns < m->failure_ns)
		m->failure_ns = at_ns;
	m->cause = cause;
}

/* Another one follows, so what this one did is lost, as far as no checkpoint has it. */
static void end_attempt(struct metrics *m, uint64_t next_ns)
{
	uint64_t failure_ns = m->failure_ns ? m->failure_ns : m->last_end_ns;

	if (failure_ns < m->attempt_ns)
		failure_ns = m->attempt_ns;
	m->ends[m->cause]++;
	m->failed_ns += failure_ns - m->attempt_ns;
	m->down_ns += next_ns > failure_ns ? next_ns - failure_ns : 0;
}

static void hear_attempt_started(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	if (m->attempts > 0) {
		end_attempt(m, e->at_ns);
		m->restarts++;
	}
	m->attempts++;
	m->attempt_wall_ns = wall_ns;
	m->attempt_ns = e->at_ns;
	m->failure_ns = m->last_end_ns = 0;
	m->cause = ENDED_BY_UNKNOWN;
	m->stopping = m->hang_suspected = m->has_step = false;
	begin_workers(m);
}

static void hear_worker_started(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	enum doing next = m->stopping ? DOING_STOPPING : DOING_RUNNING;

	(void)wall_ns;
	/* no pid: a request came before it was started */
	set_doing(m, e->worker->rank, e->worker->pid > 0 ? next : DOING_STOPPED);
}

static void hear_worker_ended(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	const struct outcome *o = e->worker;
	bool failed = o->asked == ASKED_NOTHING && !ending_is_success(&o->end);

	(void)wall_ns;
	set_doing(m, o->rank,
		failed                            ? DOING_FAILED :
			o->asked != ASKED_NOTHING ? DOING_STOPPED :
						    DOING_SUCCEEDED);
	m->last_end_ns = e->at_ns;
	if (!failed)
		return;
	m->failures[failure_of(o)]++;
	if (m->failure_ns == 0)
		note_failure(m, e->at_ns, failure_of(o));
}

static void hear_stop(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	(void)wall_ns;
	m->stopping = true;
	set_all(m, DOING_RUNNING, DOING_STOPPING);
	note_failure(m, e->at_ns, cause_of(e->stop.cause));
}

static void hear_verdict(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	(void)wall_ns;
	m->has_code = true;
	m->exit_code = e->verdict.exit_code;
	set_all(m, DOING_PENDING, DOING_STOPPED); /* one before them could not be started */
	if (m->attempts > 0)
		m->ends[cause_of(e->verdict.cause)]++;
}

static void hear_restart(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	(void)wall_ns;
	note_failure(m, e->at_ns, cause_of(&e->restart.end->verdict.cause));
	m->goodput = e->restart.end->goodput;
}

static void hear_hang(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	(void)wall_ns;
	m->hang_suspected = strcmp(e->hang.state, "cleared") != 0;
}

static void hear_step(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	m->has_step = true;
	m->step = e->step.step;
	m->step_wall_ns = wall_ns;
}

static void hear_job_ended(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	m->has_code = true;
	m->exit_code = e->job_ended.exit_code;
	m->ended_wall_ns = wall_ns;
	if (e->job_ended.end)
		m->goodput = e->job_ended.end->job.goodput;
}

void metrics_hear(struct metrics *m, const struct event *e, int64_t wall_ns)
{
	static void (*const hear[EVENT_KINDS])(struct metrics *, const struct event *, int64_t) = {
		[EVENT_JOB_STARTED] = hear_job_started,
		[EVENT_ATTEMPT_STARTED] = hear_attempt_started,
		[EVENT_WORKER_STARTED] = hear_worker_started,
		[EVENT_WORKER_ENDED] = hear_worker_ended,
		[EVENT_STOP] = hear_stop,
		[EVENT_RESTART] = hear_restart,
		[EVENT_HANG] = hear_hang,
		[EVENT_STEP] = hear_step,
		[EVENT_VERDICT] = hear_verdict,
		[EVENT_JOB_ENDED] = hear_job_ended,
	};

	if (hear[e->kind])
		hear[e->kind](m, e, wall_ns);
}

/* --- rendering --- */

struct label {
	const char *name, *value;
};

struct page {
	struct text *out;
	struct label common[2]; /* of every sample */
	const char *name;       /* of the family that is being written */
};

static void begin_family(struct page *p, const char *name, const char *type, const char *help)
{
	p->name = name;
	text_printf(p->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_label(struct page *p, const struct label *l)
{
	text_printf(p->out, "%s=", l->name);
	text_add_label(p->out, l->value);
}

/* A sample whose value follows, with labels of its own. */
static void begin_sample(struct page *p, const struct label *own, size_t count)
{
	text_printf(p->out, "%s{", p->name);
	for (size_t i = 0; i < 2; i++) {
		text_add(p->out, i ? "," : "");
		add_label(p, &p->common[i]);
	}
	for (size_t i = 0; i < count; i++) {
		text_add(p->out, ",");
		add_label(p, &own[i]);
	}
	text_add(p->out, "} ");
}

static void add_number(struct page *p, uint64_t number)
{
	text_printf(p->out, "%llu\n", (unsigned long long)number);
}

static void add_seconds(struct page *p, uint64_t ns)
{
	text_printf(p->out, "%llu.%0*llu\n", (unsigned long long)(ns / SECOND_NS), US_DIGITS,
		(unsigned long long)(ns % SECOND_NS / NS_PER_US));
}

/* Families of one sample. */

static void gauge(struct page *p, const char *name, const char *help, uint64_t number)
{
	begin_family(p, name, "gauge", help);
	begin_sample(p, NULL, 0);
	add_number(p, number);
}

static void counter(struct page *p, const char *name, const char *help, uint64_t number)
{
	begin_family(p, name, "counter", help);
	begin_sample(p, NULL, 0);
	add_number(p, number);
}

static void duration(struct page *p, const char *name, const char *help, uint64_t ns)
{
	begin_family(p, name, "counter", help);
	begin_sample(p, NULL, 0);
	add_seconds(p, ns);
}

/* A time of day; 0: not yet, so there is no such sample. */
static void moment(struct page *p, const char *name, const char *help, int64_t wall_ns)
{
	if (wall_ns <= 0)
		return;
	begin_family(p, name, "gauge", help);
	begin_sample(p, NULL, 0);
	add_seconds(p, (uint64_t)wall_ns);
}

/* A sample for each value of a label. */
static void samples(struct page *p, const char *label, const char *const *values,
	const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		begin_sample(p, &(struct label){ label, values[i] }, 1);
		add_number(p, numbers[i]);
	}
}

/* The same of states, each with how many are in it. */
static void states(struct page *p, const char *const *names, const unsigned *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		begin_sample(p, &(struct label){ "state", names[i] }, 1);
		add_number(p, numbers[i]);
	}
}

static void render_info(struct page *p, const struct metrics *m)
{
	const struct label build = { "version", LAUNCHD_VERSION };
	const struct label job[] = { { "host", m->host }, { "run_id", m->run_id } };

	begin_family(p, "launchd_build_info", "gauge", "Version of launchd; the value is 1.");
	begin_sample(p, &build, 1);
	add_number(p, 1);
	if (!m->started)
		return;
	begin_family(p, "launchd_job_info", "gauge",
		"Run id of the job and host of this launcher; the value is 1.");
	begin_sample(p, job, 2);
	add_number(p, 1);
}

static void render_job(struct page *p, const struct metrics *m)
{
	gauge(p, "launchd_job_nodes", "Nodes of the job.", m->nnodes);
	gauge(p, "launchd_job_workers", "Workers of the job, on all nodes.", m->world_size);
	gauge(p, "launchd_job_max_restarts", "Restarts that --max-restarts allows.",
		m->max_restarts);
	moment(p, "launchd_job_start_time_seconds", "When the nodes had met, since the epoch.",
		m->started_wall_ns);
	moment(p, "launchd_job_end_time_seconds",
		"When the job ended here, since the epoch; missing before.", m->ended_wall_ns);
	if (m->hang_watched)
		gauge(p, "launchd_hang_suspect", "1 while the job seems to hang.",
			m->hang_suspected);
	if (m->has_step) {
		gauge(p, "launchd_job_step",
			"Newest step of this attempt (--progress), not older than 10 s; missing before "
			"the first one.",
			m->step);
		moment(p, "launchd_job_step_time_seconds", "When it was told, since the epoch.",
			m->step_wall_ns);
	}
	if (!m->has_code)
		return;
	gauge(p, "launchd_job_exit_code", "Exit code of the job; missing before the verdict.",
		(uint64_t)m->exit_code);
}

static void render_attempts(struct page *p, const struct metrics *m)
{
	counter(p, "launchd_attempts_total", "Attempts that were started.", m->attempts);
	moment(p, "launchd_attempt_start_time_seconds",
		"When the latest attempt was started, since the epoch.", m->attempt_wall_ns);
	counter(p, "launchd_restarts_total", "Attempts that followed another one.", m->restarts);
	begin_family(
		p, "launchd_attempt_ends_total", "counter", "Attempts that have ended, by cause.");
	samples(p, "cause", ended_by_names, m->ends, ENDED_BY_COUNT);
	duration(p, "launchd_failed_attempts_seconds_total",
		"Time from the start of attempts to their failure, where another one followed.",
		m->failed_ns);
	duration(p, "launchd_restart_downtime_seconds_total",
		"Time from the failure of attempts to the start of the next one.", m->down_ns);
}

/* As the report calls a cause: of a failure its culprit's end is no part. */
static const char *lost_to(enum cause_kind kind)
{
	const struct cause c = { .kind = kind };

	return kind == CAUSE_FAILURE ? "failure" : ended_by_names[cause_of(&c)];
}

static void render_goodput(struct page *p, const struct goodput *g)
{
	unsigned per_mille = goodput_per_mille(g);

	if (g->attempts == 0)
		return;
	begin_family(p, "launchd_goodput_ratio", "gauge",
		"Part of the time since the first start in which all ranks ran, in attempts that have ended.");
	begin_sample(p, NULL, 0);
	text_printf(p->out, "%u.%03u\n", per_mille / 1000, per_mille % 1000);
	duration(p, "launchd_goodput_running_seconds_total",
		"Time in which all ranks ran, in attempts that have ended.", g->running_ns);
	duration(p, "launchd_goodput_startup_seconds_total",
		"Time from the first start until all ranks ran.", g->startup_ns);
	begin_family(p, "launchd_goodput_lost_seconds_total", "counter",
		"Time that was lost, by the cause of an attempt's end.");
	for (int i = CAUSE_NONE + 1; i < CAUSE_KINDS; i++) {
		begin_sample(p, &(struct label){ "cause", lost_to((enum cause_kind)i) }, 1);
		add_seconds(p, g->lost[i].ns);
	}
}

static void render_workers(struct page *p, const struct metrics *m)
{
	begin_family(p, "launchd_workers", "gauge",
		"Workers of the latest attempt on this node, by state.");
	states(p, doing_names, m->workers, DOING_COUNT);
	begin_family(p, "launchd_worker_failures_total", "counter",
		"Workers of this node that failed, unasked, by cause.");
	samples(p, "cause", ended_by_names, m->failures, ENDED_BY_WORKER);
}

static void render_output(struct page *p, const struct output_counts *c)
{
	begin_family(p, "launchd_output_bytes_total", "counter",
		"Bytes that launchd has read from workers.");
	samples(p, "stream", stream_names, c->read_bytes, 2);
	begin_family(p, "launchd_log_bytes_total", "counter",
		"Bytes that launchd has written into workers' log files.");
	samples(p, "stream", stream_names, c->log_bytes, 2);
	begin_family(p, "launchd_output_dropped_lines_total", "counter",
		"Lines of workers that a slow console did not get.");
	samples(p, "stream", stream_names, c->dropped_lines, 2);
}

static void render_nodes(struct page *p, const struct sight *now)
{
	if (now->nodes_known) {
		begin_family(p, "launchd_nodes", "gauge",
			"Nodes of the job by state, as node rank 0 knows them.");
		states(p, node_names, now->nodes, NODE_STATES);
	}
	if (now->trip_count > 0)
		begin_family(p, "launchd_beat_round_trip_seconds", "gauge",
			"Latest round trip to another node's launcher.");
	for (size_t i = 0; i < now->trip_count; i++) {
		char node[12];

		(void)snprintf(node, sizeof node, "%u", now->trips[i].node);
		begin_sample(p, &(struct label){ "peer", node }, 1);
		add_seconds(p, now->trips[i].ns);
	}
	if (!now->has_store)
		return;
	gauge(p, "launchd_store_clients", "Workers' connections to the store.", now->store_clients);
	gauge(p, "launchd_store_keys", "Keys in the store.", now->store_keys);
}

void metrics_render(const struct metrics *m, const struct metrics_moment *now, struct text *out)
{
	char node_rank[12] = ""; /* not known before the nodes have met */
	struct page p = {
		.out = out,
		.common = { { "job_name", m->job_name }, { "node_rank", node_rank } },
	};

	if (m->started)
		(void)snprintf(node_rank, sizeof node_rank, "%u", m->node_rank);
	render_info(&p, m);
	if (m->started) {
		render_job(&p, m);
		render_attempts(&p, m);
		render_goodput(&p, &m->goodput);
		render_workers(&p, m);
		render_output(&p, &now->output);
	}
	render_nodes(&p, now->sight);
}
