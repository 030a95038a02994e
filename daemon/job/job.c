/* job.c - see job.h */
#include "daemon/job/job.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/sm.h"
#include "daemon/job/restart.h"
#include "daemon/job/verdict.h"

static const struct sm_state job_states[JOB_STATES] = {
	/* OVER: asked to end before it began */
	[JOB_MEETING] = { "meeting", SM_TO(JOB_RUNNING) | SM_TO(JOB_OVER) },
	[JOB_RUNNING] = { "running", SM_TO(JOB_STOPPING) | SM_TO(JOB_PAUSED) | SM_TO(JOB_OVER) },
	[JOB_STOPPING] = { "stopping", SM_TO(JOB_PAUSED) | SM_TO(JOB_OVER) },
	/* OVER: a request, or a lost node */
	[JOB_PAUSED] = { "paused", SM_TO(JOB_RUNNING) | SM_TO(JOB_OVER) },
	[JOB_OVER] = { "over", 0 },
};
const struct sm job_life = { "job", job_states, JOB_STATES };

static const struct sm_state node_states[NODE_STATES] = {
	[NODE_AWAITED] = { "awaited", SM_TO(NODE_JOINED) | SM_TO(NODE_ABSENT) },
	/* AWAITED: it went away before the job began */
	[NODE_JOINED] = { "joined", SM_TO(NODE_AWAITED) | SM_TO(NODE_ENDED) | SM_TO(NODE_LOST) },
	[NODE_ENDED] = { "ended", SM_TO(NODE_JOINED) | SM_TO(NODE_LEFT) | SM_TO(NODE_LOST) },
	[NODE_LEFT] = { "left", 0 },
	[NODE_LOST] = { "lost", 0 },
	[NODE_ABSENT] = { "absent", 0 },
};
const struct sm node_life = { "node", node_states, NODE_STATES };

static void job_goto(struct job *j, enum job_state next)
{
	j->state = sm_go(&job_life, j->state, next);
}

static void node_goto(struct job_node *n, enum node_state next)
{
	n->state = sm_go(&node_life, n->state, next);
}

int job_init(struct job *j, unsigned nnodes, const struct restart_policy *policy, uint64_t grace_ms,
	struct arena *arena)
{
	*j = (struct job){
		.nnodes = nnodes, .policy = *policy, .grace_ms = grace_ms, .arena = arena
	};
	assert(nnodes > 0);
	j->nodes = arena_alloc(arena, nnodes * sizeof *j->nodes);
	j->told = arena_alloc(arena, nnodes * sizeof *j->told);
	return j->nodes && j->told ? 0 : -ENOMEM;
}

static struct job_node *node_of(struct job *j, unsigned node)
{
	assert(node < j->nnodes);
	return &j->nodes[node];
}

void job_joined(struct job *j, unsigned node, unsigned nproc, const char *name)
{
	struct job_node *n = node_of(j, node);

	assert(j->state == JOB_MEETING);
	node_goto(n, NODE_JOINED);
	n->nproc = nproc;
	(void)snprintf(n->about.name, sizeof n->about.name, "%s", name);
}

void job_unjoined(struct job *j, unsigned node)
{
	struct job_node *n = node_of(j, node);

	assert(j->state == JOB_MEETING);
	node_goto(n, NODE_AWAITED);
	*n = (struct job_node){ .state = n->state };
}

void job_begin(struct job *j, uint64_t now_ns)
{
	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].state == NODE_AWAITED)
			node_goto(&j->nodes[i], NODE_ABSENT);
	j->started_ns = now_ns;
	job_goto(j, JOB_RUNNING);
}

void job_clock(struct job *j, unsigned node, int64_t offset_ns, uint64_t error_ns)
{
	struct job_node *n = node_of(j, node);

	n->offset_ns = offset_ns;
	n->about.clock_error_ns = error_ns;
}

static bool is_running(const struct job *j)
{
	return j->state == JOB_RUNNING || j->state == JOB_STOPPING;
}

void job_name_host(const struct job *j, struct cause *c)
{
	const char *name = j->nodes[c->node].about.name;

	if (j->nnodes > 1)
		(void)snprintf(c->host, sizeof c->host, "%s", *name ? name : "?");
}

/* --- what the nodes' parts of an attempt come to --- */

