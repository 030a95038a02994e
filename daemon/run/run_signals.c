/* run_signals.c - what a run hears beside its workers and the other nodes; see run_parts.h */
#include "daemon/run/run_parts.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"

void run_know(struct run *r, const struct cause *c)
{
	bool better = r->known.kind == CAUSE_FAILURE && c->kind == CAUSE_FAILURE && *c->host;

	if (r->known.kind != CAUSE_NONE && !better)
		return;
	r->known = *c;
	if (r->shared)
		guard_foresee(r->in->guard, cause_exit_code(c), false);
}

void run_tell_stop(const struct run *r, const struct stop *s)
{
	static const char *const words[] = {
		[URGENCY_STOP] = EVENT_STOP_STOP,
		[URGENCY_HURRY] = EVENT_STOP_HURRY,
		[URGENCY_KILL] = EVENT_STOP_KILL,
	};
	int signal = s->urgency == URGENCY_KILL ? SIGKILL : r->pool.alive == 0 ? 0 : s->signal;

	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_STOP,
			.stop = { &s->cause, words[s->urgency], signal,
				pool_grace_left_ms(&r->pool) },
		});
}

void run_stop_here(struct run *r, const struct stop *s)
{
	bool acted;

	run_know(r, &s->cause);
	if (s->urgency <= r->urgency) {
		if (r->state == RUN_WORKING)
			pool_cut(&r->pool, s->grace_ms);
		return;
	}
	r->urgency = s->urgency;
	if (r->state == RUN_OPENING)
		run_end_unstarted(r, &s->cause);
	if (r->state != RUN_WORKING)
		return;
	if (s->urgency == URGENCY_KILL)
		acted = pool_kill(&r->pool, &s->cause);
	else
		acted = pool_stop(&r->pool, &s->cause, s->signal, s->grace_ms);
	if (s->urgency == URGENCY_HURRY)
		acted |= pool_hurry(&r->pool, s->grace_ms);
	if (acted)
		run_tell_stop(r, s);
}

void run_stop_everywhere(struct run *r, const struct stop *s)
{
	run_stop_here(r, s);
	if (r->state != RUN_OVER)
		member_asked(&r->member, s);
}

/* A request that comes by both ways is one: a batch system signals every process of a job. */
static unsigned count_request(struct run *r, enum signal_way way)
{
	enum signal_way other = way == WAY_GUARD ? WAY_DIRECT : WAY_GUARD;

	return ++r->asked_to_end[way] > r->asked_to_end[other] ? r->asked_to_end[way] : 0;
}

struct cause run_cause(const struct run *r, enum cause_kind kind)
{
	return (struct cause){ .kind = kind, .at_ns = uv_hrtime(), .node = r->plan->node_rank };
}

static struct cause cause_of_signal(const struct run *r, const struct relayed *got)
{
	struct cause c = run_cause(r, CAUSE_SIGNAL);

	c.signal = got->signal;
	c.sender.kernel = got->code > 0; /* SI_KERNEL: the terminal; see sigaction(2) */
	c.sender.pid = c.sender.kernel ? 0 : got->pid;
	c.sender.uid = got->uid;
	process_command(c.sender.pid, c.sender.command);
	return c;
}

static void tell_received(const struct run *r, const struct cause *signal)
{
	const struct reaction *reaction = &r->plan->reactions.of[signal->signal];
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
	tell_received(r, &cause);
}

/* What mpirun leaves of the grace is worth a line now, to one node of the job. */
static void warn_of_mpirun(struct run *r, const struct cause *c)
{
	if (c->signal == SIGTERM && !c->sender.kernel && r->plan->mpirun_cuts &&
		r->plan->node_rank == 0 && lifeline_is_launcher(&r->lifeline, c->sender.pid))
		bus_note(r->in->bus, NOTE_WARNING, r->plan->mpirun_cuts);
}

