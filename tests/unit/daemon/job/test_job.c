/* test_job.c - the whole job, event by event. Three nodes of one worker each; times are in s. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "daemon/job/job.h"

#define S(seconds) ((uint64_t)((seconds)*1e9))

struct stand {
	struct job j;
	struct arena arena;
};

static void meet(struct stand *t, unsigned max_restarts, bool all)
{
	const struct restart_policy policy = { .max_restarts = max_restarts, .delay_ms = 50 };

	memset(t, 0, sizeof *t);
	assert_int_equal(job_init(&t->j, 3, &policy, 30000, &t->arena), 0);
	for (unsigned i = 0; i < (all ? 3u : 2u); i++)
		job_joined(&t->j, i, 1, "host");
}

static void begin(struct stand *t, unsigned max_restarts)
{
	meet(t, max_restarts, true);
	job_begin(&t->j, S(1));
	assert_int_equal(t->j.state, JOB_RUNNING);
}

static enum order end_as(
	struct stand *t, unsigned node, unsigned attempt, double at, const struct outcome *like)
{
	struct outcome *o = arena_alloc(&t->arena, sizeof *o);
	struct node_end end = { .attempt = attempt, .outcomes = o, .count = 1, .started_ns = S(1) };

	assert_non_null(o);
	*o = *like;
	o->rank = node;
	o->pid = o->end.how == ENDED_UNSTARTED ? 0 : 10;
	o->ended_ns = o->end.how == ENDED_UNSTARTED ? 0 : S(at);
	if (!ending_is_success(&o->end))
		end.cause = cause_of_failure(o);
	end.cause.at_ns = S(at);
	return job_ended(&t->j, node, &end, S(at));
}

static const struct outcome well = { .end = { ENDED_EXIT, 0, false } };
static const struct outcome failed = { .end = { ENDED_EXIT, 3, false } };
static const struct outcome unstarted = { .end = { ENDED_UNSTARTED, 2, false } };
static const struct outcome stopped = { .end = { ENDED_SIGNAL, SIGTERM, false },
	.asked = ASKED_TO_STOP };

static enum order fails(struct stand *t, unsigned node, unsigned attempt)
{
	struct outcome o = failed;

	o.attempt = attempt;
	o.ended_ns = S(2);
	o.pid = 10;
	return job_failed(&t->j, node, &o, S(2));
}

static enum order ask(struct stand *t, unsigned node, enum urgency urgency)
{
	const struct stop s = { .urgency = urgency,
		.signal = SIGINT,
		.grace_ms = 7,
		.cause = { .kind = CAUSE_SIGNAL, .signal = SIGINT, .at_ns = S(3) } };

	return job_asked(&t->j, node, &s);
}

static enum order lose(struct stand *t, unsigned node, double at)
{
	const struct loss loss = { S(at), S(at), "cut", NULL, 0 };

	return job_lost(&t->j, node, &loss, S(at));
}

/* It says nothing for 10 s; it used to make that clearmething every second. */
static enum order miss(struct stand *t, unsigned node, double heard)
{
	const struct loss loss = { S(heard), S(heard + 1), "silent", NULL, 0 };

	return job_lost(&t->j, node, &loss, S(heard + 10));
}

static void assert_over(struct stand *t, enum cause_kind kind, int code)
{
	assert_int_equal(t->j.state, JOB_OVER);
	assert_int_equal(t->j.result.cause.kind, kind);
	assert_int_equal(result_exit_code(&t->j.result), code);
	for (unsigned i = 0; i < 3; i++) { /* nothing changes it */
		assert_int_equal(end_as(t, i, t->j.attempt, 9, &failed), ORDER_NONE);
		assert_int_equal(fails(t, i, t->j.attempt), ORDER_NONE);
		assert_int_equal(ask(t, i, URGENCY_KILL), ORDER_NONE);
		assert_int_equal(lose(t, i, 9), ORDER_NONE);
	}
	assert_int_equal(t->j.state, JOB_OVER);
	arena_done(&t->arena);
}