/* Whether all its workers have ended with 0, and nothing else ended it. */
static bool end_is_well(const struct node_end *end)
{
	for (size_t i = 0; i < end->count; i++)
		if (!ending_is_success(&end->outcomes[i].end))
			return false;
	return end->cause.kind == CAUSE_NONE;
}

/* Brings the time of a node to our clock; 0 stays 0. */
static uint64_t our_ns(const struct job *j, unsigned node, uint64_t node_ns)
{
	int64_t ours = (int64_t)(node_ns - (uint64_t)j->nodes[node].offset_ns);

	if (node_ns == 0)
		return 0;
	return ours > 0 ? (uint64_t)ours : 1; /* 0 means never */
}

/* An outcome as the node tells it, with its times brought to our clock. */
static struct outcome our_outcome(const struct job *j, unsigned node, const struct outcome *o)
{
	struct outcome ours = *o;

	ours.node = node;
	ours.attempt = j->attempt;
	ours.started_ns = our_ns(j, node, o->started_ns);
	ours.ended_ns = our_ns(j, node, o->ended_ns);
	ours.asked_ns = our_ns(j, node, o->asked_ns);
	return ours;
}

static void add_outcome(struct job *j, unsigned node, const struct outcome *o)
{
	j->outcomes[j->result.count++] = our_outcome(j, node, o);
}

/* A worker that could not be started has no end of its own: it failed when its node knew. */
static void add_ended(struct job *j, unsigned node)
{
	const struct node_end *e = &j->nodes[node].end;

	for (size_t i = 0; i < e->count; i++) {
		struct outcome o = e->outcomes[i];

		if (ending_is_unstarted(&o.end) && o.ended_ns == 0)
			o.ended_ns = e->cause.at_ns;
		add_outcome(j, node, &o);
	}
}

/* Its ranks follow those of the nodes before. A node without launchd tells no number of workers: it
 * has as many, as without control numbers must be equal. */
static unsigned first_rank(const struct job *j, unsigned node)
{
	unsigned rank = 0;

	for (unsigned i = 0; i < node; i++)
		rank += j->nodes[i].state == NODE_ABSENT ? j->nodes[node].nproc : j->nodes[i].nproc;
	return rank;
}

/* Of the workers of a lost node nothing is known, but for the one that it told of before. */
static void add_lost(struct job *j, unsigned node)
{
	const struct job_node *n = &j->nodes[node];
	unsigned first = first_rank(j, node);

	for (unsigned i = 0; i < n->nproc; i++) {
		struct outcome o = { .rank = first + i, .local_rank = i };

		if (n->has_failed && n->failed.local_rank == i)
			o = n->failed;
		add_outcome(j, node, &o);
	}
}

static size_t count_outcomes(const struct job *j)
{
	size_t count = 0;

	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].has_ended)
			count += j->nodes[i].end.count;
		else if (j->nodes[i].state == NODE_LOST)
			count += j->nodes[i].nproc;
	return count;
}

static void add_all(struct job *j)
{
	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].has_ended)
			add_ended(j, i);
		else if (j->nodes[i].state == NODE_LOST)
			add_lost(j, i);
}

static void add_survivors(struct result *r, unsigned node, const struct node_end *e)
{
	for (unsigned i = 0; i < e->survivor_count; i++) {
		if (r->survivor_count < SURVIVORS_MAX && i < SURVIVORS_MAX) {
			r->survivors[r->survivor_count] = e->survivors[i];
			r->survivors[r->survivor_count].node = node;
		}
		r->survivor_count++;
	}
}

/* Whether it may have been lost before the one that counts: one of them was heard after the other's
 * last word, and then not any more. */
static bool is_rival_loss(const struct job *j, const struct job_node *n)
{
	return n->state == NODE_LOST && !n->has_ended && n->lost.node != j->lost.node &&
		n->lost.at_ns <= j->lost.noticed_ns;
}

static void add_nodes(struct job *j)
{
	struct result *r = &j->result;

	for (unsigned i = 0; i < j->nnodes; i++) {
		const struct job_node *n = &j->nodes[i];
		uint64_t started = our_ns(j, i, n->end.started_ns);

		j->told[i] = n->about;
		j->told[i].lost = n->state == NODE_LOST;
		j->told[i].lost_unsure = is_rival_loss(j, n);
		if (!n->has_ended)
			continue;
		if (started > 0 && (r->started_ns == 0 || started < r->started_ns))
			r->started_ns = started;
		r->left += n->end.left;
		r->left_killed += n->end.left_killed;
		r->left_unknown |= n->end.left_unknown;
		add_survivors(r, i, &n->end);
	}
}

