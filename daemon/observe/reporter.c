/* reporter.c - see reporter.h */
#include "daemon/observe/reporter.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/job/job_end.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/plan/plan.h"
#include "daemon/report/failure_record.h"
#include "daemon/report/report.h"
#include "daemon/report/report_file.h"

static void note(const struct reporter *r, enum note_level level, const char *text)
{
	if (level >= r->least)
		say(note_word(level), text);
}

void reporter_say(const struct reporter *r, bool warning, const char *text)
{
	note(r, warning ? NOTE_WARNING : NOTE_INFO, text);
}

/* Of several launchers on a host (--per-process) the one of local rank 0 says what all of them hear
 * from node rank 0. */
static bool speaks(const struct reporter *r)
{
	return r->plan->process.local_rank == 0 || r->least == NOTE_VERBOSE;
}

static void on_note(void *owner, const struct event *e)
{
	if (e->note.level > NOTE_INFO || speaks(owner))
		note(owner, e->note.level, e->note.text);
}

static void on_job_started(void *owner, const struct event *e)
{
	struct reporter *r = owner;

	r->plan = e->job_started.plan;
	say_node(r->plan->node_rank);
}

/* --verbose: which process has which rank. */
static void on_worker_started(void *owner, const struct event *e)
{
	const struct reporter *r = owner;
	const struct outcome *o = e->worker;
	struct text line = { 0 };

	if (r->least > NOTE_VERBOSE)
		return; /* there may be hundreds, and the next one waits */
	text_printf(&line, "started rank %u (local rank %u, attempt %u, pid %d)", o->rank,
		o->local_rank, o->attempt, (int)o->pid);
	note(r, NOTE_VERBOSE, text_string(&line));
	text_done(&line);
}

/* Some have ended with 0, and the rest does not follow: a hang that looks like work. */
static void on_unfinished(void *owner, const struct event *e)
{
	struct arena scratch = { 0 };
	struct text line = { 0 };

	report_unfinished(e->unfinished.outcomes, e->unfinished.count, e->at_ns, &scratch, &line);
	if (line.len > 0)
		note(owner, NOTE_INFO, text_string(&line));
	text_done(&line);
	arena_done(&scratch);
}

static void write_file(const char *asked_by, const char *path, struct text *json)
{
	struct failure why = { 0 };

	if (report_write_text(asked_by, path, json, &why) < 0)
		say("warning", why.text);
}

/* --report */
static void write_report(const struct report_input *in)
{
	struct text json = { 0 };

	report_json(in, &json);
	write_file("--report", in->plan->report_path, &json);
}

/* TORCHELASTIC_ERROR_FILE of launchd's own environment. A node that isn't node rank 0 knows the
 * words of its own workers only. */
static void write_failure(const struct run_end *end, const struct report_input *known)
{
	const struct verdict *verdict = &end->job.verdict;
	const struct outcome *own = result_culprit(&end->own);
	struct report_input in = *known;
	struct text json = { 0 };

	if (!end->job.result && own && !*end->own.cause.host && result_is_culprit(in.result, own)) {
		in.record = end->own_culprit.record;
		in.words = end->own_culprit.words;
	}
	failure_record(&in, verdict->text, verdict->exit_code, time(NULL), &json);
	write_file("TORCHELASTIC_ERROR_FILE", in.plan->error_file, &json);
}

/* The line of the root cause stands there from before. */
static bool is_told(const struct reporter *r, const struct cause *c)
{
	const struct outcome *told = cause_failed(&r->told), *now = cause_failed(c);

	return r->told.kind != CAUSE_NONE && r->told.kind == c->kind &&
		(!told || (now && told->rank == now->rank));
}

static void say_report(const struct reporter *r, const struct report_input *known)
{
	struct text text = { 0 };
	struct report_input in = *known;

	in.shown = r->shown;
	report_text(&in, &text);
	if (is_told(r, &in.result->cause)) {
		say("note", "what is known with the other nodes' answers:");
		text_drop(&text, strcspn(text_string(&text), "\n") + 1);
	}
	say_text(&text);
}

static struct report_input input_of(
	const struct reporter *r, const struct job_end *end, const struct result *result)
{
	return (struct report_input){
		.result = result,
		.plan = r->plan,
		.hostname = r->hostname,
		.record = end->evidence ? end->evidence->record : NULL,
		.command = end->evidence ? end->evidence->command : NULL,
		.words = end->evidence ? end->evidence->words : (struct last_words){ 0 },
		.attempt = end->verdict.attempt,
		.max_restarts = r->plan->max_restarts,
		.asked_restarts = end->asked_restarts,
		.restart_asked = end->restart_asked,
		.why_not = end->why_not,
		.past = &end->past,
		.goodput = &end->goodput,
		.bundle = end->bundle,
		.waiting = end->waiting,
		.waiting_count = end->waiting_count,
		.uid = geteuid(),
		.arena = r->arena,
	};
}

/* What this node knows by itself. */
static struct report_input own_input(const struct reporter *r, const struct run_end *end)
{
	struct report_input in = input_of(r, &end->job, &end->own);

	in.attempt = end->own.count > 0 ? end->own.outcomes[0].attempt : 0;
	in.record = end->own_culprit.record;
	in.words = end->own_culprit.words;
	return in;
}

