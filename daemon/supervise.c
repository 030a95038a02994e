/* supervise.c - see supervise.h */
#include "daemon/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/patience.h"
#include "daemon/cluster/config.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/say.h"
#include "daemon/os/process.h"
#include "daemon/os/rehearsal.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/run/run.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/signals.h"

/* These three are called from the output thread. */
static void say_of_output(void *owner, bool warning, const char *text)
{
	const struct supervision *s = owner;

	reporter_say(&s->reporter, warning, text);
}

static bool write_events(void *owner, const char *lines, size_t len)
{
	struct supervision *s = owner;

	return events_write_lines(&s->events, lines, len);
}

static void write_metrics(void *owner, const char *at, size_t len)
{
	struct supervision *s = owner;

	meter_write(&s->meter, at, len);
}

/* It is a file, of which a part is worth something; a FIFO must have a reader. */
static void write_looks(void *owner, const char *lines, size_t len)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
	struct supervision *s = owner;
	const char *path = s->run.plan->hang_trace_path;
	autoclose fd = s->trace_failed ? -1 : open(path, FLAGS, 0644);
	struct failure why = { 0 };
	int rc = fd < 0 ? -errno : fd_write_all(fd, lines, len);

	if (rc < 0 && !s->trace_failed) {
		(void)failure_set(&why, rc, "--hang-trace %s: write failed: %s; no more is written",
			path, strerror(-rc));
		say("warning", why.text);
		s->trace_failed = true;
	}
}

static void say_by_output(void *owner, const char *bytes, size_t len)
{
	const struct supervision *s = owner;

	output_say(s->run.output, bytes, len);
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
		.say = say_of_output,
		.write_events = write_events,
		.write_looks = write_looks,
		.write_page = write_metrics,
		.owner = s,
	};
	int rc;

	grow_file_table(s->run.plan);
	rc = output_open(s->run.plan, &host, &s->run.output, why);
	s->events.output = s->meter.output = s->journal.output = s->run.output;
	if (rc == 0)
		say_through(say_by_output, s);
	return rc;
}

/* All output comes before the report. False: its thread can't be ended. */
static bool close_output(struct supervision *s, bool hurry)
{
	sigset_t asked;
	struct closing c = { .hurry = hurry, .asked = &asked, .shown = &s->shown };
	char path[PATH_MAX];
	bool closed;

	signals_ending(&s->run.plan->reactions, &s->run.inherited->ignored, &asked);
	patience_heed(&asked);
	closed = output_close(s->run.output, &c);
	s->meter.bytes = c.ret_counts;
	/* workers' lines and the report must go the same way */
	if (s->run.plan->output.journal == JOURNAL_NONE && !s->run.plan->output.json)
		s->reporter.shown = text_string(&s->shown);
	say_through(NULL, NULL);
	s->journal.output = NULL; /* whatever is said now is not for that thread */
	say_patience(c.hurry ? PATIENCE_ASKED_MS : patience_for_ms(s->run.plan->grace_ms));
	if (c.ret_mid_line)
		say_mid_line();
	if (!closed && file_is_far(STDERR_FILENO, path))
		say_patience(PATIENCE_ASKED_MS); /* it has waited there */
	if (!closed)
		say("warning",
			s->run.plan->output.tree ?
				"the workers' log files are incomplete: the disk does not respond" :
				"files are incomplete: the disk does not respond");
	else
		s->events.output = s->meter.output = NULL;
	return closed;
}

static void start_notifying(struct supervision *s)
{
	const struct member_config *member = s->run.member;
	const struct notify_input in = {
		.plan = s->run.plan,
		.meets = member->way != MEET_NOBODY,
		.node_rank_known = member->node_rank_known,
		.guard = s->run.guard->guard,
		.arena = s->run.arena,
	};

	notify_start(&s->notify, &in, &s->bus);
	s->run.notify = &s->notify;
}

static void start_observers(struct supervision *s)
{
	const struct plan *plan = s->run.plan;

	s->run.bus = &s->bus;
	s->run.meter = &s->meter;
	s->run.reporter = &s->reporter;
	s->run.hostname = s->hostname;
	s->run.status = plan->output.foreground && s->least <= NOTE_INFO && !plan->output.json;
	s->reporter = (struct reporter){
		.plan = plan,
		.hostname = s->hostname,
		.arena = s->run.arena,
		.least = s->least,
	};
	journal_start(&s->journal, plan, s->run.member->node_rank_known ? (int)plan->node_rank : -1,
		&s->bus);
	reporter_start(&s->reporter, &s->bus);
	meter_start(&s->meter, plan, s->run.arena, &s->bus);
	events_init(&s->events);
	s->events.node_known = s->run.member->node_rank_known;
	s->events.node = plan->node_rank;
	events_start(&s->events, &plan->output, &s->bus);
	start_notifying(s);
}

static void tell_ended(
	struct supervision *s, int rc, const struct run_end *end, const struct failure *why)
{
	const struct event ended = {
		.kind = EVENT_JOB_ENDED,
		.job_ended = { rc < 0 ? failure_exit_code(why) : rc, rc < 0 ? NULL : end },
	};

	bus_emit(&s->bus, &ended);
	if (rc >= 0)
		/* it is told: no signal changes it now */
		guard_set_code_if_killed(s->run.guard, rc, false);
}

/* Somebody wants it to be over, and not to wait for a reader. */
static bool ended_by_request(const struct run_end *end, int rc)
{
	return rc < 0 || end->own.cause.kind > CAUSE_FAILURE;
}

int supervise(struct supervision *s, struct failure *why)
{
	struct run_end end = { .memory = { 0 } };
	struct guard *guard = s->run.guard;
	bool closed;
	int rc;

	(void)mallopt(M_ARENA_MAX, 1); /* a heap of the output thread's own would take its pages */
	start_observers(s);
	rc = meter_listen(&s->meter, &s->run.plan->metrics_address, why);
	if (rc == 0)
		rc = open_output(s, why);
	if (rc < 0) {
		meter_leave(&s->meter);
		journal_close(&s->journal);
		events_done(&s->events);
		notify_done(&s->notify);
		return rc;
	}
	rc = run_job(&s->run, &end, why);
	/* else it is the guard's: leaving takes 10 ms. A dying process closes its files, which is
	 * how its end is seen, a moment before it stops being our parent. */
	if (guard->gone || getppid() != guard->guard)
		guard_drop_cgroups(guard);
	if (guard->gone) /* else the guard ends us, where our words find no reader */
		signals_release(&guard->taken);
	guard_set_final_code(guard, rc < 0 ? failure_exit_code(why) : end.job.verdict.exit_code);
	closed = close_output(s, ended_by_request(&end, rc));
	(void)guard_remove_run_dir(guard, why);
	if (rc == 0) {
		rc = end.job.verdict.exit_code;
		if (end.job.verdict.cause.kind == CAUSE_SIGNAL &&
			end.job.verdict.cause.signal == SIGTERM && rc == 128 + SIGTERM)
			guard_set_ended_by_term(guard);
		/* why a worker could not be started, or the directory not be removed */
		if (why->code != 0)
			say(rc == 0 ? "warning" : "error", why->text);
	}
	tell_ended(s, rc, &end, why);
	notify_done(&s->notify);
	journal_close(&s->journal);
	run_end_done(&end);
	text_done(&s->shown);
	if (!closed)
		guard_exit_stuck(guard, rc < 0 ? failure_exit_code(why) : rc);
	return rc;
}
