/* supervise.c - see supervise.h */
#include "daemon/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/observe/event.h"
#include "daemon/observe/say.h"
#include "daemon/os/process.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/report/report.h"
#include "daemon/report/report_file.h"
#include "daemon/run/run.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/signals.h"

/* --verbose: which process has which rank. */
static void on_started(void *owner, const struct outcome *outcomes, size_t count)
{
	(void)owner;
	for (size_t i = 0; i < count; i++) {
		struct text line = { 0 };

		text_printf(&line, "started rank %u (local rank %u, attempt %u, pid %d)",
			outcomes[i].rank, outcomes[i].local_rank, outcomes[i].attempt,
			(int)outcomes[i].pid);
		say("note", text_string(&line));
		text_done(&line);
	}
}

/* Some have ended with 0, and the rest does not follow: a hang that looks like work. */
static void on_unfinished(void *owner, const struct outcome *outcomes, size_t count)
{
	struct arena scratch = { 0 };
	struct text line = { 0 };

	(void)owner;
	report_unfinished(outcomes, count, uv_hrtime(), &scratch, &line);
	if (line.len > 0)
		say("note", text_string(&line));
	text_done(&line);
	arena_done(&scratch);
}

/* --report */
static void write_report(const struct report_input *in)
{
	struct failure why = { 0 };
	struct text json = { 0 };

	report_json(in, &json);
	if (json.failed)
		(void)failure_oom(&why);
	else
		(void)report_write(in->plan->report_path, text_string(&json), json.len, &why);
	text_done(&json);
	if (why.code != 0)
		say("warning", why.text);
}

static struct report_input input_of(const struct supervision *s, const struct plan *plan,
	const struct job_end *end, const struct result *result)
{
	return (struct report_input){
		.result = result,
		.plan = plan,
		.hostname = s->hostname,
		.record = end->evidence ? end->evidence->record : NULL,
		.command = end->evidence ? end->evidence->command : NULL,
		.words = end->evidence ? end->evidence->words : (struct last_words){ 0 },
		.attempt = end->verdict.attempt,
		.max_restarts = plan->max_restarts,
		.why_not = end->why_not,
		.waiting = end->waiting,
		.waiting_count = end->waiting_count,
		.uid = geteuid(),
		.arena = s->arena,
	};
}

static void say_report(const struct report_input *in)
{
	struct text text = { 0 };

	report_text(in, &text);
	say_text(&text);
}

/* What this node knows by itself. */
static struct report_input own_input(const struct supervision *s, const struct run_end *end)
{
	struct report_input in = input_of(s, end->plan, &end->job, &end->own);

	in.attempt = end->own.count > 0 ? end->own.outcomes[0].attempt : 0;
	in.record = end->own_culprit.record;
	in.words = end->own_culprit.words;
	return in;
}

static void on_own(void *owner, const struct run_end *end)
{
	const struct report_input in = own_input(owner, end);

	if (end->own.cause.kind == CAUSE_NONE)
		return;
	say("note",
		"launchd was killed, as mpirun and srun do when they end a job; this is what it "
		"knows before the other nodes have answered:");
	say_report(&in);
}

/* The first of this node's workers to fail, where the job's root cause is another one. */
static void say_own_culprit(const struct supervision *s, const struct run_end *end)
{
	struct report_input in = own_input(s, end);
	struct text text = { 0 };

	in.is_local = true;
	report_culprit_text(&in, &text);
	say_text(&text);
}

/* What this node can report: node rank 0 has heard all, any other one knows no more than its own
 * workers' ends and why the job ended. */
static struct result known_result(const struct run_end *end)
{
	const struct job_end *job = &end->job;
	struct result known = job->result ? *job->result : end->own;

	if (!job->result) {
		known.cause = job->verdict.cause;
		known.unsure = job->verdict.unsure;
	}
	return known;
}