/* A node looks who has died before it obeys a request, and so knows their order better than two
 * times that are close to each other tell. */
static struct cause asked_in_order(const struct job *j)
{
	enum { CLOSE_NS = 1000000 };
	/* a node that is lost meanwhile ends what was to go on */
	struct cause asked =
		j->asked.kind == CAUSE_NONE && j->lost.kind == CAUSE_NONE ? j->restart : j->asked;
	const struct job_node *n = &j->nodes[asked.node];
	uint64_t failed_ns = our_ns(j, asked.node, n->end.cause.at_ns);

	if (n->has_ended && n->end.cause.kind == CAUSE_FAILURE &&
		failed_ns < asked.at_ns + CLOSE_NS && asked.at_ns < failed_ns + CLOSE_NS)
		asked.at_ns = failed_ns + CLOSE_NS;
	return asked;
}

/* A node may end for a reason that it did not tell before, or for one that its outcomes do not
 * show. */
static void find_untold(struct job *j)
{
	struct result *r = &j->result;

	for (unsigned i = 0; i < j->nnodes && r->cause.kind == CAUSE_NONE; i++) {
		const struct job_node *n = &j->nodes[i];

		if (!n->has_ended || end_is_well(&n->end))
			continue;
		r->cause = n->end.cause;
		r->cause.node = i;
		r->cause.at_ns = our_ns(j, i, n->end.cause.at_ns);
		if (r->cause.kind == CAUSE_FAILURE)
			r->cause.culprit = our_outcome(j, i, &n->end.cause.culprit);
		if (r->cause.kind != CAUSE_NONE)
			continue;
		r->cause.kind = CAUSE_NODE_LOST;
		(void)snprintf(r->cause.detail, sizeof r->cause.detail,
			"its workers failed, but it could not report which ones");
	}
}

/* What those say that time out is a line of output, by which a job seems to move. */
static void set_suspects(struct job *j)
{
	const uint64_t words_ns = 30000000000;
	const struct job_suspects *s = &j->suspects;
	uint64_t stopped_ns = j->stop.cause.at_ns;

	if (s->count == 0 || (s->cleared_ns && stopped_ns > s->cleared_ns + words_ns))
		return;
	j->result.suspects = s->ranks;
	j->result.suspect_count = s->count;
}

/* Fills j->result from what all nodes have told. */
static void make_result(struct job *j, uint64_t now_ns)
{
	struct result *r = &j->result;
	struct cause asked = asked_in_order(j);
	size_t count = count_outcomes(j);

	*r = (struct result){ .nodes = j->told, .node_count = j->nnodes, .ended_ns = now_ns };
	if (count > j->room) {
		j->outcomes = arena_alloc(j->arena, count * sizeof *j->outcomes);
		j->room = j->outcomes ? count : 0;
	}
	if (j->outcomes)
		add_all(j);
	r->outcomes = j->outcomes;
	set_suspects(j);
	add_nodes(j);
	if (r->started_ns == 0)
		r->started_ns = j->started_ns;
	verdict_find(r, &asked, &j->lost);
	if (r->cause.kind == CAUSE_NONE)
		find_untold(j);
}

/* --- what follows from it --- */

/* All workers of the job are to end, more urgently than so far. Whoever hears why must be able to
 * tell it without us. */
static enum order stop(struct job *j, const struct stop *s)
{
	if (s->urgency <= j->stop.urgency)
		return ORDER_NONE;
	j->stop = *s;
	j->stop.attempt = j->attempt;
	job_name_host(j, &j->stop.cause);
	if (j->state == JOB_RUNNING)
		job_goto(j, JOB_STOPPING);
	return ORDER_STOP;
}

static enum order stop_for(struct job *j, const struct cause *cause)
{
	return stop(j,
		&(struct stop){
			.urgency = URGENCY_STOP,
			.signal = SIGTERM,
			.grace_ms = j->grace_ms,
			.cause = *cause,
		});
}

/* The one that is known to be the first so far is what all nodes are told. */
static enum order stop_for_failure(
	struct job *j, unsigned node, const struct outcome *o, uint64_t now_ns)
{
	struct outcome failed = our_outcome(j, node, o);
	struct cause cause, *known = &j->stop.cause;

