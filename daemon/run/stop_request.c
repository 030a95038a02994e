/* stop_request.c - see stop_request.h */
#include "daemon/run/stop_request.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/num.h"
#include "daemon/observe/bus.h"
#include "daemon/os/helper.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"
#include "daemon/output/front.h"
#include "daemon/run/attempt.h"
#include "daemon/run/state.h"
#include "daemon/workers/guard.h"

void run_request(struct run *r, const struct stop *s, enum urgency elsewhere)
{
	struct stop asked = *s;

	if (r->state == RUN_OVER) {
		member_hurry(&r->member); /* the report waits for its farewells */
		return;
	}
	attempt_stop(r, s); /* which may be the job's end */
	asked.urgency = elsewhere;
	if (r->state != RUN_OVER && elsewhere != URGENCY_NONE)
		member_asked(&r->member, &asked);
}

/* A signal that comes by both ways is one request: a batch system signals every process of a job.
 */
static unsigned requests(const struct run *r)
{
	unsigned guard = r->asked_to_end[WAY_GUARD], direct = r->asked_to_end[WAY_DIRECT];

	return (guard > direct ? guard : direct) + r->asked_to_end[WAY_CONTROL];
}

/* Which one it is; 0: it has come already. */
static unsigned count_request(struct run *r, enum signal_way way)
{
	unsigned before = requests(r);

	r->asked_to_end[way]++;
	return requests(r) > before ? requests(r) : 0;
}

static struct cause cause_now(const struct run *r, enum cause_kind kind)
{
	return (struct cause){ .kind = kind, .at_ns = uv_hrtime(), .node = r->plan->node_rank };
}

/* A stop that was not asked for by a signal. */
static struct stop stop_now(const struct run *r, enum urgency urgency, enum cause_kind kind)
{
	return (struct stop){
		.attempt = r->attempt.number,
		.urgency = urgency,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = cause_now(r, kind),
	};
}

static void on_max_runtime(uv_timer_t *t)
{
	struct run *r = t->data;
	const struct stop s = stop_now(r, URGENCY_STOP, CAUSE_MAX_RUNTIME);

	run_request(r, &s, URGENCY_STOP);
}

/* This node's workers end at once, those of the others in good order. */
static void kill_for(struct run *r, enum cause_kind kind)
{
	const struct stop s = stop_now(r, URGENCY_KILL, kind);

	run_request(r, &s, URGENCY_STOP);
}

/* The worker that sent it, or what it had started; NULL: somebody else did. */
static struct worker *sending_worker(const struct run *r, const struct relayed *got)
{
	if (got->code > 0 || got->pid <= 0 || r->state != RUN_WORKING)
		return NULL;
	return leftovers_owner(&r->pool.left, got->pid, got->session, got->branch);
}

/* Whether a worker or one of its processes sent it, though the rank may be unknown: an orphan, or a
 * process that has gone and did not signal the guard. */
static bool is_from_below(const struct run *r, const struct relayed *got, enum signal_way way)
{
	if (got->code > 0 || got->pid <= 0 || r->state != RUN_WORKING)
		return false;
	if (got->branch > 0)
		return !helper_is_lasting(got->branch);
	return (way == WAY_DIRECT && got->session <= 0) || leftovers_gone(&r->pool.left, got->pid);
}

/* The workers have ended, or end already. */
static bool is_ending(const struct run *r)
{
	return r->state != RUN_WORKING || r->urgency != URGENCY_NONE || r->known.kind != CAUSE_NONE;
}

/* Whether a worker of an attempt that is over sent it, or one that has gone to its parent. */
static bool stop_request_is_late(
	const struct run *r, const struct relayed *got, enum signal_way way)
{
	bool late = false;

	if (got->code > 0 || got->pid <= 0 || !r->outcomes || r->state == RUN_WORKING)
		return false;
	if (way == WAY_DIRECT && got->session <= 0 && got->branch <= 0)
		return true;
	for (unsigned i = 0; i < r->plan->start_count && !late; i++) {
		pid_t its = r->outcomes[i].pid;

		late = its > 0 && (its == got->pid || its == got->session || its == got->branch);
	}
	return late;
}

static struct cause cause_of_signal(const struct run *r, const struct relayed *got)
{
	const struct worker *sent_by = sending_worker(r, got);
	struct cause c = cause_now(r, CAUSE_SIGNAL);

