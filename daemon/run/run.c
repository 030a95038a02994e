/* run.c - see run.h */
#include "daemon/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/output/merge/merge.h"
#include "daemon/run/answers.h"
#include "daemon/run/attempt.h"
#include "daemon/run/run_merge.h"
#include "daemon/run/state.h"
#include "daemon/run/stop_request.h"
#include "daemon/service/meter.h"
#include "daemon/service/notify.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/spawn.h"

/* The job is over, or there is none. */
static void finish(struct run *r)
{
	run_goto(r, RUN_OVER);
	attempt_close(r);
	gpu_watch_stop(&r->gpu_watch);
	space_look_stop(&r->spaces);
	if (r->preflight.state == PREFLIGHT_IDLE)
		preflight_forget(r);
	hang_watch_leave(&r->hang);
	black_box_leave(&r->box);
	steps_leave(&r->steps);
	request_stop_watching(r);
}

/* Last lines of the workers' come and go as long as the member is there. */
static void leave_output(struct run *r)
{
	run_merge_close(r);
	output_detach(r->in->output);
}

/* What a worker takes: its pidfd, and for each stream its pipe and its file. */
static unsigned descriptors_of(const struct plan *plan, unsigned local_rank)
{
	unsigned need = 1;

	for (int fd = 1; fd < 3; fd++) {
		const struct stream_plan how = plan_stream(plan, local_rank, fd);

		need += (how.way == STREAM_PIPE ? 1u : 0) + (how.file ? 1u : 0);
	}
	return need;
}

unsigned run_descriptors(const struct plan *plan)
{
	enum { OUR_OWN = 56 };
	unsigned need = OUR_OWN + plan->nnodes;

	if (address_size(&plan->metrics_address) > 0)
		need += HTTP_VISITORS + 2;
	if (plan->ctl_socket)
		need += CTL_DESCRIPTORS;
	for (unsigned i = 0; i < plan->start_count; i++)
		need += descriptors_of(plan, plan->start_first + i);
	return need;
}

int run_check_descriptors(const struct plan *plan, struct failure *why)
{
	unsigned need = run_descriptors(plan);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return 0;
	return failure_set(why, -EMFILE,
		"%u worker%s need%s %u open files, but the limit is %llu (ulimit -Hn)",
		plan->start_count, plan->start_count == 1 ? "" : "s",
		plan->start_count == 1 ? "s" : "", need, (unsigned long long)limit.rlim_cur);
}

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct run *r = owner;
	const struct plan *plan = r->in->bind(r->in->owner, m, why);

	if (!plan || run_check_descriptors(plan, why) < 0)
		return why->code;
	r->outcomes = arena_alloc(r->in->arena, plan->start_count * sizeof *r->outcomes);
	if (!r->outcomes)
		return failure_oom(why);
	r->plan = plan;
	r->shared = plan->nnodes > 1 && !m->alone;
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_JOB_STARTED,
			.job_started = { plan, r->in->member->name },
		});
	return 0;
}

static void on_stop(void *owner, const struct stop *s)
{
	run_request(owner, s, URGENCY_NONE);
}

static void on_forward(void *owner, int signal)
{
	run_forward(owner, signal);
}

/* The job's result with the time of day, which no other node's clock is asked for. */
static struct result dated(const struct run *r, const struct result *whole)
{
	const struct result *own = &r->end->own;
	struct result dated = *whole;

	if (own->started_ns && whole->started_ns)
		dated.started_wall_ns =
			own->started_wall_ns + (int64_t)(whole->started_ns - own->started_ns);
	return dated;
}

static void on_pause(void *owner, const struct job_end *end, uint64_t delay_ms)
{
	struct run *r = owner;
	struct result whole = dated(r, end->result);
	struct job_end told = *end;

	told.result = &whole;
	told.bundle = black_box_over(&r->box, end);
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_RESTART,
			.restart = { r->attempt.number + 1, delay_ms, &told },
		});
}

static void on_check(void *owner, const struct check_call *c)
{
	preflight_call(owner, c);
}