	failed.late_ns = 0; /* it may reach back before our clock began */
	cause = cause_of_failure(&failed);
	if (cause.at_ns == 0) /* it could not be started */
		cause.at_ns = now_ns;
	if (j->stop.urgency == URGENCY_NONE)
		return stop_for(j, &cause);
	if (known->kind != CAUSE_FAILURE || known->at_ns <= cause.at_ns)
		return ORDER_NONE;
	*known = cause;
	job_name_host(j, known);
	return ORDER_STOP;
}

/* A node has ended, and nothing that it told before was a reason for that. */
static enum order stop_for_end(
	struct job *j, unsigned node, const struct node_end *end, uint64_t now_ns)
{
	struct cause cause = end->cause;

	if (*cause.host)
		return ORDER_NONE; /* it has that from us */
	if (cause.kind == CAUSE_FAILURE)
		return stop_for_failure(j, node, &cause.culprit, now_ns);
	for (size_t i = 0; i < end->count && cause.kind == CAUSE_NONE; i++)
		if (!ending_is_success(&end->outcomes[i].end))
			return stop_for_failure(j, node, &end->outcomes[i], now_ns);
	cause.node = node;
	cause.at_ns = now_ns;
	return stop_for(j, &cause);
}

static enum order end(struct job *j)
{
	job_goto(j, JOB_OVER);
	return ORDER_OVER;
}

/* --- what is kept of an attempt --- */

static struct past_attempt past_of(const struct job *j)
{
	const struct result *r = &j->result;
	const struct outcome *culprit = result_culprit(r);
	struct past_attempt p = {
		.attempt = j->attempt,
		.cause = r->cause.kind,
		.has_culprit = culprit != NULL,
		.node = r->cause.node,
		.started_ns = j->started_ns,
		.ended_ns = r->ended_ns,
		.has_step = j->steps.attempt_known,
		.step = j->steps.attempt_best,
	};

	if (!culprit)
		return p;
	p.rank = culprit->rank;
	p.local_rank = culprit->local_rank;
	p.node = culprit->node;
	if (j->find_site)
		j->find_site(j->owner, p.rank, &p.site);
	return p;
}

/* The node to leave out where it was the first to fail more than once, by its hardware. Advice that
 * nobody can follow, or that a program's own failure gave, is none. */
static void note_place(struct job *j)
{
	struct cause *c = &j->result.cause;
	unsigned node = j->past.at ? history_nth(&j->past, history_count(&j->past) - 1)->node : 0;
	bool gpu;

	if (!j->policy.other_hosts || !history_blames_hardware(&j->past) ||
		history_place(&j->past, j->nnodes, j->result.count, &gpu) == 0 || node >= j->nnodes)
		return;
	if (*j->nodes[node].about.name)
		c->exclude = j->nodes[node].about.name;
}

/* Whether another attempt follows, and why; of both the history keeps a note. */
static bool decide(struct job *j, uint64_t now_ns)
{
	const struct past_attempt now = past_of(j);
	struct past_attempt *past = history_add(&j->past, &now, j->arena);
	bool due;

	note_place(j);
	due = restart_is_due(j, &j->result, now_ns, j->why_not);
	if (!due)
		j->result.cause.futile = restart_is_futile(j, &j->result);
	if (past) {
		past->restarts = due;
		(void)snprintf(past->reason, sizeof past->reason, "%s", j->why_not);
		if (due)
			restart_reason(j, now_ns, past->reason);
	}
	if (due && j->policy.window_ms > 0 && j->restart.kind == CAUSE_NONE)
		history_note_restart(&j->past, now_ns, restart_window_ns(j, now_ns), j->arena);
	return due;
}

static void add_goodput(struct job *j)
{
	const struct goodput_attempt a = {
		.started_ns = j->started_ns,
		.has_step = j->steps.attempt_known,
		.step_ns = j->steps.at_ns,
		.beyond_ns = j->steps.beyond_ns,
	};

	goodput_add(&j->goodput, &a, &j->result);
}

