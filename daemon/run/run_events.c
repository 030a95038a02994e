/* run_events.c - what a run tells of itself, where anybody has asked for events; see run_parts.h */
#include "daemon/run/run_parts.h"

#include <signal.h>

#include "common/arena.h"
#include "daemon/observe/event.h"

bool run_tells(const struct run *r)
{
	return r->in->on->event != NULL;
}

static void tell(const struct run *r, struct event e)
{
	if (e.at_ns == 0)
		e.at_ns = uv_hrtime();
	r->in->on->event(r->in->owner, &e);
}

void run_tell_met(const struct run *r)
{
	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = EVENT_JOB_STARTED,
				.job_started = { r->plan, r->in->member->name },
			});
}

void run_tell_attempt(const struct run *r, unsigned master_port)
{
	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = EVENT_ATTEMPT_STARTED,
				.at_ns = r->end->own.started_ns,
				.attempt_started = { r->attempt.number, r->plan->master_addr,
					master_port },
			});
}

void run_tell_worker(const struct run *r, const struct outcome *o)
{
	bool ended = o->end.how != ENDED_NONE;

	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = ended ? EVENT_WORKER_ENDED : EVENT_WORKER_STARTED,
				.at_ns = ended ? o->ended_ns : o->started_ns,
				.worker = o,
			});
}

void run_tell_received(const struct run *r, const struct cause *signal)
{
	const struct reaction *reaction = &r->plan->reactions.of[signal->signal];
	struct arena scratch = { 0 };

	if (!run_tells(r))
		return;
	tell(r,
		(struct event){
			.kind = EVENT_SIGNAL_RECEIVED,
			.at_ns = signal->at_ns,
			.received = { signal->signal, &signal->sender,
				reaction_action(&scratch, reaction) },
		});
	arena_done(&scratch);
}

void run_tell_forwarded(const struct run *r, int signal)
{
	if (run_tells(r))
		tell(r, (struct event){ .kind = EVENT_SIGNAL_FORWARDED, .forwarded = signal });
}

void run_tell_stop(const struct run *r, const struct stop *s)
{
	static const char *const words[] = {
		[URGENCY_STOP] = EVENT_STOP_STOP,
		[URGENCY_HURRY] = EVENT_STOP_HURRY,
		[URGENCY_KILL] = EVENT_STOP_KILL,
	};
	bool kills = s->urgency == URGENCY_KILL;

	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = EVENT_STOP,
				.stop = { &s->cause, words[s->urgency],
					kills                      ? SIGKILL :
						r->pool.alive == 0 ? 0 :
								     s->signal,
					pool_grace_left_ms(&r->pool) },
			});
}

void run_tell_node(const struct run *r, unsigned rank, const char *name, const char *lost)
{
	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = lost ? EVENT_NODE_LOST : EVENT_NODE_JOINED,
				.other = { rank, name, lost },
			});
}

void run_tell_restart(const struct run *r, uint64_t delay_ms)
{
	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = EVENT_RESTART,
				.restart = { r->attempt.number + 1, delay_ms },
			});
}

/* The worker that failed first, where this node knows it. */
static const struct outcome *culprit_of(const struct job_end *end)
{
	return end->result ? result_culprit(end->result) : cause_culprit(&end->verdict.cause);
}

void run_tell_verdict(const struct run *r, const struct job_end *end)
{
	const struct verdict *v = &end->verdict;

	if (run_tells(r))
		tell(r,
			(struct event){
				.kind = EVENT_VERDICT,
				.verdict = { v->attempt, v->exit_code, v->text, culprit_of(end) },
			});
}