static void on_request(struct run *r, const struct relayed *got, enum signal_way way)
{
	const struct cause cause = cause_of_signal(r, got);
	const struct reaction *reaction = &r->plan->reactions.of[got->signal];
	unsigned request = count_request(r, way);

	if (r->state == RUN_OVER)
		member_hurry(&r->member); /* the report waits for its farewells */
	if (request == 0)
		return;
	tell_received(r, &cause);
	if (r->state == RUN_OVER)
		return;
	if (request == 1)
		warn_of_mpirun(r, &cause);
	run_stop_everywhere(r,
		&(struct stop){
			.attempt = r->attempt.number,
			.urgency = request < URGENCY_KILL ? (enum urgency)request : URGENCY_KILL,
			.signal = reaction->kind == REACTION_STOP ? SIGTERM : got->signal,
			.grace_ms = reaction->grace_ms,
			.cause = cause,
		});
}

void run_forward_here(struct run *r, int signal)
{
	if (r->state != RUN_WORKING)
		return;
	pool_forward(&r->pool, signal);
	bus_emit(
		r->in->bus, &(struct event){ .kind = EVENT_SIGNAL_FORWARDED, .forwarded = signal });
}

static void forward(struct run *r, int signal)
{
	run_forward_here(r, signal);
	/* mpirun and srun hand a signal to all nodes by themselves */
	if (!r->plan->lifeline_mark && r->state != RUN_OVER)
		member_forward(&r->member, signal);
}

/* The guard has woken us; see struct standstill. */
static void tell_stopped(const struct run *r)
{
	char text[256];

	(void)snprintf(text, sizeof text,
		"launchd's supervisor (pid %d) was stopped by SIGSTOP, alone, and goes on now; to "
		"stop the job, stop launchd itself (pid %d, with SIGTSTP)",
		(int)getpid(), (int)r->in->guard->guard);
	bus_note(r->in->bus, NOTE_WARNING, text);
}

static void on_signal(struct signals *s, const struct relayed *got, enum signal_way way)
{
	struct run *r = s->owner;
	enum reaction_kind kind = r->plan->reactions.of[got->signal].kind;

	if (got->signal == SIGSTOP) {
		tell_stopped(r);
		return;
	}
	lifeline_signalled(&r->lifeline, got->signal);
	if (kind != REACTION_NONE && kind != REACTION_END && kind != REACTION_STOP)
		tell_got(r, got);
	switch (kind) {
	case REACTION_NONE:
	case REACTION_IGNORE:
		return;
	case REACTION_REOPEN:
		output_reopen(r->in->output);
		return;
	case REACTION_FORWARD:
		forward(r, got->signal);
		return;
	case REACTION_SUSPEND:
		run_status_stop(r);
		if (r->state == RUN_WORKING)
			pool_suspend(&r->pool);
		return;
	case REACTION_RESUME:
		if (r->state == RUN_WORKING)
			pool_resume(&r->pool);
		return;
	case REACTION_END:
	case REACTION_STOP:
		on_request(r, got, way);
		return;
	}
}

static void on_child(struct signals *s)
{
	struct run *r = s->owner;

	if (r->state == RUN_WORKING)
		pool_on_child(&r->pool);
}

/* This node's workers end at once, those of the others in good order. */
static void kill_for(struct run *r, enum cause_kind kind)
{
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = URGENCY_KILL,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = run_cause(r, kind),
	};

	run_stop_here(r, &s);
	s.urgency = URGENCY_STOP;
	if (r->state != RUN_OVER)
		member_asked(&r->member, &s);
	else
		member_hurry(&r->member);
}

static void on_guard_gone(struct signals *s)
{
	struct run *r = s->owner;

	r->in->guard->gone = true;
	kill_for(r, CAUSE_GUARD);
	/* nobody is left who would thaw us, if it is frozen now */
	(void)cgroup_leaf_leave(&r->in->guard->leaf);
	run_tell_own(r);
}

/* A guard that is stopped would never learn that its work is done. */
static void on_lifeline_lost(struct lifeline *l, enum cause_kind kind)
{
	struct run *r = l->owner;

	if (getppid() == r->in->guard->guard)
		(void)kill(r->in->guard->guard, SIGCONT);
	kill_for(r, kind);
}

int run_listen(struct run *r)
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

void run_stop_watching(struct run *r)
{
	lifeline_stop(&r->lifeline);
}

void run_stop_listening(struct run *r)
{
	signals_stop(&r->signals);
}
