/* supervise.c - see supervise.h */
#include "daemon/supervise.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/output/output.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/report.h"
#include "daemon/report/report_file.h"
#include "daemon/say.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/place.h"
#include "daemon/workers/run.h"
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
		.record = end->testimony ? end->testimony->record : NULL,
		.command = end->testimony ? end->testimony->command : NULL,
		.words = end->testimony ? end->testimony->words : (struct last_words){ 0 },
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

/* Node rank 0 has heard all; the others say in a line what it told them. The words come before the
 * file: a file system that hangs must not keep them. */
static void report(const struct supervision *s, const struct run_end *end)
{
	const struct job_end *job = &end->job;
	struct report_input in = input_of(s, end->plan, job, job->result ? job->result : &end->own);

	if (end->plan->nnodes > 1) {
		in.verdict = job->verdict.text;
		in.verdict_code = job->verdict.exit_code;
	}
	if (job->result)
		say_report(&in);
	else if (!job->verdict.well)
		say("error", job->verdict.text);
	if (job->alone && end->own.cause.kind == CAUSE_FAILURE) {
		say("note", "this node's own workers, of which node rank 0 can't tell:");
		in.record = end->own_culprit.record;
		in.words = end->own_culprit.words;
		say_report(&in);
	}
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

static const struct plan *on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct supervision *s = owner;

	s->plan = s->decide(s->owner, m, why);
	return s->plan;
}

static void on_say(void *owner, bool warning, const char *text)
{
	const struct supervision *s = owner;

	if (!s->quiet)
		say(warning ? "warning" : "note", text);
}

static void remove_run_dir(const struct supervision *s, struct failure *why)
{
	int rc = run_dir_remove(s->guard->run_dir);

	if (rc < 0)
		(void)failure_set(
			why, -EIO, "%s: can't be removed: %s", s->guard->run_dir, strerror(-rc));
}

static int run_supervised(struct supervision *s, struct run_end *ret, struct failure *why)
{
	const struct run_events events = {
		.on_met = on_met,
		.on_started = s->verbose ? on_started : NULL,
		.on_unfinished = s->quiet ? NULL : on_unfinished,
		.on_pause = on_pause,
		.say = on_say,
	};
	const struct run_input in = {
		.plan = s->plan,
		.member = s->member,
		.heritage = s->heritage,
		.guard = s->guard,
		.output = s->output,
		.status = s->plan->output.terminal[2] && !s->quiet && !s->plan->output.json,
		.run_dir = s->guard->run_dir,
		.arena = s->arena,
		.on = &events,
		.owner = s,
	};

	return run_job(&in, ret, why);
}

/* All output comes before the report. False: its thread can't be ended. */
static bool close_output(struct supervision *s, bool more_follows)
{
	bool mid_line;
	bool closed = output_close(s->output, &mid_line);

	if (mid_line && (more_follows || !closed))
		(void)fd_write_all(STDERR_FILENO, "\n", 1);
	if (!closed)
		say("warning",
			"what workers wrote is not all in their log files: the disk does not answer");
	s->output = NULL;
	return closed;
}

int supervise(struct supervision *s, struct failure *why)
{
	struct run_end end;
	bool closed;
	int rc = output_open(s->plan, s->hostname, on_say, s, &s->output, why);

	if (rc < 0) {
		remove_run_dir(s, why);
		return rc;
	}
	rc = run_supervised(s, &end, why);
	remove_run_dir(s, why);
	/* else it is the guard's: leaving takes 10 ms. A dying process closes its files, which is
	 * how its end is seen, a moment before it stops being our parent. */
	if (s->guard->gone || getppid() != s->guard->guard)
		guard_drop_cgroups(s->guard);
	if (s->guard->gone) /* else the guard ends us, where our words find no reader */
		signals_release(&s->guard->taken);
	closed = close_output(
		s, rc != 0 || why->code != 0 || s->verbose || end.job.verdict.exit_code);
	if (rc == 0) {
		rc = end.job.verdict.exit_code;
		/* why a worker could not be started, or a file not be removed */
		if (why->code != 0)
			say(rc == 0 ? "warning" : "error", why->text);
		report(s, &end);
		if (rc == 0 && s->verbose)
			say("note", "all workers ended with exit code 0");
	}
	run_end_done(&end);
	if (!closed)
		guard_bequeath(s->guard, rc < 0 ? failure_exit_code(why) : rc);
	return rc;
}
