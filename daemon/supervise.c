/* supervise.c - see supervise.h */
#include "daemon/supervise.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/record.h"
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

/* What the culprit says of itself. */
static const struct error_record *read_record(
	const struct supervision *s, const struct result *result, struct error_record *record)
{
	const struct outcome *culprit = result->culprit;
	struct failure why = { 0 };
	int rc;

	if (!culprit)
		return NULL;
	rc = record_load(plan_error_file(&(struct attempt){ .number = culprit->attempt,
						 .run_dir = s->guard->run_dir },
				 culprit->local_rank, s->arena),
		s->arena, record, &why);
	if (rc < 0)
		say("warning", why.text);
	return rc > 0 ? record : NULL;
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

/* The words come before the file: a file system that hangs must not keep them. */
static void report(
	const struct supervision *s, const struct result *result, const struct error_record *record)
{
	const struct report_input in = {
		.result = result,
		.plan = s->plan,
		.hostname = s->hostname,
		.record = record,
		.uid = geteuid(),
		.arena = s->arena,
	};
	struct text text = { 0 };

	report_text(&in, &text);
	say_text(&text);
	if (s->plan->report_path)
		write_report(&in);
}

static void remove_run_dir(const struct supervision *s, struct failure *why)
{
	int rc = run_dir_remove(s->guard->run_dir);

	if (rc < 0)
		(void)failure_set(
			why, -EIO, "%s: can't be removed: %s", s->guard->run_dir, strerror(-rc));
}

int supervise(const struct supervision *s, struct failure *why)
{
	const struct run_input in = {
		.plan = s->plan,
		.heritage = s->heritage,
		.guard = s->guard,
		.run_dir = s->guard->run_dir,
		.arena = s->arena,
		.on_started = s->verbose ? on_started : NULL,
		.on_unfinished = s->quiet ? NULL : on_unfinished,
	};
	struct error_record record;
	const struct error_record *found = NULL;
	struct result result;
	int rc = run_plan(&in, &result, why);

	if (rc == 0)
		found = read_record(s, &result, &record);
	remove_run_dir(s, why);
	/* else it is the guard's: leaving takes 10 ms. A dying process closes its files, which is
	 * how its end is seen, a moment before it stops being our parent. */
	if (s->guard->gone || getppid() != s->guard->guard)
		guard_drop_cgroups(s->guard);
	if (s->guard->gone) /* else the guard ends us, where our words find no reader */
		signals_release(&s->guard->taken);
	if (rc < 0)
		return rc;
	rc = result_exit_code(&result);
	if (why->code != 0) /* why a worker could not be started, or a file not be removed */
		say(rc == 0 ? "warning" : "error", why->text);
	report(s, &result, found);
	if (rc == 0 && s->verbose)
		say("note", "all workers ended with exit code 0");
	return rc;
}
