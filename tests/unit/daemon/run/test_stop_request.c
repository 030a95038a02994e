/* test_stop_request.c - what follows signals and other ends of a job: here, on the other nodes, and
 * for who listens to events. What the run then does is caught. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"
#include "daemon/output/front.h"
#include "daemon/run/attempt.h"
#include "daemon/run/state.h"
#include "daemon/run/stop_request.h"
#include "daemon/workers/guard.h"

enum { LAUNCHER = 4000, STRANGER = 0x3fffffff };

/* A run, and a line for all that it does. */
static struct requested {
	struct plan plan;
	struct guard guard;
	struct bus bus;
	struct run_input in;
	struct run run;
	struct text done;
	bool last; /* a stop is the job's end */
	unsigned signalled;
} q;

void __wrap_attempt_stop(struct run *r, const struct stop *s);
void __wrap_attempt_tell_killed(const struct run *r);
void __wrap_member_asked(struct member *m, const struct stop *s);
void __wrap_member_hurry(struct member *m);
void __wrap_member_forward(struct member *m, int signal);
void __wrap_pool_forward(struct pool *p, int signal);
void __wrap_pool_suspend(struct pool *p);
void __wrap_pool_resume(struct pool *p);
void __wrap_pool_on_child(struct pool *p, pid_t first);
void __wrap_progress_hide(struct progress *p);
void __wrap_output_reopen(struct output *o);
void __wrap_lifeline_signalled(struct lifeline *l, int signal);
int __wrap_lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, const char *mark,
	const char *const *env, struct failure *why);
int __wrap_signals_start(struct signals *s, uv_loop_t *loop, const struct reactions *r,
	const sigset_t *ignored, int relay, struct failure *why);

void __wrap_attempt_stop(struct run *r, const struct stop *s)
{
	static const char *const causes[] = { [CAUSE_SIGNAL] = "a signal",
		[CAUSE_MAX_RUNTIME] = "max-runtime",
		[CAUSE_GUARD] = "the guard",
		[CAUSE_LAUNCHER] = "the launcher",
		[CAUSE_PREEMPTED] = "a preemption" };

	assert_ptr_equal(r, &q.run);
	assert_int_equal(s->attempt, 2);
	assert_int_equal(s->cause.node, q.plan.node_rank);
	assert_true(s->cause.at_ns > 0);
	if (s->cause.kind == CAUSE_PREEMPTED) {
		assert_int_equal(s->cause.requeue_code, 75);
		assert_string_equal(s->cause.detail, "100 s left");
		assert_true(s->cause.signal != 0);
	}
	text_printf(&q.done, "stop %d by %d in %d s for %s\n", s->urgency, s->signal,
		(int)s->grace_ms / 1000, causes[s->cause.kind]);
	if (q.last)
		r->state = RUN_OVER;
}

void __wrap_attempt_tell_killed(const struct run *r)
{
	assert_true(r->in->guard->gone);
	text_add(&q.done, "tell of the guard\n");
}

void __wrap_member_asked(struct member *m, const struct stop *s)
{
	(void)m;
	text_printf(&q.done, "ask for %d by %d\n", s->urgency, s->signal);
}

void __wrap_member_hurry(struct member *m)
{
	(void)m;
	text_add(&q.done, "hurry\n");
}

void __wrap_member_forward(struct member *m, int signal)
{
	(void)m;
	text_printf(&q.done, "%d to all nodes\n", signal);
}

void __wrap_pool_forward(struct pool *p, int signal)
{
	(void)p;
	text_printf(&q.done, "%d to workers\n", signal);
}

void __wrap_pool_suspend(struct pool *p)
{
	(void)p;
	text_add(&q.done, "suspend\n");
}

void __wrap_pool_resume(struct pool *p)
{
	(void)p;
	text_add(&q.done, "resume\n");
}

void __wrap_pool_on_child(struct pool *p, pid_t first)
{
	assert_int_equal(first, 7);
	(void)p;
	text_add(&q.done, "a child\n");
}

void __wrap_progress_hide(struct progress *p)
{
	(void)p;
	text_add(&q.done, "hide\n");
}