static void test_well(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 0);
	assert_int_equal(end_as(&t, 2, 0, 5, &well), ORDER_NONE);
	assert_int_equal(job_left(&t.j, 2, S(5)), ORDER_NONE);
	assert_int_equal(lose(&t, 2, 6), ORDER_NONE); /* it has said that it goes */
	assert_int_equal(end_as(&t, 0, 0, 5, &well), ORDER_NONE);
	assert_int_equal(lose(&t, 0, 6), ORDER_NONE); /* it has not, but is not missed either */
	assert_int_equal(end_as(&t, 1, 0, 5, &well), ORDER_OVER);
	assert_int_equal(t.j.result.count, 3);
	assert_over(&t, CAUSE_NONE, 0);
}

static void test_failure(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 0);
	assert_int_equal(fails(&t, 1, 7), ORDER_NONE); /* of another attempt */
	assert_int_equal(fails(&t, 1, 0), ORDER_STOP);
	assert_int_equal(t.j.state, JOB_STOPPING);
	assert_int_equal(t.j.stop.urgency, URGENCY_STOP);
	assert_int_equal(t.j.stop.signal, SIGTERM);
	assert_int_equal(t.j.stop.grace_ms, 30000);
	assert_int_equal(fails(&t, 1, 0), ORDER_NONE);
	assert_int_equal(fails(&t, 2, 0), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 4, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 4, &failed), ORDER_NONE); /* twice */
	assert_int_equal(end_as(&t, 0, 1, 4, &failed), ORDER_NONE); /* of another attempt */
	assert_int_equal(end_as(&t, 0, 0, 4, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 1, 0, 2, &failed), ORDER_OVER);
	assert_int_equal(t.j.result.cause.culprit.rank, 1);
	assert_string_equal(t.j.why_not, "");
	assert_over(&t, CAUSE_FAILURE, 3);
}

static enum order fails_at(struct stand *t, unsigned node, double at)
{
	struct outcome o = failed;

	o.rank = node;
	o.ended_ns = S(at);
	o.pid = 10;
	return job_failed(&t->j, node, &o, S(5));
}

/* All nodes are told who is known to be the first so far, and where: they may be alone soon. */
static void test_told(void **state)
{
	const struct cause *why;
	struct stand t;

	(void)state;
	begin(&t, 0);
	why = &t.j.stop.cause;
	assert_int_equal(fails_at(&t, 2, 3), ORDER_STOP);
	assert_int_equal(why->kind, CAUSE_FAILURE);
	assert_int_equal(why->culprit.rank, 2);
	assert_int_equal(why->node, 2);
	assert_string_equal(why->host, "host");
	assert_int_equal(fails_at(&t, 0, 4), ORDER_NONE);
	assert_int_equal(fails_at(&t, 1, 2), ORDER_STOP);
	assert_int_equal(why->culprit.rank, 1);
	assert_int_equal(why->at_ns, S(2));
	assert_int_equal(t.j.stop.urgency, URGENCY_STOP);
	assert_int_equal(cause_exit_code(why), 3);
	arena_done(&t.arena);
}

/* A node whose only word is that it has ended. */
static void test_untold(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 3);
	assert_int_equal(end_as(&t, 1, 0, 1.5, &unstarted), ORDER_STOP);
	assert_int_equal(end_as(&t, 0, 0, 4, &failed), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 4, &stopped), ORDER_OVER);
	assert_int_equal(t.j.result.cause.culprit.rank, 1);
	assert_string_equal(t.j.why_not, "exit code 127 means that a program could not be started");
	assert_over(&t, CAUSE_FAILURE, 127);
}