/* Where the culprit is not this node's, what the first of its own to fail says is told as well. */
static void say_alone(
	const struct supervision *s, const struct run_end *end, struct report_input *in)
{
	const struct outcome *own = result_culprit(&end->own);
	bool is_own = own && !*end->own.cause.host;
	bool is_culprit = is_own && result_is_culprit(in->result, own);

	if (is_culprit) {
		in->record = end->own_culprit.record;
		in->words = end->own_culprit.words;
	}
	say_report(in);
	if (is_own && !is_culprit)
		say_own_culprit(s, end);
}

/* The nodes that are in touch with node rank 0 say in a line what it told them. The words come
 * before the file: a file system that hangs must not keep them. */
static void report(const struct supervision *s, const struct run_end *end)
{
	const struct job_end *job = &end->job;
	const struct result known = known_result(end);
	struct report_input in = input_of(s, end->plan, job, &known);

	if (end->plan->nnodes > 1) {
		in.verdict = job->verdict.text;
		in.verdict_code = job->verdict.exit_code;
	}
	if (job->alone)
		say_alone(s, end, &in);
	else if (job->result)
		say_report(&in);
	else if (!job->verdict.well)
		say("error", job->verdict.text);
	if (end->plan->report_path && (end->own.count > 0 || job->result))
		write_report(&in);
}

/* An attempt has ended, and the next one follows. */
static void on_pause(void *owner, const struct job_end *end, uint64_t delay_ms)
{
	const struct supervision *s = owner;
	const struct report_input in = input_of(s, s->plan, end, end->result);
	struct text text = { 0 };

	report_restart_text(&in, delay_ms, &text);
	say_text(&text);
}

/* What has failed is said once: there are no more of them. */
static void say_no_events(const struct failure *why)
{
	if (why->code != 0)
		say("warning", why->text);
}

/* A file's name may have the node rank in it, and without it node rank 0 alone writes one. */
static void open_events(struct supervision *s)
{
	struct failure why = { 0 };

	(void)events_open(&s->events, &s->plan->output, &why);
	say_no_events(&why);
}

static void on_event(void *owner, const struct event *e)
{
	struct supervision *s = owner;
	struct failure why = { 0 };
	struct text line = { 0 };
	struct timespec wall;
	struct event_frame frame = {
		.node_known = s->ranked,
		.node = s->plan->node_rank,
		.now_ns = uv_hrtime(),
	};

	(void)clock_gettime(CLOCK_REALTIME, &wall); /* can't fail */
	frame.wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	event_add(&line, e, &frame);
	/* while it runs, the thread writes them, which may wait for a disk */
	if (!line.failed && s->events.open && s->output)
		output_events(s->output, text_string(&line), line.len);
	else if (!line.failed)
		(void)events_write(&s->events, text_string(&line), line.len, &why);
	say_no_events(&why);
	text_done(&line);
}

/* The last of them. */
static void tell_ended(struct supervision *s, int exit_code)
{
	const struct event ended = {
		.kind = EVENT_JOB_ENDED, .at_ns = uv_hrtime(), .exit_code = exit_code
	};
	struct failure why = { 0 };

	on_event(s, &ended);
	(void)events_end(&s->events, &why);
	say_no_events(&why);
}

static const struct plan *on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct supervision *s = owner;

	const struct plan *plan = s->decide(s->owner, m, why);

	if (!plan)
		return NULL;
	s->plan = plan;
	s->ranked = true;
	say_node(plan->node_rank);
	if (!s->events.open)
		open_events(s);
	return plan;
}

static void on_say(void *owner, bool warning, const char *text)
{
	const struct supervision *s = owner;

	enum note_level level = warning ? NOTE_WARNING : NOTE_INFO;

	if (level >= s->least)
		say(note_word(level), text);
}

static int run_supervised(struct supervision *s, struct run_end *ret, struct failure *why)
{
	const struct run_events events = {
		.on_met = on_met,
		.on_started = s->least == NOTE_VERBOSE ? on_started : NULL,
		.on_unfinished = s->least <= NOTE_INFO ? on_unfinished : NULL,
		.on_pause = on_pause,
		.on_own = on_own,
		.say = on_say,
		.event = events_wanted(&s->plan->output) ? on_event : NULL,
	};
	const struct run_input in = {
		.plan = s->plan,
		.member = s->member,
		.inherited = s->inherited,
		.guard = s->guard,
		.output = s->output,
		.status = s->plan->output.foreground && s->least <= NOTE_INFO &&
			!s->plan->output.json,
		.run_dir = guard_run_dir(s->guard, why),
		.arena = s->arena,
		.on = &events,
		.owner = s,
	};

	*ret = (struct run_end){ .plan = s->plan };
	return in.run_dir ? run_job(&in, ret, why) : why->code;
}