void __wrap_output_reopen(struct output *o)
{
	(void)o;
	text_add(&q.done, "reopen\n");
}

void __wrap_lifeline_signalled(struct lifeline *l, int signal)
{
	(void)l, (void)signal;
	q.signalled++;
}

int __wrap_lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, const char *mark,
	const char *const *env, struct failure *why)
{
	(void)loop, (void)parent, (void)env, (void)why;
	assert_string_equal(mark, "MARK");
	l->launcher_pid = LAUNCHER;
	return 0;
}

int __wrap_signals_start(struct signals *s, uv_loop_t *loop, const struct reactions *r,
	const sigset_t *ignored, int relay, struct failure *why)
{
	(void)s, (void)loop, (void)ignored, (void)why;
	assert_ptr_equal(r, &q.plan.reactions);
	assert_int_equal(relay, -1);
	return 0;
}

static void on_received(void *owner, const struct event *e)
{
	(void)owner;
	text_printf(&q.done, "got %d: %s", e->received.signal, e->received.reaction);
	if (e->received.sender->kernel && e->received.sender->pid == 0)
		text_add(&q.done, ", from the kernel");
	else if (e->received.sender->pid == getpid())
		text_printf(&q.done, ", from %u's %s", e->received.sender->uid,
			e->received.sender->command);
	else
		text_printf(&q.done, ", from %s",
			e->received.sender->pid == LAUNCHER ? "the launcher" : "a stranger");
	text_add(&q.done, "\n");
}

static void on_forwarded(void *owner, const struct event *e)
{
	(void)owner;
	text_printf(&q.done, "%d is forwarded\n", e->forwarded);
}

static void on_note(void *owner, const struct event *e)
{
	(void)owner;
	text_printf(&q.done, "note: %.25s\n", e->note.text);
}

static const struct observer observer = { .on = { [EVENT_SIGNAL_RECEIVED] = on_received,
						  [EVENT_SIGNAL_FORWARDED] = on_forwarded,
						  [EVENT_NOTE] = on_note } };

static int request(void **state)
{
	static const struct inherited nothing_ignored;

	(void)state;
	q = (struct requested){
		.plan = { .grace_ms = 30000 },
		.guard = { .leaf = CGROUP_LEAF_NONE, .guard = STRANGER, .relay = -1 },
		.run = { .state = RUN_WORKING, .attempt = { .number = 2 } },
	};
	q.plan.reactions.of[SIGTERM] = (struct reaction){ REACTION_END, false, 30000, "" };
	q.plan.reactions.of[SIGINT] = (struct reaction){ REACTION_STOP, true, 5000, "" };
	q.plan.reactions.of[SIGQUIT] = (struct reaction){ REACTION_PREEMPT, true, 100000, "" };
	q.plan.reactions.preempt = SIGUSR2;
	q.plan.requeue_code = 75;
	q.plan.reactions.of[SIGUSR1].kind = REACTION_FORWARD;
	q.plan.reactions.of[SIGUSR2].kind = REACTION_IGNORE;
	q.plan.reactions.of[SIGHUP].kind = REACTION_REOPEN;
	q.plan.reactions.of[SIGTSTP].kind = REACTION_SUSPEND;
	q.plan.reactions.of[SIGCONT].kind = REACTION_RESUME;
	q.in = (struct run_input){
		.plan = &q.plan, .guard = &q.guard, .bus = &q.bus, .inherited = &nothing_ignored
	};
	q.run.in = &q.in;
	q.run.plan = &q.plan;
	bus_add(&q.bus, &observer, NULL);
	assert_int_equal(uv_loop_init(&q.run.loop), 0);
	request_init(&q.run);
	return 0;
}

static void listen_as(const char *mark)
{
	q.plan.lifeline_mark = mark;
	assert_int_equal(request_listen(&q.run), 0);
}

static int stop_requesting(void **state)
{
	(void)state;
	request_stop_watching(&q.run);
	(void)uv_run(&q.run.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&q.run.loop), 0);
	text_done(&q.done);
	return 0;
}