/* An attempt that starts again from a checkpoint does steps again, and is behind the best one. */
static void test_steps(void **state)
{
	const struct job_steps *s;
	struct stand t;

	(void)state;
	begin(&t, 1);
	s = &t.j.steps;
	assert_false(s->known || s->attempt_known);
	assert_true(job_step(&t.j, 0, 0, S(2)));
	assert_true(job_step(&t.j, 1, 10, S(3)));
	assert_false(job_step(&t.j, 2, 10, S(4)));
	assert_int_equal(s->at_ns, S(3));
	t.j.nodes[2].offset_ns = (int64_t)S(5);
	assert_false(job_step(&t.j, 2, 10, S(7))); /* it was the first, and is heard of later */
	assert_int_equal(s->at_ns, S(2));
	assert_int_equal(s->beyond_ns, S(2));
	t.j.nodes[2].offset_ns = 0;
	assert_false(job_step(&t.j, 0, 9, S(5)));
	assert_int_equal(s->best, 10);
	assert_int_equal(s->at_ns, S(2));
	assert_int_equal(fails(&t, 1, 0), ORDER_STOP);
	assert_int_equal(end_as(&t, 1, 0, 6, &failed), ORDER_NONE);
	assert_false(job_step(&t.j, 1, 11, S(6))); /* it has ended */
	assert_int_equal(end_as(&t, 0, 0, 6, &stopped), ORDER_NONE);
	assert_true(job_step(&t.j, 2, 12, S(6)));
	assert_int_equal(end_as(&t, 2, 0, 6, &stopped), ORDER_RESTART);
	assert_false(job_step(&t.j, 2, 13, S(6)));
	job_resume(&t.j, S(7));
	assert_true(s->known && !s->attempt_known);
	assert_true(job_step(&t.j, 0, 8, S(8)));
	assert_int_equal(s->attempt_best, 8);
	assert_int_equal(s->best, 12);
	assert_int_equal(s->at_ns, S(8));
	arena_done(&t.arena);
}

static void test_restart(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 2);
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		assert_int_equal(fails(&t, 1, attempt), ORDER_STOP);
		assert_int_equal(end_as(&t, 1, attempt, 2, &failed), ORDER_NONE);
		assert_int_equal(end_as(&t, 0, attempt, 3, &well), ORDER_NONE);
		assert_int_equal(end_as(&t, 2, attempt, 3, &stopped), ORDER_RESTART);
		assert_int_equal(t.j.delay_ms, 50u << attempt);
		assert_int_equal(t.j.state, JOB_PAUSED);
		assert_int_equal(fails(&t, 1, attempt), ORDER_NONE);
		job_resume(&t.j, S(1));
		assert_int_equal(t.j.attempt, attempt + 1);
		assert_int_equal(end_as(&t, 1, attempt, 2, &failed), ORDER_NONE);
		assert_int_equal(t.j.state, JOB_RUNNING);
	}
	assert_int_equal(end_as(&t, 0, 2, 3, &failed), ORDER_STOP);
	assert_int_equal(end_as(&t, 1, 2, 3.5, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 2, 3.5, &stopped), ORDER_OVER);
	assert_string_equal(t.j.why_not, "the limit is reached");
	assert_over(&t, CAUSE_FAILURE, 3);
}

static void pause_job(struct stand *t)
{
	begin(t, 2);
	assert_int_equal(end_as(t, 1, 0, 2, &failed), ORDER_STOP);
	assert_int_equal(end_as(t, 0, 0, 3, &stopped), ORDER_NONE);
	assert_int_equal(end_as(t, 2, 0, 3, &stopped), ORDER_RESTART);
}

static enum order want_restart(struct stand *t, unsigned node)
{
	const struct stop s = { .urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = 7,
		.cause = { .kind = CAUSE_RESTART, .at_ns = S(2) } };

	return job_asked(&t->j, node, &s);
}

/* Another attempt is asked for, and all workers end by its SIGTERM. */
static enum order end_for_restart(struct stand *t, unsigned attempt)
{
	assert_int_equal(want_restart(t, 1), ORDER_STOP);
	assert_int_equal(want_restart(t, 2), ORDER_NONE);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(end_as(t, i, attempt, 3, &stopped), ORDER_NONE);
	return end_as(t, 2, attempt, 3, &stopped);
}