/* Node rank 0, which this is, has found nodes bad. */
static struct stop stop_for_bad_node(const struct run *r)
{
	const struct preflight *p = &r->preflight;
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = { .kind = CAUSE_BAD_NODE,
			.at_ns = uv_hrtime(),
			.node = p->worst.node,
			.exclude = p->worst.exclude },
	};

	(void)snprintf(s.cause.detail, sizeof s.cause.detail, "%s", p->worst.reason);
	return s;
}

/* On node rank 0, which this is. */
static void end_hung(void *owner, const char *why)
{
	enum { NS_PER_MS = 1000000 };
	const uint64_t now_ns = uv_hrtime();
	struct run *r = owner;
	struct stop s = {
		.attempt = r->attempt.number,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.grace_ms = r->plan->grace_ms,
		.cause = { .kind = CAUSE_HANG,
			.at_ns = now_ns,
			.quiet_ns = detector_quiet_ms(&r->hang.judge.detector, now_ns / NS_PER_MS) *
				NS_PER_MS,
			.node = r->plan->node_rank },
	};

	(void)snprintf(s.cause.detail, sizeof s.cause.detail, "%s", why);
	run_request(r, &s, URGENCY_STOP);
}

static void dump_hung(void *owner, const char *why)
{
	struct run *r = owner;
	struct text text = { 0 };

	text_printf(&text, "the job hangs: %s", why);
	black_box_take(&r->box, text_string(&text));
	text_done(&text);
}

static void on_check_over(struct run *r)
{
	struct stop s;

	if (r->urgency == URGENCY_NONE && r->preflight.bad) {
		s = stop_for_bad_node(r);
		member_asked(&r->member, &s);
		return;
	}
	if (r->urgency == URGENCY_NONE)
		member_checked(&r->member);
	attempt_checked(r);
}

static void on_check_word(void *owner, unsigned node, const struct message_check *m)
{
	preflight_word(owner, node, m);
}

static void on_checked(void *owner)
{
	preflight_release(owner);
}

/* Where the run's directory is, if not in TMPDIR. Most nodes have the same TMPDIR: on a joined
 * console one of them is enough; and new directories for logs are noted, too. */
static void run_note_place(struct run *r)
{
	const struct output_plan *o = &r->plan->output;
	bool again = (o->joined && r->plan->node_rank > 0) || (o->tree && !o->log_dir);

	if (r->run_dir_note.code == 0)
		return;
	if (r->run_dir)
		bus_note(r->in->bus, again ? NOTE_VERBOSE : NOTE_INFO, r->run_dir_note.text);
	else
		bus_note(r->in->bus, o->tree ? NOTE_VERBOSE : NOTE_WARNING, r->run_dir_note.text);
	if (!r->run_dir && r->plan->progress.by == PROGRESS_NOTIFY)
		bus_note(r->in->bus, NOTE_WARNING,
			"--progress notify: there is no directory for its socket: no step is "
			"known");
	r->run_dir_note = (struct failure){ 0 };
}

/* Somebody may have cleaned the place where they were. */
static void run_renew_places(struct run *r)
{
	struct failure note = { 0 }, no_steps = { 0 };

	run_note_place(r);
	r->run_dir = guard_run_dir(r->in->guard, &note);
	if (note.code != 0)
		bus_note(r->in->bus, r->plan->output.tree ? NOTE_VERBOSE : NOTE_WARNING, note.text);
	if (steps_listen(&r->steps, r->run_dir, &no_steps) < 0)
		bus_note(r->in->bus, NOTE_WARNING, no_steps.text);
	answers_renew(r->answers);
}

static void on_start(void *owner, unsigned attempt, unsigned master_port)
{
	struct run *r = owner;

	if (r->state == RUN_MEETING)
		request_limit_runtime(r);
	if (!r->preempt_watch.open && attempt == 0)
		request_watch_preemption(r);
	run_merge_start(r);
	run_renew_places(r);
	attempt_start(r, attempt, master_port);
}

/* The worker that failed first, where this node knows it. */
static const struct outcome *culprit_of(const struct job_end *end)
{
	return end->result ? result_culprit(end->result) : cause_culprit(&end->verdict.cause);
}