/* No node is left that runs workers: what follows? */
static enum order settle(struct job *j, uint64_t now_ns)
{
	for (unsigned i = 0; i < j->nnodes; i++)
		if (j->nodes[i].state == NODE_JOINED)
			return ORDER_NONE;
	make_result(j, now_ns);
	add_goodput(j);
	if (!decide(j, now_ns))
		return end(j);
	j->delay_ms = restart_delay_ms(j, now_ns);
	job_goto(j, JOB_PAUSED);
	return ORDER_RESTART;
}

enum order job_failed(struct job *j, unsigned node, const struct outcome *o, uint64_t now_ns)
{
	struct job_node *n = node_of(j, node);

	if (!is_running(j) || n->state != NODE_JOINED || o->attempt != j->attempt)
		return ORDER_NONE;
	if (!n->has_failed) {
		n->failed = *o;
		n->failed.asked = ASKED_NOTHING;
		n->has_failed = true;
	}
	return stop_for_failure(j, node, &n->failed, now_ns);
}

/* Nothing runs that would have to end first. */
static enum order end_as_asked(struct job *j)
{
	if (j->state == JOB_MEETING)
		make_result(j, j->asked.at_ns);
	else
		history_withdraw(&j->past, "the job was asked to end");
	j->result.cause = j->asked;
	j->result.unsure = false;
	goodput_stop(&j->goodput, j->asked.at_ns);
	return end(j);
}

/* A request to end the job that was there before stands. */
static enum order restart(struct job *j, const struct stop *s)
{
	if (!is_running(j) || !restart_is_possible(j))
		return ORDER_NONE;
	if (j->restart.kind == CAUSE_NONE)
		j->restart = s->cause;
	return stop(j, s);
}

/* It ends the attempt, and the job only where no restart follows: who wants the job's end asks for
 * more. */
static bool is_hang(const struct job *j)
{
	return j->asked.kind == CAUSE_HANG && j->policy.hangs;
}

enum order job_asked(struct job *j, unsigned node, const struct stop *asked)
{
	struct stop s = *asked;

	if (j->state == JOB_OVER || node_of(j, node)->state == NODE_LOST)
		return ORDER_NONE;
	/* node rank 0 found it out, not the node itself */
	if (s.cause.kind != CAUSE_BAD_NODE || s.cause.node >= j->nnodes)
		s.cause.node = node;
	s.cause.at_ns = our_ns(j, node, asked->cause.at_ns);
	if (s.cause.kind == CAUSE_RESTART)
		return restart(j, &s);
	/* of several requests the first one counts, as far as the clocks tell */
	if (j->asked.kind == CAUSE_NONE || s.cause.at_ns < j->asked.at_ns || is_hang(j))
		j->asked = s.cause;
	return is_running(j) ? stop(j, &s) : end_as_asked(j);
}

enum order job_ended(struct job *j, unsigned node, const struct node_end *end, uint64_t now_ns)
{
	struct job_node *n = node_of(j, node);
	enum order what;

	if (!is_running(j) || n->state != NODE_JOINED || end->attempt != j->attempt)
		return ORDER_NONE;
	n->end = *end;
	n->has_ended = true;
	node_goto(n, NODE_ENDED);
	what = settle(j, now_ns);
	if (what == ORDER_NONE && !end_is_well(end))
		what = stop_for_end(j, node, end, now_ns);
	return what;
}

/* Of several the one counts that was missed first: a silence may have begun long before a word was
 * due, and need not. */
static void note_loss(struct job *j, unsigned node, const struct loss *loss, uint64_t now_ns)
{
	struct job_node *n = &j->nodes[node];

	node_goto(n, NODE_LOST);
	n->due_ns = loss->due_ns;
	n->lost = (struct cause){
		.kind = CAUSE_NODE_LOST,
		.at_ns = loss->heard_ns,
		.noticed_ns = loss->due_ns > loss->heard_ns ? now_ns : loss->heard_ns,
		.node = node,
		.signal = loss->signal,
	};
	(void)snprintf(n->lost.detail, sizeof n->lost.detail, "%s", loss->detail);
	if (n->has_ended)
		return; /* its whole story is told: it is no cause any more */
	if (loss->own)
		j->lost = *loss->own;
	else if (j->lost.kind == CAUSE_NONE ||
		(!j->lost.asleep && n->due_ns < j->nodes[j->lost.node].due_ns))
		j->lost = n->lost;
}