static void test_asked_restart(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 1);
	for (unsigned attempt = 0; attempt < 3; attempt++) {
		assert_int_equal(end_for_restart(&t, attempt), ORDER_RESTART);
		assert_int_equal(t.j.result.cause.kind, CAUSE_RESTART);
		assert_int_equal(t.j.result.cause.node, 1);
		assert_int_equal(t.j.delay_ms, 0);
		assert_int_equal(want_restart(&t, 1), ORDER_NONE); /* it comes anyway */
		job_resume(&t.j, S(1));
	}
	assert_int_equal(t.j.asked_restarts, 3);
	assert_int_equal(fails(&t, 1, 3), ORDER_STOP); /* the one that counts is still there */
	assert_int_equal(end_as(&t, 1, 3, 2, &failed), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 3, 3, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 3, 3, &stopped), ORDER_RESTART);
	assert_int_equal(t.j.delay_ms, 50);
	assert_int_equal(ask(&t, 0, URGENCY_STOP), ORDER_OVER);
	assert_over(&t, CAUSE_SIGNAL, 130);
}

static void test_asked_restart_in_vain(void **state)
{
	struct stand t;

	(void)state;
	meet(&t, 0, true);
	assert_int_equal(want_restart(&t, 0), ORDER_NONE); /* nothing runs */
	assert_int_equal(t.j.state, JOB_MEETING);
	arena_done(&t.arena);

	begin(&t, 0);
	assert_int_equal(end_as(&t, 2, 0, 5, &well), ORDER_NONE);
	assert_int_equal(job_left(&t.j, 2, S(5)), ORDER_NONE);
	assert_int_equal(want_restart(&t, 0), ORDER_NONE);
	assert_int_equal(t.j.state, JOB_RUNNING);
	arena_done(&t.arena);

	begin(&t, 0);
	assert_int_equal(want_restart(&t, 0), ORDER_STOP);
	assert_int_equal(ask(&t, 2, URGENCY_HURRY), ORDER_STOP); /* the end outweighs it */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(end_as(&t, i, 0, 4, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 4, &stopped), ORDER_OVER);
	assert_over(&t, CAUSE_SIGNAL, 130);

	begin(&t, 0);
	assert_int_equal(want_restart(&t, 0), ORDER_STOP);
	assert_int_equal(lose(&t, 2, 3), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 0, 4, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 1, 0, 4, &stopped), ORDER_OVER);
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);
}

/* The restart that was to come doesn't, and this is why. */
static void assert_decided(const struct stand *t, const char *why)
{
	const struct past_attempt *last = history_nth(&t->j.past, history_count(&t->j.past) - 1);

	assert_false(last->restarts);
	assert_string_equal(last->reason, why);
}

static void test_paused(void **state)
{
	struct stand t;

	(void)state;
	pause_job(&t);
	assert_int_equal(ask(&t, 2, URGENCY_STOP), ORDER_OVER);
	assert_int_equal(t.j.result.cause.node, 2);
	assert_decided(&t, "the job was asked to end");
	assert_over(&t, CAUSE_SIGNAL, 130);

	pause_job(&t);
	assert_int_equal(lose(&t, 2, 5), ORDER_OVER);
	assert_string_equal(t.j.why_not, "node 2 was lost");
	assert_decided(&t, "node 2 was lost");
	assert_true(t.j.result.nodes[2].lost);
	assert_over(&t, CAUSE_FAILURE, 3);
}

static void test_request(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 2);
	assert_int_equal(ask(&t, 1, URGENCY_STOP), ORDER_STOP);
	assert_int_equal(t.j.stop.signal, SIGINT);
	assert_int_equal(t.j.stop.grace_ms, 7);
	assert_int_equal(ask(&t, 2, URGENCY_STOP), ORDER_NONE);
	assert_int_equal(ask(&t, 2, URGENCY_KILL), ORDER_STOP);
	assert_int_equal(ask(&t, 2, URGENCY_HURRY), ORDER_NONE); /* only upward */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(end_as(&t, i, 0, 4, &stopped), i < 2 ? ORDER_NONE : ORDER_OVER);
	assert_string_equal(t.j.why_not, "");
	assert_over(&t, CAUSE_SIGNAL, 130);
}