static void assert_done(const char *expected)
{
	assert_string_equal(text_string(&q.done), expected);
	text_done(&q.done);
}

/* session: 0 of one that has gone before it was looked at. */
static void get_of(int signal, enum signal_way way, pid_t from, pid_t session)
{
	const struct relayed got = {
		.signal = signal, .pid = from, .uid = 1000, .session = session
	};

	q.run.signals.on_signal(&q.run.signals, &got, way);
}

static void get(int signal, enum signal_way way, pid_t from)
{
	get_of(signal, way, from, from);
}

enum { ENDS_MAX = 4 };

#define FIRST_TERM \
	"got 15: forward:30, from a stranger\nstop 1 by 15 in 30 s for a signal\nask for 1 by 15\n"

/* Signals that end the job: by the guard, or, negative, straight to the supervisor. */
static const struct end_row {
	const char *says;
	int signals[ENDS_MAX];
	enum run_state state;
	bool last;
	const char *done; /* by the last of them */
} ends[] = {
	{ "the first one asks for the end here and elsewhere", { SIGTERM }, RUN_WORKING, false,
		FIRST_TERM },
	{ "... also before there are workers", { SIGTERM }, RUN_MEETING, false, FIRST_TERM },
	{ "one that came by the other way, too, is the same", { SIGTERM, -SIGTERM }, RUN_WORKING,
		false, "" },
	{ "... whichever came first", { -SIGTERM, SIGTERM }, RUN_WORKING, false, "" },
	{ "the second by one way hurries", { SIGTERM, -SIGTERM, SIGTERM }, RUN_WORKING, false,
		"got 15: forward:30, from a stranger\nstop 2 by 15 in 30 s for a signal\n"
		"ask for 2 by 15\n" },
	{ "the third kills", { SIGTERM, SIGTERM, SIGTERM }, RUN_WORKING, false,
		"got 15: forward:30, from a stranger\nstop 3 by 15 in 30 s for a signal\n"
		"ask for 3 by 15\n" },
	{ "nothing is more than that", { SIGTERM, SIGTERM, SIGTERM, SIGTERM }, RUN_WORKING, false,
		"got 15: forward:30, from a stranger\nstop 3 by 15 in 30 s for a signal\n"
		"ask for 3 by 15\n" },
	{ "stop: workers get SIGTERM, and that grace", { SIGINT }, RUN_WORKING, false,
		"got 2: stop:5, from a stranger\nstop 1 by 15 in 5 s for a signal\n"
		"ask for 1 by 15\n" },
	{ "preempt: workers get the signal that tells of it", { SIGQUIT }, RUN_WORKING, false,
		"got 3: preempt:100, from a stranger\nstop 1 by 12 in 100 s for a preemption\n"
		"ask for 1 by 12\n" },
	{ "... and the batch system's SIGTERM after it hurries", { SIGQUIT, SIGTERM }, RUN_WORKING,
		false,
		"got 15: forward:30, from a stranger\nstop 2 by 15 in 30 s for a signal\n"
		"ask for 2 by 15\n" },
	{ "two that both end the job are two", { SIGINT, SIGTERM }, RUN_WORKING, false,
		"got 15: forward:30, from a stranger\nstop 2 by 15 in 30 s for a signal\n"
		"ask for 2 by 15\n" },
	{ "where it was the job's end nobody is asked", { SIGTERM }, RUN_WAITING, true,
		"got 15: forward:30, from a stranger\nstop 1 by 15 in 30 s for a signal\n" },
	{ "after the job's end farewells are cut", { SIGTERM }, RUN_OVER, false,
		"got 15: forward:30, from a stranger\nhurry\n" },
};

static void test_end(void **state)
{
	const struct end_row *row = *state;
	unsigned count = 0;

	(void)request(NULL);
	listen_as(NULL);
	q.run.state = row->state;
	q.last = row->last;
	for (; count < ENDS_MAX && row->signals[count]; count++) {
		int signal = row->signals[count];

		text_done(&q.done);
		get(signal < 0 ? -signal : signal, signal < 0 ? WAY_DIRECT : WAY_GUARD, STRANGER);
	}
	assert_done(row->done);
	assert_int_equal(q.signalled, count);
	(void)stop_requesting(NULL);
}