	c.signal = got->signal;
	c.sender.kernel = got->code > 0; /* SI_KERNEL: the terminal; see sigaction(2) */
	c.sender.pid = c.sender.kernel ? 0 : got->pid;
	c.sender.uid = got->uid;
	if (sent_by)
		(void)snprintf(c.sender.command, sizeof c.sender.command, "rank %u",
			sent_by->outcome.rank);
	else
		process_command(c.sender.pid, c.sender.command);
	return c;
}

static void tell_received(
	const struct run *r, const struct cause *signal, const struct reaction *reaction)
{
	struct arena scratch = { 0 };

	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_SIGNAL_RECEIVED,
			.at_ns = signal->at_ns,
			.received = { signal->signal, &signal->sender,
				reaction_action(&scratch, reaction) },
		});
	arena_done(&scratch);
}

/* Who sent a signal that ends nothing is looked up only for those who want to know. */
static void tell_got(const struct run *r, const struct relayed *got)
{
	struct cause cause;

	if (!bus_wants(r->in->bus, EVENT_SIGNAL_RECEIVED))
		return;
	cause = cause_of_signal(r, got);
	tell_received(r, &cause, &r->plan->reactions.of[got->signal]);
}

/* What mpirun leaves of the grace is worth a line now, to one node of the job. */
static void warn_of_mpirun(struct run *r, const struct cause *c)
{
	if (c->signal == SIGTERM && !c->sender.kernel && r->plan->mpirun_cuts &&
		r->plan->node_rank == 0 && lifeline_is_launcher(&r->lifeline, c->sender.pid))
		bus_note(r->in->bus, NOTE_WARNING, r->plan->mpirun_cuts);
}

/* What workers get at once. */
static int signal_of(const struct run *r, const struct reaction *reaction, int came)
{
	if (reaction->kind == REACTION_PREEMPT)
		return r->plan->reactions.preempt;
	return reaction->kind == REACTION_STOP ? SIGTERM : came;
}

/* It is a preemption that ends the job. */
static void preempted(const struct run *r, struct stop *s)
{
	s->cause.kind = CAUSE_PREEMPTED;
	s->cause.requeue_code = r->plan->requeue_code;
	(void)snprintf(s->cause.detail, sizeof s->cause.detail, "%s s left",
		num_seconds(s->grace_ms).text);
}

static void request_by_signal(struct run *r, const struct relayed *got, enum signal_way way,
	const struct reaction *reaction)
{
	unsigned request = count_request(r, way);
	enum urgency urgency = request < URGENCY_KILL ? (enum urgency)request : URGENCY_KILL;
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = urgency,
		.signal = signal_of(r, reaction, got->signal),
		.grace_ms = reaction->grace_ms,
	};

	if (request == 0)
		return;
	s.cause = cause_of_signal(r, got);
	tell_received(r, &s.cause, reaction);
	if (reaction->kind == REACTION_PREEMPT)
		preempted(r, &s);
	if (request == 1 && r->state != RUN_OVER)
		warn_of_mpirun(r, &s.cause);
	run_request(r, &s, urgency);
}

void run_stop(struct run *r, const struct sender *sender, bool now)
{
	unsigned request = count_request(r, WAY_CONTROL);
	enum urgency urgency = request < URGENCY_KILL ? (enum urgency)request : URGENCY_KILL;
	const struct reaction end = { .kind = REACTION_END, .grace_ms = r->plan->grace_ms };
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = now ? URGENCY_KILL : urgency,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = cause_now(r, CAUSE_SIGNAL),
	};

	s.cause.signal = SIGTERM;
	s.cause.sender = *sender;
	guard_set_asked(r->in->guard);
	tell_received(r, &s.cause, &end);
	run_request(r, &s, s.urgency);
}

void run_restart(struct run *r, const struct sender *sender)
{
	struct stop s = stop_now(r, URGENCY_STOP, CAUSE_RESTART);

	s.cause.sender = *sender;
	if (r->state == RUN_MEETING || r->state == RUN_OVER)
		bus_note(r->in->bus, NOTE_WARNING,
			"a restart was requested, but no attempt is running");
	else
		member_asked(&r->member, &s);
}

void run_forward(struct run *r, int signal)
{
	if (r->state != RUN_WORKING)
		return;
	pool_forward(&r->pool, signal);
	bus_emit(
		r->in->bus, &(struct event){ .kind = EVENT_SIGNAL_FORWARDED, .forwarded = signal });
}

static void forward_to_all(struct run *r, int signal)
{
	run_forward(r, signal);
	/* mpirun and srun hand a signal to all nodes by themselves */
	if (!r->plan->lifeline_mark && r->state != RUN_OVER)
		member_forward(&r->member, signal);
}