/* Node 0 has found another one bad before any worker was started; there is no restart. */
static void test_bad_node(void **state)
{
	struct node_end refused = {
		.cause = { .kind = CAUSE_BAD_NODE, .node = 2, .host = "host", .at_ns = S(2) }
	};
	struct stop s = { .urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.cause = { .kind = CAUSE_BAD_NODE,
			.at_ns = S(2),
			.node = 2,
			.detail = "GPU 2: broken",
			.exclude = "host2" } };
	struct stand t;

	(void)state;
	begin(&t, 2);
	assert_int_equal(job_asked(&t.j, 0, &s), ORDER_STOP);
	assert_int_equal(t.j.stop.cause.node, 2);
	assert_string_equal(t.j.stop.cause.exclude, "host2");
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			job_ended(&t.j, i, &refused, S(3)), i < 2 ? ORDER_NONE : ORDER_OVER);
	assert_int_equal(t.j.result.cause.node, 2);
	assert_string_equal(t.j.result.cause.detail, "GPU 2: broken");
	assert_string_equal(t.j.result.cause.exclude, "host2");
	assert_over(&t, CAUSE_BAD_NODE, EXIT_BAD_NODE);

	begin(&t, 0);
	s.cause.node = 3; /* no such node */
	assert_int_equal(job_asked(&t.j, 1, &s), ORDER_STOP);
	assert_int_equal(t.j.stop.cause.node, 1);
	arena_done(&t.arena);
}

/* Node 0 did not run, and finds the others gone: in whatever order, it is the cause. */
static void test_slept(void **state)
{
	const struct cause own = {
		.kind = CAUSE_NODE_LOST, .at_ns = S(2), .noticed_ns = S(15), .asleep = true
	};
	const struct loss loss = { S(1), S(1), "cut", &own, 0 };
	struct stand t;

	(void)state;
	begin(&t, 2);
	assert_int_equal(job_lost(&t.j, 1, &loss, S(15)), ORDER_STOP);
	assert_true(t.j.stop.cause.asleep);
	assert_int_equal(lose(&t, 2, 1), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 0, 16, &stopped), ORDER_OVER);
	assert_true(t.j.result.cause.asleep);
	assert_int_equal(t.j.result.cause.node, 0);
	assert_string_equal(t.j.why_not, "node 0 was itself frozen or suspended");
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);
}

static void test_lost(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 2);
	assert_int_equal(lose(&t, 1, 2), ORDER_STOP);
	assert_int_equal(t.j.stop.cause.kind, CAUSE_NODE_LOST);
	assert_int_equal(lose(&t, 1, 2), ORDER_NONE);
	assert_int_equal(end_as(&t, 1, 0, 2, &failed), ORDER_NONE); /* it comes back too late */
	assert_int_equal(end_as(&t, 0, 0, 3, &stopped), ORDER_NONE);
	assert_int_equal(lose(&t, 2, 4), ORDER_OVER); /* the last one that was waited for */
	assert_int_equal(t.j.result.cause.node, 1);
	assert_string_equal(t.j.result.cause.detail, "cut");
	assert_string_equal(t.j.why_not, "node 1 was lost");
	assert_int_equal(t.j.result.count, 3);
	assert_int_equal(t.j.result.outcomes[2].rank, 2);
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);

	begin(&t, 2); /* of several the one that counts is told */
	assert_int_equal(lose(&t, 2, 2), ORDER_STOP);
	assert_int_equal(lose(&t, 1, 3), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 0, 3, &stopped), ORDER_OVER);
	assert_string_equal(t.j.why_not, "node 2 was lost");
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);

	begin(&t, 0); /* what it told of before counts */
	assert_int_equal(fails(&t, 1, 0), ORDER_STOP);
	assert_int_equal(lose(&t, 1, 2.5), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 0, 3, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 3, &stopped), ORDER_OVER);
	assert_over(&t, CAUSE_FAILURE, 3);
}