static void on_killed(void *owner, const struct event *e)
{
	const struct run_end *end = e->killed;
	struct reporter *r = owner;
	const struct report_input in = own_input(owner, end);

	if (end->own.cause.kind == CAUSE_NONE)
		return;
	say("note",
		"launchd was killed, as mpirun and srun do to end a job; this is what it knows "
		"without the other nodes' answers:");
	say_report(r, &in);
	r->told = end->own.cause;
}

/* An attempt has ended, and the next one follows. */
static void on_restart(void *owner, const struct event *e)
{
	const struct job_end *end = e->restart.end;
	const struct report_input in = input_of(owner, end, end->result);
	struct text text = { 0 };

	report_restart_text(&in, e->restart.delay_ms, &text);
	say_text(&text);
}

/* The first of this node's workers to fail, where the job's root cause is another one. */
static void say_own_culprit(const struct reporter *r, const struct run_end *end)
{
	struct report_input in = own_input(r, end);
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
static void say_alone(const struct reporter *r, const struct run_end *end, struct report_input *in)
{
	const struct outcome *own = result_culprit(&end->own);
	bool is_own = own && !*end->own.cause.host;
	bool is_culprit = is_own && result_is_culprit(in->result, own);

	if (is_culprit) {
		in->record = end->own_culprit.record;
		in->words = end->own_culprit.words;
	}
	say_report(r, in);
	if (is_own && !is_culprit)
		say_own_culprit(r, end);
}

/* Of a job that ran once and well there is nothing to say. */
static void say_goodput(const struct reporter *r, const struct goodput *g)
{
	struct text line = { 0 };

	if (g->attempts == 0)
		return;
	goodput_text(g, &line);
	note(r, g->attempts > 1 ? NOTE_INFO : NOTE_VERBOSE, text_string(&line));
	text_done(&line);
}

/* On a console that is node rank 0's, too, whose report names the culprit once. */
static void say_reported(const struct verdict *v)
{
	struct text line = { 0 };

	if (v->cause.kind == CAUSE_FAILURE)
		text_printf(&line, "%srank %u on node %u failed", v->unsure ? "possibly " : "",
			v->cause.culprit.rank, v->cause.node);
	else
		cause_brief_add(&v->cause, 0, &line);
	text_add(&line, ": node 0 reports");
	say("error", text_string(&line));
	text_done(&line);
}

static void say_verdict(const struct reporter *r, const struct verdict *v)
{
	if (r->plan->output.joined)
		say_reported(v);
	else
		say("error", v->text);
}

/* The nodes that are in touch with node rank 0 say in a line what it told them. The words come
 * before the file: a file system that hangs must not keep them. */
static void report_end(const struct reporter *r, const struct run_end *end)
{
	const struct job_end *job = &end->job;
	const struct result known = known_result(end);
	struct report_input in = input_of(r, job, &known);

	if (r->plan->nnodes > 1) {
		in.verdict = job->verdict.text;
		in.verdict_code = job->verdict.exit_code;
	}
	if (job->alone)
		say_alone(r, end, &in);
	else if (job->result)
		say_report(r, &in);
	else if (!job->verdict.well && speaks(r))
		say_verdict(r, &job->verdict);
	say_goodput(r, &job->goodput);
	if (r->plan->report_path && (end->own.count > 0 || job->result))
		write_report(&in);
	if (r->plan->error_file && job->verdict.exit_code != 0)
		write_failure(end, &in);
	if (job->verdict.exit_code == 0)
		note(r, NOTE_VERBOSE, "all workers exited with code 0");
}

/* The node that is told and the one that tells are two, mostly: one line for the job. */
static void on_preemption(void *owner, const struct event *e)
{
	const struct cause *c = e->preemption.cause;
	const struct reporter *r = owner;
	struct text line = { 0 };

	if (r->plan->node_rank != 0 && r->least > NOTE_VERBOSE)
		return;
	cause_brief_add(c, 0, &line);
	text_add(&line, r->plan->nnodes > 1 ? " on " : "");
	if (r->plan->nnodes > 1)
		place_add(&line, c->node == r->plan->node_rank ? r->hostname : c->host, c->node);
	if (e->preemption.signal)
		text_printf(&line, ": workers get %s and have %s s to end",
			signal_name(e->preemption.signal), num_seconds(e->preemption.left_ms).text);
	else
		text_add(&line, ": no worker is running here, and none will be started");
	note(r, NOTE_INFO, text_string(&line));
	text_done(&line);
}

static void on_job_ended(void *owner, const struct event *e)
{
	if (e->job_ended.end)
		report_end(owner, e->job_ended.end);
}

static const struct observer reporter = {
	.on = {
		[EVENT_JOB_STARTED] = on_job_started,
		[EVENT_WORKER_STARTED] = on_worker_started,
		[EVENT_RESTART] = on_restart,
		[EVENT_JOB_ENDED] = on_job_ended,
		[EVENT_PREEMPTION] = on_preemption,
		[EVENT_NOTE] = on_note,
		[EVENT_UNFINISHED] = on_unfinished,
		[EVENT_KILLED] = on_killed,
	},
};

enum note_level reporter_least(const struct reporter *r)
{
	return r->least;
}

void reporter_set_least(struct reporter *r, enum note_level least)
{
	r->least = least;
}

void reporter_start(struct reporter *r, struct bus *b)
{
	bus_add(b, &reporter, r);
}