static void restart_by_signal(struct run *r, const struct relayed *got)
{
	const struct cause c = cause_of_signal(r, got);

	tell_received(r, &c, &r->plan->reactions.of[got->signal]);
	run_restart(r, &c.sender);
}

/* The guard has woken us; see struct suspension. */
static void tell_stopped(const struct run *r)
{
	char text[256];

	(void)snprintf(text, sizeof text,
		"SIGSTOP stopped launchd's supervisor (pid %d) alone, which has been resumed; to "
		"suspend the job, send SIGTSTP to launchd itself (pid %d)",
		(int)getpid(), (int)r->in->guard->guard);
	bus_note(r->in->bus, NOTE_WARNING, text);
}

/* What would end the job for anybody else is the failure of the worker that sends it: serving
 * frameworks tell their parent so that they have failed. True: it was one. What --on-signal gives
 * another action it may ask for. */
static bool failed_by_signal(struct run *r, const struct relayed *got, enum signal_way way)
{
	const struct reaction *reaction = &r->plan->reactions.of[got->signal];
	struct worker *w = sending_worker(r, got);
	struct cause c;

	if (!reaction_ends(reaction) || (reaction->kind == REACTION_PREEMPT && reaction->named))
		return false;
	if (!w) /* workers that end may all send one */
		return stop_request_is_late(r, got, way) ||
			(is_ending(r) && is_from_below(r, got, way));
	c = cause_of_signal(r, got);
	tell_received(r, &c, reaction);
	pool_fail(&r->pool, w, got->signal);
	return true;
}

/* From a worker's process whose rank is unknown: it ends the job, and is no preemption. */
static void end_from_below(struct run *r, const struct relayed *got, enum signal_way way)
{
	struct reaction reaction = r->plan->reactions.of[got->signal];

	if (reaction.kind == REACTION_PREEMPT && !reaction.named)
		reaction.kind = REACTION_END;
	request_by_signal(r, got, way, &reaction);
}

/* The guard did not get it: it was for the parent of workers, so one of theirs sent it. With
 * several workers the rank is unknown. */
static void stop_request_doubt_over(uv_timer_t *t)
{
	struct run *r = t->data;
	const struct relayed *got = &r->doubted;
	struct worker *only = NULL;

	if (is_ending(r))
		return;
	if (r->pool.alive == 1)
		for (unsigned i = 0; i < r->plan->start_count; i++)
			if (worker_is_alive(&r->pool.workers[i]))
				only = &r->pool.workers[i];
	if (only) {
		r->doubted.pid = only->outcome.pid;
		(void)failed_by_signal(r, got, WAY_DIRECT);
		return;
	}
	end_from_below(r, got, WAY_DIRECT);
}

/* One that came to this process and ends the job, from a process that has gone before it could be
 * looked at. Those that signal all processes of a job signal the guard, too. */
static bool is_doubtful(struct run *r, const struct relayed *got, enum signal_way way)
{
	enum { GUARD_MS = 100 };

	if (way == WAY_GUARD && got->signal == r->doubted.signal)
		(void)uv_timer_stop(&r->doubt);
	if (way != WAY_DIRECT || got->code > 0 || got->pid <= 0 || got->session > 0 ||
		got->branch > 0 || is_ending(r) ||
		!reaction_ends(&r->plan->reactions.of[got->signal]) || sending_worker(r, got) ||
		uv_is_active((uv_handle_t *)&r->doubt))
		return false;
	r->doubted = *got;
	uv_update_time(&r->loop);
	(void)uv_timer_start(&r->doubt, stop_request_doubt_over, GUARD_MS, 0);
	return true;
}