/* Of two nodes that are lost: which is named, and whether it may have been the other. */
static const struct losses_row {
	const char *says;
	double silent, closed; /* node 1's last word, the end of node 2's connection; 0: it stays */
	bool closed_first;
	unsigned named;
	bool unsure;
} losses[] = {
	{ "a silence that began before another's end", 10, 15, true, 1, true },
	{ "an end soon after the other's last word", 10, 10.5, true, 2, true },
	{ "an end before the other's last word", 10, 9.5, true, 2, false },
	{ "an end after the silence was noticed", 10, 21, false, 1, false },
};

static void test_losses(void **state)
{
	const struct losses_row *row = *state;
	struct stand t;

	begin(&t, 0);
	if (row->closed_first)
		assert_int_equal(lose(&t, 2, row->closed), ORDER_STOP);
	(void)miss(&t, 1, row->silent);
	if (!row->closed_first)
		(void)lose(&t, 2, row->closed);
	assert_int_equal(end_as(&t, 0, 0, 30, &stopped), ORDER_OVER);
	assert_int_equal(t.j.result.cause.node, row->named);
	assert_int_equal(t.j.result.nodes[3 - row->named].lost_unsure, row->unsure);
	assert_false(t.j.result.nodes[row->named].lost_unsure);
	assert_false(t.j.result.nodes[0].lost_unsure);
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);
}

/* What the nodes saw of processes that were left behind: the numbers add up, and one node that
 * can't look makes the sum unknown, whichever it is. */
static const struct remains_row {
	const char *name;
	bool blind[3]; /* by the order of their ends: node 1, 2, 0 */
	bool unknown;
} blindness[] = {
	{ "what is left: all nodes see it", { false, false, false }, false },
	{ "what is left: all but the first to end see it", { true, false, false }, true },
	{ "what is left: all but the second see it", { false, true, false }, true },
	{ "what is left: all but the last see it", { false, false, true }, true },
	{ "what is left: no node sees it", { true, true, true }, true },
};

static void test_remains(void **state)
{
	const struct remains_row *row = *state;
	struct outcome o[3] = { well, well, well };
	struct stand t;

	begin(&t, 0);
	for (unsigned i = 0; i < 3; i++) {
		struct node_end end = { .outcomes = &o[i],
			.count = 1,
			.left = 10 + i,
			.left_killed = i,
			.left_unknown = row->blind[i] };

		o[i].rank = (i + 1) % 3;
		assert_int_equal(
			job_ended(&t.j, o[i].rank, &end, S(5)), i == 2 ? ORDER_OVER : ORDER_NONE);
	}
	assert_int_equal(t.j.result.left, 33);
	assert_int_equal(t.j.result.left_killed, 3);
	assert_int_equal(t.j.result.left_unknown, row->unknown);
	assert_over(&t, CAUSE_NONE, 0);
}

static void test_left(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 2); /* who leaves where it should not keeps the job from being started again */
	assert_int_equal(end_as(&t, 0, 0, 2, &well), ORDER_NONE);
	assert_int_equal(job_left(&t.j, 0, S(2)), ORDER_NONE);
	assert_int_equal(end_as(&t, 1, 0, 3, &failed), ORDER_STOP);
	assert_int_equal(end_as(&t, 2, 0, 4, &stopped), ORDER_OVER);
	assert_string_equal(t.j.why_not, "node 0 has ended and left");
	assert_over(&t, CAUSE_FAILURE, 3);

	begin(&t, 0); /* and who leaves before it has ended is lost */
	assert_int_equal(job_left(&t.j, 0, S(2)), ORDER_STOP);
	assert_int_equal(end_as(&t, 1, 0, 3, &stopped), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 3, &stopped), ORDER_OVER);
	assert_over(&t, CAUSE_NODE_LOST, EXIT_NODE_LOST);
}