/* Perhaps a worker sent it, to its parent alone: that is known when the guard has it, too. */
static void test_sender_is_gone(void **state)
{
	(void)state;
	listen_as(NULL);
	get_of(SIGTERM, WAY_DIRECT, STRANGER, 0);
	assert_done("");
	get_of(SIGTERM, WAY_GUARD, STRANGER, 0);
	assert_done(FIRST_TERM);
	get_of(SIGTERM, WAY_DIRECT, STRANGER, 0);
	(void)uv_run(&q.run.loop, UV_RUN_NOWAIT);
}

static const struct other_row {
	const char *says;
	int signal;
	enum run_state state;
	const char *mark; /* of mpirun's or srun's ranks; NULL: there is none */
	const char *done;
} others[] = {
	{ "forward: to the workers of all nodes", SIGUSR1, RUN_WORKING, NULL,
		"got 10: forward, from a stranger\n10 to workers\n10 is forwarded\n"
		"10 to all nodes\n" },
	{ "... but here, where none run", SIGUSR1, RUN_WAITING, NULL,
		"got 10: forward, from a stranger\n10 to all nodes\n" },
	{ "... and where srun does that itself", SIGUSR1, RUN_WORKING, "MARK",
		"got 10: forward, from a stranger\n10 to workers\n10 is forwarded\n" },
	{ "... and after the job's end", SIGUSR1, RUN_OVER, NULL,
		"got 10: forward, from a stranger\n" },
	{ "ignore", SIGUSR2, RUN_WORKING, NULL, "got 12: ignore, from a stranger\n" },
	{ "reopen", SIGHUP, RUN_WORKING, NULL, "got 1: reopen, from a stranger\nreopen\n" },
	{ "suspend, without a status line", SIGTSTP, RUN_WORKING, NULL,
		"got 20: suspend, from a stranger\nhide\nsuspend\n" },
	{ "... where no worker runs", SIGTSTP, RUN_WAITING, NULL,
		"got 20: suspend, from a stranger\nhide\n" },
	{ "resume", SIGCONT, RUN_WORKING, NULL, "got 18: resume, from a stranger\nresume\n" },
	{ "... where no worker runs", SIGCONT, RUN_DRAINING, NULL,
		"got 18: resume, from a stranger\n" },
	{ "a signal without a reaction", SIGALRM, RUN_WORKING, NULL, "" },
	{ "the supervisor alone was stopped", SIGSTOP, RUN_WORKING, NULL,
		"note: SIGSTOP stopped launchd's\n" },
};

static void test_other(void **state)
{
	const struct other_row *row = *state;

	(void)request(NULL);
	listen_as(row->mark);
	q.run.state = row->state;
	get(row->signal, WAY_GUARD, STRANGER);
	assert_done(row->done);
	assert_int_equal(q.signalled, row->signal != SIGSTOP);
	(void)stop_requesting(NULL);
}

static void test_kernel(void **state)
{
	const struct relayed got = { .signal = SIGUSR2, .code = POLL_IN, .pid = LAUNCHER };

	(void)state;
	listen_as(NULL);
	q.run.signals.on_signal(&q.run.signals, &got, WAY_GUARD);
	assert_done("got 12: ignore, from the kernel\n");
}

static void test_sender(void **state)
{
	char command[16], expected[64];

	(void)state;
	listen_as(NULL);
	process_command(getpid(), command);
	(void)snprintf(expected, sizeof expected, "got 12: ignore, from 1000's %s\n", command);
	get(SIGUSR2, WAY_GUARD, getpid());
	assert_done(expected);
}