enum order job_give_up(struct job *j, const char *why, uint64_t now_ns)
{
	if (j->state != JOB_PAUSED)
		return ORDER_NONE;
	(void)snprintf(j->why_not, sizeof j->why_not, "%s", why);
	history_withdraw(&j->past, j->why_not);
	goodput_stop(&j->goodput, now_ns);
	return end(j);
}

/* A node that is gone between two attempts: the failure stays the cause, but nothing follows it. */
static enum order lose_paused(struct job *j, unsigned node, uint64_t now_ns)
{
	char why[WHY_NOT_SIZE];

	j->told[node].lost = true;
	(void)restart_is_due(j, &j->result, now_ns, why);
	return job_give_up(j, why, now_ns);
}

static bool has_ended_well(const struct job_node *n)
{
	return n->state == NODE_ENDED && end_is_well(&n->end);
}

enum order job_lost(struct job *j, unsigned node, const struct loss *loss, uint64_t now_ns)
{
	struct job_node *n = node_of(j, node);
	enum order what;

	if (j->state == JOB_OVER || (n->state != NODE_JOINED && n->state != NODE_ENDED))
		return ORDER_NONE;
	if (j->state == JOB_MEETING) {
		job_unjoined(j, node);
		return ORDER_NONE;
	}
	if (has_ended_well(n) && j->state != JOB_PAUSED) {
		node_goto(n, NODE_LEFT); /* all that was asked of it is done */
		return ORDER_NONE;
	}
	note_loss(j, node, loss, now_ns);
	if (j->state == JOB_PAUSED)
		return lose_paused(j, node, now_ns);
	what = settle(j, now_ns);
	return what == ORDER_NONE && !n->has_ended ? stop_for(j, loss->own ? loss->own : &n->lost) :
						     what;
}

enum order job_left(struct job *j, unsigned node, uint64_t now_ns)
{
	const struct loss loss = { now_ns, now_ns, "it left before the job had ended", NULL, 0 };
	struct job_node *n = node_of(j, node);

	if (!has_ended_well(n) || j->state == JOB_PAUSED)
		return job_lost(j, node, &loss, now_ns);
	node_goto(n, NODE_LEFT);
	return ORDER_NONE; /* the job waits for those that run, and for nobody where it is over */
}

bool job_step(struct job *j, unsigned node, uint64_t step, uint64_t node_ns)
{
	struct job_steps *s = &j->steps;
	uint64_t at_ns = our_ns(j, node, node_ns);

	if (!is_running(j) || node_of(j, node)->state != NODE_JOINED ||
		(s->attempt_known && step < s->attempt_best))
		return false;
	if (s->attempt_known && step == s->attempt_best) { /* whichever came first */
		if (at_ns < s->at_ns)
			s->at_ns = at_ns;
		return false;
	}
	s->attempt_known = true;
	s->attempt_best = step;
	s->at_ns = at_ns;
	if (!s->known || step > s->best) {
		s->best = step;
		s->beyond_ns = s->beyond_ns > 0 ? s->beyond_ns : at_ns;
	}
	s->known = true;
	return true;
}

void job_suspect(struct job *j, const unsigned *ranks, size_t count, uint64_t now_ns)
{
	struct job_suspects *s = &j->suspects;

	if (j->state != JOB_RUNNING)
		return;
	if (count == 0) {
		s->cleared_ns = now_ns;
		return;
	}
	*s = (struct job_suspects){ .count = count < SUSPECTS_MAX ? count : SUSPECTS_MAX };
	memcpy(s->ranks, ranks, s->count * sizeof *ranks);
}

void job_resume(struct job *j, uint64_t now_ns)
{
	job_goto(j, JOB_RUNNING);
	j->attempt++;
	if (j->restart.kind != CAUSE_NONE)
		j->asked_restarts++;
	j->restart = (struct cause){ .kind = CAUSE_NONE };
	if (is_hang(j))
		j->asked = j->restart;
	j->started_ns = now_ns;
	j->suspects = (struct job_suspects){ .count = 0 };
	j->steps.attempt_known = false;
	j->steps.attempt_best = j->steps.beyond_ns = 0;
	j->stop = (struct stop){ .urgency = URGENCY_NONE };
	for (unsigned i = 0; i < j->nnodes; i++) {
		struct job_node *n = &j->nodes[i];

		node_goto(n, NODE_JOINED);
		n->has_ended = n->has_failed = false;
	}
}