static void on_over(void *owner, const struct job_end *end)
{
	const struct verdict *v = &end->verdict;
	struct run *r = owner;

	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_VERDICT,
			.verdict = { v->attempt, v->exit_code, v->text, culprit_of(end), &v->cause,
				end->why_not },
		});
	if (r->shared && end->verdict.exit_code)
		guard_set_code_if_killed(r->in->guard, end->verdict.exit_code, false);
	guard_end_run_dir(r->in->guard);
	r->end->job = *end;
	r->end->job.bundle = black_box_over(&r->box, end);
	if (end->result) {
		r->end->whole = dated(r, end->result);
		r->end->job.result = &r->end->whole;
	}
	finish(r);
	run_merge_last(r);
	member_close(&r->member);
}

static void on_failed(void *owner, const struct failure *why)
{
	struct run *r = owner;

	r->rc = failure_copy(r->why, why);
	finish(r);
	member_close(&r->member);
}

/* The loop has nothing more to do now, and ends. */
static void on_closed(void *owner)
{
	const struct run *r = owner;

	meter_leave(r->in->meter);
	notify_leave(r->in->notify);
	answers_leave(r->answers);
	leave_output(owner);
	request_stop_listening(owner);
}

/* What is left of its last line will not come. */
static void on_node_lost(void *owner, const struct event *e)
{
	const struct run *r = owner;

	merge_lost(output_merge(r->in->output), e->other.rank);
}

static const struct observer run_observer = { .on = { [EVENT_NODE_LOST] = on_node_lost } };

static void on_query(void *owner, unsigned query)
{
	const struct run *r = owner;

	answers_query(r->answers, query);
}

static void on_node_status(void *owner, unsigned node, const struct message_status *told)
{
	const struct run *r = owner;

	answers_status(r->answers, node, told);
}

static void on_look(void *owner, unsigned node, const struct message_look *told)
{
	struct run *r = owner;

	if (r->state == RUN_WORKING)
		hang_judge_look(&r->hang.judge, node, told);
}

static void on_hang(void *owner, const struct message_hang *told)
{
	struct run *r = owner;

	hang_watch_told(&r->hang, told);
}

static void on_bundle(void *owner, unsigned node, const struct message_bundle *told)
{
	struct run *r = owner;

	black_box_told(&r->box, node, told);
}

static void on_step(void *owner, uint64_t step, uint64_t at_ns)
{
	struct run *r = owner;

	steps_of_job(&r->steps, step, at_ns);
}

static const struct member_events events = {
	.met = on_met,
	.stop = on_stop,
	.forward = on_forward,
	.pause = on_pause,
	.check = on_check,
	.check_word = on_check_word,
	.checked = on_checked,
	.start = on_start,
	.over = on_over,
	.failed = on_failed,
	.closed = on_closed,
	.log = run_merge_hear,
	.log_room = run_merge_lines,
	.query = on_query,
	.status = on_node_status,
	.look = on_look,
	.hang = on_hang,
	.bundle = on_bundle,
	.step = on_step,
};

static void on_status_over(void *owner)
{
	struct run *r = owner;

	progress_hide(&r->progress);
}

static void on_tails(void *owner, const struct tails *t)
{
	struct run *r = owner;

	answers_tails(r->answers, t);
	hang_watch_hear(&r->hang, t);
}

static void on_followed(void *owner, const struct followed_lines *f)
{
	const struct run *r = owner;

	answers_followed(r->answers, f);
}

static const struct output_events output_events_of_run = {
	.prepared = attempt_prepared,
	.drained = attempt_drained,
	.status_over = on_status_over,
	.tails = on_tails,
	.followed = on_followed,
	.lines = run_merge_lines,
};