static void test_meeting(void **state)
{
	struct stand t;

	(void)state;
	meet(&t, 1, true);
	assert_int_equal(t.j.nodes[1].state, NODE_JOINED);
	assert_int_equal(lose(&t, 1, 1), ORDER_NONE);
	assert_int_equal(t.j.nodes[1].state, NODE_AWAITED);
	job_unjoined(&t.j, 2);
	assert_int_equal(t.j.nodes[2].state, NODE_AWAITED);
	assert_int_equal(ask(&t, 0, URGENCY_STOP), ORDER_OVER);
	assert_over(&t, CAUSE_SIGNAL, 130);
	assert_int_equal(t.j.result.node_count, 3); /* of whom the report tells who came */
}

/* A job goes on without a launcher that never came, but is not started again. */
static void test_absent(void **state)
{
	struct stand t;

	(void)state;
	meet(&t, 1, false);
	job_begin(&t.j, S(1));
	assert_int_equal(lose(&t, 2, 2), ORDER_NONE);
	assert_int_equal(end_as(&t, 0, 0, 2, &failed), ORDER_STOP);
	assert_int_equal(end_as(&t, 1, 0, 3, &stopped), ORDER_OVER);
	assert_string_equal(t.j.why_not, "node 2 runs without launchd");
	assert_int_equal(t.j.result.count, 2);
	assert_over(&t, CAUSE_FAILURE, 3);
}

/* A node's clock is ahead of ours, and its failure is brought to ours. */
static void test_clock(void **state)
{
	struct stand t;

	(void)state;
	begin(&t, 0);
	job_clock(&t.j, 1, 1000000000, 500);
	assert_int_equal(end_as(&t, 1, 0, 3, &failed), ORDER_STOP);
	assert_int_equal(end_as(&t, 0, 0, 2.5, &failed), ORDER_NONE);
	assert_int_equal(end_as(&t, 2, 0, 4, &stopped), ORDER_OVER);
	assert_int_equal(t.j.result.cause.culprit.rank, 1);
	assert_int_equal(t.j.result.cause.culprit.ended_ns, S(2));
	assert_int_equal(t.j.result.nodes[1].clock_error_ns, 500);
	assert_over(&t, CAUSE_FAILURE, 3);
}

static void test_lives(void **state)
{
	(void)state;
	assert_life(&job_life,
		(const char *const[]){ "meeting: running over", "running: stopping paused over",
			"stopping: paused over", "paused: running over", "over:", NULL });
	assert_life(&node_life,
		(const char *const[]){ "awaited: joined absent", "joined: awaited ended lost",
			"ended: joined left lost", "left:", "lost:", "absent:", NULL });
}

TESTS(job)
{
	static struct suite s;

	suite_add(&s, "the states of the job and of a node", test_lives, NULL, NULL);
	suite_add(&s, "all end well, one leaves", test_well, NULL, NULL);
	suite_add(&s, "a failure", test_failure, NULL, NULL);
	suite_add(&s, "a failure is told to all", test_told, NULL, NULL);
	suite_add(&s, "a failure that only an end tells of", test_untold, NULL, NULL);
	suite_add(&s, "steps", test_steps, NULL, NULL);
	suite_add(&s, "restarts", test_restart, NULL, NULL);
	suite_add(&s, "restarts that somebody asks for", test_asked_restart, NULL, NULL);
	suite_add(&s, "and does not get", test_asked_restart_in_vain, NULL, NULL);
	suite_add(&s, "between two attempts", test_paused, NULL, NULL);
	suite_add(&s, "requests", test_request, NULL, NULL);
	suite_add(&s, "a bad node", test_bad_node, NULL, NULL);
	suite_add(&s, "lost nodes", test_lost, NULL, NULL);
	suite_add(&s, "node 0 that did not run", test_slept, NULL, NULL);
	SUITE_ROWS(&s, test_losses, losses);
	SUITE_ROWS(&s, test_remains, blindness);
	suite_add(&s, "nodes that leave", test_left, NULL, NULL);
	suite_add(&s, "the meeting", test_meeting, NULL, NULL);
	suite_add(&s, "a node that never came", test_absent, NULL, NULL);
	suite_add(&s, "clocks", test_clock, NULL, NULL);
	return suite_run(&s);
}