/* mpirun's SIGKILL comes before the grace is over. */
static const struct warned_row {
	const char *says;
	int signals[2];
	pid_t from;
	unsigned node_rank;
	enum run_state state;
	unsigned notes;
} warned[] = {
	{ "its first SIGTERM", { SIGTERM }, LAUNCHER, 0, RUN_WORKING, 1 },
	{ "of several the first one", { SIGTERM, SIGTERM }, LAUNCHER, 0, RUN_WORKING, 1 },
	{ "one node says it", { SIGTERM }, LAUNCHER, 1, RUN_WORKING, 0 },
	{ "mpirun hasn't sent it", { SIGTERM }, STRANGER, 0, RUN_WORKING, 0 },
	{ "another signal, which mpirun passes on", { SIGINT }, LAUNCHER, 0, RUN_WORKING, 0 },
	{ "too late", { SIGTERM }, LAUNCHER, 0, RUN_OVER, 0 },
};

static void test_warned(void **state)
{
	const struct warned_row *row = *state;
	unsigned notes = 0;

	(void)request(NULL);
	q.plan.mpirun_cuts = "mpirun gives less";
	q.plan.node_rank = row->node_rank;
	q.run.state = row->state;
	listen_as("MARK");
	for (size_t i = 0; i < 2 && row->signals[i]; i++)
		get(row->signals[i], WAY_GUARD, row->from);
	for (const char *at = text_string(&q.done); (at = strstr(at, "note: mpirun gives")); at++)
		notes++;
	assert_int_equal(notes, row->notes);
	(void)stop_requesting(NULL);
}

static void test_child(void **state)
{
	(void)state;
	listen_as(NULL);
	q.run.signals.on_child(&q.run.signals, 7);
	assert_done("a child\n");
	q.run.state = RUN_WAITING;
	q.run.signals.on_child(&q.run.signals, 7);
	assert_done("");
}

static void test_guard_gone(void **state)
{
	(void)state;
	listen_as(NULL);
	q.run.signals.on_guard_gone(&q.run.signals);
	assert_done("stop 3 by 15 in 30 s for the guard\nask for 1 by 15\ntell of the guard\n");
}

static void test_launcher_gone(void **state)
{
	(void)state;
	listen_as("MARK");
	q.run.lifeline.on_lost(&q.run.lifeline, CAUSE_LAUNCHER);
	assert_done("stop 3 by 15 in 30 s for the launcher\nask for 1 by 15\n");
}

static void test_max_runtime(void **state)
{
	(void)state;
	request_limit_runtime(&q.run);
	assert_false(uv_loop_alive(&q.run.loop)); /* no limit */
	q.plan.max_runtime_ms = 1;
	request_limit_runtime(&q.run);
	assert_int_equal(uv_timer_get_due_in(&q.run.max_runtime), 1);
	(void)uv_run(&q.run.loop, UV_RUN_DEFAULT);
	assert_done("stop 1 by 15 in 30 s for max-runtime\nask for 1 by 15\n");
}

/* An order of another node's: the others know. */
static void test_order(void **state)
{
	const struct stop order = { .attempt = 2,
		.urgency = URGENCY_HURRY,
		.signal = SIGINT,
		.grace_ms = 1000,
		.cause = { .kind = CAUSE_SIGNAL, .at_ns = 1 } };

	(void)state;
	run_request(&q.run, &order, URGENCY_NONE);
	assert_done("stop 2 by 2 in 1 s for a signal\n");
}

TESTS(stop_request)
{
	static struct suite s;

	SUITE_ROWS(&s, test_end, ends);
	SUITE_ROWS(&s, test_other, others);
	SUITE_ROWS(&s, test_warned, warned);
	suite_add(&s, "a signal of the kernel's has no pid", test_kernel, request, stop_requesting);
	suite_add(&s, "whose signal it is", test_sender, request, stop_requesting);
	suite_add(&s, "its sender is gone", test_sender_is_gone, request, stop_requesting);
	suite_add(&s, "a child's end is the pool's, while there is one", test_child, request,
		stop_requesting);
	suite_add(&s, "the guard was killed", test_guard_gone, request, stop_requesting);
	suite_add(&s, "mpirun has ended", test_launcher_gone, request, stop_requesting);
	suite_add(&s, "--max-runtime ends the job", test_max_runtime, request, stop_requesting);
	suite_add(
		&s, "another node's order is not told again", test_order, request, stop_requesting);
	return suite_run(&s);
}