static void on_signal(struct signals *s, const struct relayed *got, enum signal_way way)
{
	struct run *r = s->owner;
	enum reaction_kind kind = r->plan->reactions.of[got->signal].kind;

	if (got->signal == SIGSTOP) {
		tell_stopped(r);
		return;
	}
	if (got->signal == SIGCHLD) {
		lifeline_parent_gone(&r->lifeline);
		return;
	}
	if (is_doubtful(r, got, way) || failed_by_signal(r, got, way))
		return;
	/* the guard relays the rest, unless it came from below to its parent */
	if (way == WAY_DIRECT && !reaction_ends(&r->plan->reactions.of[got->signal]) &&
		!sending_worker(r, got))
		return;
	lifeline_signalled(&r->lifeline, got->signal);
	if (kind != REACTION_NONE && kind != REACTION_END && kind != REACTION_STOP &&
		kind != REACTION_PREEMPT && kind != REACTION_RESTART)
		tell_got(r, got);
	switch (kind) {
	case REACTION_NONE:
	case REACTION_IGNORE:
		return;
	case REACTION_REOPEN:
		output_reopen(r->in->output);
		return;
	case REACTION_FORWARD:
		forward_to_all(r, got->signal);
		return;
	case REACTION_SUSPEND:
		progress_hide(&r->progress);
		if (r->state == RUN_WORKING)
			pool_suspend(&r->pool);
		return;
	case REACTION_RESUME:
		if (r->state == RUN_WORKING)
			pool_resume(&r->pool);
		return;
	case REACTION_END:
	case REACTION_STOP:
	case REACTION_PREEMPT:
		if (is_from_below(r, got, way))
			end_from_below(r, got, way);
		else
			request_by_signal(r, got, way, &r->plan->reactions.of[got->signal]);
		return;
	case REACTION_RESTART:
		restart_by_signal(r, got);
		return;
	}
}

static void on_child(struct signals *s, pid_t first)
{
	struct run *r = s->owner;

	helper_on_child();
	if (r->state == RUN_WORKING)
		pool_on_child(&r->pool, first);
}

static void on_guard_gone(struct signals *s)
{
	struct run *r = s->owner;

	r->in->guard->gone = true;
	kill_for(r, CAUSE_GUARD);
	/* nobody is left who would thaw us, if it is frozen now */
	(void)cgroup_leaf_leave(&r->in->guard->leaf);
	attempt_tell_killed(r);
}

/* A guard that is stopped would never learn that its work is done. */
static void on_lifeline_lost(struct lifeline *l, enum cause_kind kind)
{
	struct run *r = l->owner;

	if (getppid() == r->in->guard->guard)
		(void)kill(r->in->guard->guard, SIGCONT);
	kill_for(r, kind);
}

static void on_preemption(void *owner, uint64_t left_ms)
{
	struct run *r = owner;
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = URGENCY_STOP,
		.signal = r->plan->reactions.preempt,
		.grace_ms = left_ms,
		.cause = cause_now(r, CAUSE_PREEMPTED),
	};

	preempted(r, &s);
	run_request(r, &s, URGENCY_STOP);
}

void request_watch_preemption(struct run *r)
{
	enum { WATCH_STAYS_MS = 60000 };
	const struct plan *p = r->plan;

	/* of several launchers on a host one is enough */
	if (!p->preempt_watch || (p->process.is && p->process.local_rank > 0))
		return;
	r->preempt_watch = (struct preempt_watch){
		.command = p->preempt_watch,
		.bus = r->in->bus,
		.argv = r->in->member->argv,
		.preset_ms = p->grace_ms,
		.stay_ms = WATCH_STAYS_MS,
		.announce = on_preemption,
		.owner = r,
	};
	preempt_watch_start(&r->preempt_watch, &r->loop);
}

void request_init(struct run *r)
{
	(void)uv_timer_init(&r->loop, &r->max_runtime); /* can't fail */
	(void)uv_timer_init(&r->loop, &r->doubt);
	r->max_runtime.data = r->doubt.data = r;
}

int request_listen(struct run *r)
{
	int rc;

	r->signals.owner = r->lifeline.owner = r;
	r->signals.on_signal = on_signal;
	r->signals.on_child = on_child;
	r->signals.on_guard_gone = on_guard_gone;
	r->lifeline.on_lost = on_lifeline_lost;
	rc = signals_start(&r->signals, &r->loop, &r->plan->reactions, &r->in->inherited->ignored,
		fd_take(&r->in->guard->relay), r->why);
	if (rc == 0 && r->plan->lifeline_mark)
		rc = lifeline_start(&r->lifeline, &r->loop, r->in->guard->parent,
			r->plan->lifeline_mark, r->plan->env, r->why);
	return rc;
}

void request_stop_watching(struct run *r)
{
	lifeline_stop(&r->lifeline);
	preempt_watch_stop(&r->preempt_watch);
	uv_close((uv_handle_t *)&r->max_runtime, NULL);
	uv_close((uv_handle_t *)&r->doubt, NULL);
}

void request_stop_listening(struct run *r)
{
	signals_stop(&r->signals);
}

void request_limit_runtime(struct run *r)
{
	uv_update_time(&r->loop);
	if (r->plan->max_runtime_ms > 0)
		(void)uv_timer_start(&r->max_runtime, on_max_runtime, r->plan->max_runtime_ms, 0);
}