static int listen_to_all(struct run *r)
{
	int rc = output_attach(r->in->output, &r->loop, &output_events_of_run, r, r->why);
	struct failure no_steps = { 0 };

	if (rc == 0)
		rc = guard_await_run_dir(r->in->guard, &r->run_dir_note, r->why);
	if (rc < 0)
		return rc;
	r->run_dir = guard_run_dir(r->in->guard, &r->run_dir_note);
	rc = steps_enter(&r->steps, &r->loop, r->run_dir, &no_steps);
	if (rc < 0 && r->run_dir_note.code == 0)
		return failure_copy(r->why, &no_steps);
	/* else it is not the place that the user chose, and an attempt warns of it */
	rc = request_listen(r);
	if (rc < 0)
		return rc;
	rc = spawn_seal_descriptors();
	return rc < 0 ? failure_set(r->why, rc, "can't close inherited files: %s", strerror(-rc)) :
			0;
}

/* On failure the handles are closing. */
static int begin(struct run *r)
{
	int rc;

	attempt_init(r);
	r->hang = (struct hang_watch){ .pool = &r->pool,
		.bus = r->in->bus,
		.output = r->in->output,
		.steps = &r->steps,
		.member = &r->member,
		.argv = r->in->member->argv,
		.end = end_hung,
		.dump = dump_hung,
		.owner = r };
	hang_watch_enter(&r->hang, &r->loop);
	r->box = (struct black_box){ .plan = r->plan,
		.pool = &r->pool,
		.bus = r->in->bus,
		.member = &r->member,
		.attempt = &r->attempt,
		.known = &r->known,
		.loop = &r->loop,
		.argv = r->in->member->argv,
		.host = r->in->member->name,
		.gpu_watch = &r->gpu_watch,
		.on_kept = attempt_kept,
		.owner = r };
	black_box_enter(&r->box);
	r->steps = (struct steps){ .plan = r->plan,
		.bus = r->in->bus,
		.output = r->in->output,
		.member = &r->member,
		.argv = r->in->member->argv };
	r->preflight.on_over = on_check_over;
	request_init(r);
	run_merge_init(r);
	answers_enter(r->answers);
	notify_enter(r->in->notify, &r->loop);
	rc = meter_enter(r->in->meter, &r->loop, &r->member, r->why);
	if (rc == 0)
		rc = listen_to_all(r);
	if (rc < 0) {
		finish(r);
		on_closed(r);
	} else {
		member_start(&r->member, &r->loop, r->in->member, &events, r, r->in->bus,
			&r->end->memory);
	}
	output_start(r->in->output); /* member_start() may have forked PMIx's process */
	return rc;
}

/* libuv aborts where it finds no descriptors for its pipe of signals. */
static int run_loop_init(uv_loop_t *loop, struct failure *why)
{
	int first[2] = { -1, -1 }, second[2] = { -1, -1 }, rc = 0;

	if (pipe2(first, O_CLOEXEC) < 0 || pipe2(second, O_CLOEXEC) < 0)
		rc = -errno;
	for (int i = 0; i < 2; i++) {
		fd_closep(&first[i]);
		fd_closep(&second[i]);
	}
	rc = rc < 0 ? rc : uv_loop_init(loop);
	return rc < 0 ? failure_set(why, rc, "can't make an event loop: %s", strerror(-rc)) : 0;
}

int run_job(const struct run_input *in, struct run_end *ret, struct failure *why)
{
	/* 60 KB, of which a job of one node touches few: on the stack all had to be cleared */
	static struct run r;
	static struct answers answers;
	int rc = run_loop_init(&r.loop, why);

	r.in = in;
	r.plan = in->plan;
	r.end = ret;
	r.why = why;
	if (rc < 0)
		return rc;
	r.answers = &answers;
	answers_init(&answers, &r, in->bus);
	bus_add(in->bus, &run_observer, &r);
	rc = begin(&r);
	(void)uv_run(&r.loop, UV_RUN_DEFAULT); /* returns when no handle is left */
	bus_remove(in->bus);
	bus_remove(in->bus); /* the answers */
	black_box_done(&r.box);
	rc = rc < 0 ? rc : r.rc;
	if (uv_loop_close(&r.loop) < 0 && rc == 0)
		rc = failure_set(why, -EBUSY, "the event loop is not empty: please report this");
	return rc;
}

void run_end_done(struct run_end *end)
{
	arena_done(&end->memory);
}