/* From the output thread. */
static bool write_events(void *owner, const char *lines, size_t len)
{
	struct supervision *s = owner;
	struct failure why = { 0 };

	(void)events_write(&s->events, lines, len, &why);
	say_no_events(&why);
	return events_wait(&s->events);
}

static void say_by_output(void *owner, const char *bytes, size_t len)
{
	const struct supervision *s = owner;

	output_say(s->output, bytes, len);
}

/* While another thread has it, too, a table of open files grows only after an RCU grace period,
 * some 10 ms: see expand_fdtable() in Linux' fs/file.c. */
static void grow_file_table(const struct plan *plan)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)run_descriptors(plan));

	if (fd >= 0)
		(void)close(fd);
}

static int open_output(struct supervision *s, struct failure *why)
{
	const struct output_host host = {
		.hostname = s->hostname,
		.say = on_say,
		.write_events = write_events,
		.owner = s,
	};
	int rc;

	grow_file_table(s->plan);
	rc = output_open(s->plan, &host, &s->output, why);
	if (rc == 0)
		say_through(say_by_output, s);
	return rc;
}

/* All output comes before the report. False: its thread can't be ended. */
static bool close_output(struct supervision *s, bool hurry)
{
	sigset_t asked;
	struct closing c = { .hurry = hurry, .asked = &asked };
	bool closed;

	signals_ending(&s->plan->reactions, &s->inherited->ignored, &asked);
	closed = output_close(s->output, &c);
	say_through(NULL, NULL);
	if (c.hurry)
		say_in_a_hurry();
	if (c.ret_mid_line)
		say_mid_line();
	if (!closed)
		say("warning",
			"what workers wrote is not all in their log files: the disk does not answer");
	s->output = NULL;
	return closed;
}

/* Somebody wants it to be over, and not to wait for a reader. */
static bool ended_by_request(const struct run_end *end, int rc)
{
	return rc < 0 || end->own.cause.kind > CAUSE_FAILURE;
}

int supervise(struct supervision *s, struct failure *why)
{
	struct run_end end;
	bool closed;
	int rc;

	s->ranked = s->member->node_rank_known;
	events_init(&s->events);
	(void)mallopt(M_ARENA_MAX, 1); /* a heap of the output thread's own would take its pages */
	if (s->ranked || !s->plan->output.events_path)
		open_events(s);
	rc = open_output(s, why);
	if (rc < 0) {
		events_done(&s->events);
		return rc;
	}
	rc = run_supervised(s, &end, why);
	/* else it is the guard's: leaving takes 10 ms. A dying process closes its files, which is
	 * how its end is seen, a moment before it stops being our parent. */
	if (s->guard->gone || getppid() != s->guard->guard)
		guard_drop_cgroups(s->guard);
	if (s->guard->gone) /* else the guard ends us, where our words find no reader */
		signals_release(&s->guard->taken);
	closed = close_output(s, ended_by_request(&end, rc));
	(void)guard_remove_run_dir(s->guard, why);
	if (rc == 0) {
		rc = end.job.verdict.exit_code;
		/* why a worker could not be started, or a file not be removed */
		if (why->code != 0)
			say(rc == 0 ? "warning" : "error", why->text);
		report(s, &end);
		guard_foresee(s->guard, rc, false); /* it is told: no signal changes it now */
		if (rc == 0 && s->least == NOTE_VERBOSE)
			say("note", "all workers ended with exit code 0");
	}
	run_end_done(&end);
	if (events_wanted(&s->plan->output) && closed)
		tell_ended(s, rc < 0 ? failure_exit_code(why) : rc);
	if (!closed)
		guard_bequeath(s->guard, rc < 0 ? failure_exit_code(why) : rc);
	return rc;
}
