/* report.c - see report.h */
#include "daemon/report/report.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/history.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/hint.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/said.h"

/* Bytes that are shown; --report has more. */
enum { COMMAND_MAX = 600, EXCEPTION_MAX = 400, NS_PER_MS = 1000000 };

/* "launchd: error: time: 2026-11-21 07:00:12.345 +0100" */
static void add_moment(const struct report_input *in, struct text *out)
{
	struct text moment = { 0 };

	if (moment_add(&moment, in->result, cause_ns(in->result), false))
		text_printf(out, "launchd: error: time: %s\n", text_string(&moment));
	out->failed = out->failed || moment.failed;
	text_done(&moment);
}

bool report_command(const struct report_input *in, size_t max_bytes, struct text *out)
{
	const struct outcome *o = result_culprit(in->result);
	struct attempt attempt;
	struct vec argv = { 0 };
	size_t start = out->len;

	if (!o)
		return false;
	if (in->command) {
		size_t len = strnlen(in->command, max_bytes + 1);

		text_add_shown(out, in->command, len > max_bytes ? max_bytes : len);
		text_add(out, len > max_bytes ? " ..." : "");
		return true;
	}
	if (cause_node_of(in) != in->plan->node_rank)
		return false;
	attempt = plan_attempt(in->plan, in->attempt, in->arena);
	plan_command(in->plan, o->local_rank, &attempt, in->arena, &argv);
	for (size_t i = 0; i < argv.count; i++) {
		text_add(out, i ? " " : "");
		if (out->len - start + strlen(argv.at[i]) > max_bytes) {
			text_add(out, "...");
			break;
		}
		text_add_shell(out, argv.at[i]);
	}
	return true;
}

static void add_command(const struct report_input *in, struct text *out)
{
	struct text command = { 0 };

	if (report_command(in, COMMAND_MAX, &command))
		text_printf(out, "launchd: error: command: %s\n", text_string(&command));
	out->failed = out->failed || command.failed;
	text_done(&command);
}

static void add_hint(const struct report_input *in, struct text *out)
{
	const char *hint = report_hint(in);

	if (hint)
		text_printf(out, "launchd: error: hint: %s\n", hint);
}

/* A time-out without a known culprit, or output without a reader: names the victim whose words
 * follow. */
static void add_waiting(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;

	if (!cause_failed(&r->cause) || result_culprit(r))
		return;
	text_add(out, "launchd: error: first victim: ");
	worker_add(out, &r->cause.victim);
	cause_host_add(in, out);
	text_add(out, ": ");
	outcome_add(out, &r->cause.victim);
	text_add(out, "\n");
}

void report_culprit_text(const struct report_input *in, struct text *out)
{
	text_add(out, "launchd: error: ");
	culprit_add(in, out);
	text_add(out, "\n");
	add_moment(in, out);
	add_waiting(in, out);
	add_command(in, out);
	add_hint(in, out);
	said_add(in, out);
}

/* " from pid 812 (bash, uid 1000)" */
static void add_sender(const struct cause *c, struct text *out)
{
	const struct sender *s = &c->sender;

	if (s->kernel) {
		text_add(out,
			c->signal == SIGHUP || c->signal == SIGINT || c->signal == SIGQUIT ?
				" from the terminal" :
				" from the kernel");
	} else if (s->pid) {
		text_printf(out, " from pid %d (", (int)s->pid);
		text_add_shown(out, s->command, strnlen(s->command, sizeof s->command));
		text_printf(
			out, "%suid %u)", *s->command ? ", " : "already gone, ", (unsigned)s->uid);
	}
}

/* "root cause: node 2 (gpu03) was lost after 12.3 s: silent for 10.0 s" */
static void add_loss(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	text_printf(out, "launchd: error: root cause: %s",
		c->contact ? "this node lost contact with " : "");
	node_add(in, c->node, out);
	loss_add(out, c);
	if (r->started_ns && c->at_ns) {
		text_add(out, " after ");
		span_add(out, r->started_ns, c->at_ns);
	}
	if (*c->detail) {
		text_add(out, ": ");
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
	}
	losses_add(out, r);
	text_add(out, "\n");
	add_moment(in, out);
}

/* "root cause: node 3 (gpu07) is bad: GPU 2: 4 uncorrectable ECC errors; exclude: gpu07" */
static void add_bad(const struct report_input *in, struct text *out)
{
	const struct cause *c = &in->result->cause;

	node_add(in, cause_node_of(in), out);
	bad_add(out, c);
	text_add(out, "\n");
	add_moment(in, out);
}

/* Restarts that --max-restarts counts. */
static unsigned counted(const struct report_input *in)
{
	return in->attempt - (in->asked_restarts < in->attempt ? in->asked_restarts : in->attempt);
}

/* "restarts: 1 of at most 3; no restart: exit code 2 is not in --restart-on" */
static void add_restarts(const struct report_input *in, struct text *out)
{
	if (in->max_restarts == 0)
		return;
	text_printf(
		out, "launchd: error: restarts: %u of at most %u", counted(in), in->max_restarts);
	if (in->asked_restarts)
		text_printf(out, ", and %u on request", in->asked_restarts);
	if (in->why_not && *in->why_not) {
		text_add(out, "; no restart: ");
		text_add_shown(out, in->why_not, strlen(in->why_not));
	}
	text_add(out, "\n");
}

/* "same place: node 1 (gpu07) was the first to fail in 2 of 3 attempts; exclude: gpu07" */
static void add_same_place(const struct report_input *in, const char *level, struct text *out)
{
	const struct result *r = in->result;
	struct text place = { 0 };

	if (in->past && r->cause.kind == CAUSE_FAILURE && r->nodes &&
		history_place_add(in->past, r->nodes, r->node_count, r->count, &place)) {
		text_printf(out, "launchd: %s: same place: %s", level, text_string(&place));
		if (r->cause.exclude)
			text_printf(out, "; exclude: %s", r->cause.exclude);
		text_add(out, "\n");
	}
	text_done(&place);
}

/* "restart 1 of at most 3", "restart 3 of at most 10 within 24 h 00 min" */
static void add_which(const struct report_input *in, struct text *out)
{
	unsigned count = in->past ? history_count(in->past) : 0;

	if (count > 0)
		text_add(out, history_nth(in->past, count - 1)->reason);
	else
		text_printf(out, "restart %u of at most %u", counted(in) + 1, in->max_restarts);
}

/* A cause other than a worker's failure: "root cause: launchd received SIGTERM on gpu07 (node 1)
 * from pid 812 (bash, uid 1000) after 12.3 s" */
static void add_cause(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	if (c->kind == CAUSE_NODE_LOST) {
		add_loss(in, out);
		return;
	}
	text_add(out, "launchd: error: root cause: ");
	if (c->kind == CAUSE_BAD_NODE) {
		add_bad(in, out);
		return;
	}
	if (c->kind == CAUSE_HANG) { /* of all nodes */
		cause_brief_add(c, 0, out);
	} else {
		cause_add(c,
			cause_node_of(in) == in->plan->node_rank ? in->plan->max_runtime_ms : 0,
			out);
		cause_host_add(in, out);
	}
	if (c->kind == CAUSE_SIGNAL || c->kind == CAUSE_RESTART || c->kind == CAUSE_PREEMPTED)
		add_sender(c, out);
	if (r->started_ns && c->at_ns) {
		text_add(out, " after ");
		span_add(out, r->started_ns, c->at_ns);
	}
	if (c->kind == CAUSE_HANG && *c->detail) {
		text_add(out, ": ");
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
	}
	text_add(out, "\n");
	add_moment(in, out);
}

/* --- what outlived its worker --- */

/* "2 processes behind; launchd killed 1 of them" */
static void add_left(struct text *out, unsigned left, unsigned killed, bool each)
{
	text_printf(
		out, "%u process%s behind%s; ", left, left == 1 ? "" : "es", each ? " each" : "");
	if (killed == 0)
		text_printf(out, "%s ended after launchd's SIGTERM\n", left == 1 ? "it" : "they");
	else if (killed >= left)
		text_printf(out, "launchd killed %s\n", left == 1 ? "it" : "them");
	else
		text_printf(out, "launchd killed %u of them\n", killed);
}

/* The workers that left as much behind as the first one; 0: the line of one before it names it. */
static size_t same_left(const struct result *r, size_t first, const struct outcome **list)
{
	const struct outcome *model = &r->outcomes[first];
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o->left != model->left || o->left_killed != model->left_killed)
			continue;
		if (i < first)
			return 0;
		list[count++] = o;
	}
	return count;
}

static void add_survivor(const struct report_input *in, const struct survivor *s, struct text *out)
{
	text_add(out, "launchd: warning: still alive");
	if (result_is_jobwide(in->result))
		host_add(in, s->node, out);
	text_printf(out, ": pid %d (", (int)s->pid);
	text_add_shown(out, s->command, strnlen(s->command, sizeof s->command));
	text_printf(out, ", uid %u): ", (unsigned)s->uid);
	if (s->state == 'D')
		text_add(out,
			"stuck in the kernel (state D); it ends when its system call returns\n");
	else if (s->uid != in->uid && in->uid != 0)
		text_add(out, "belongs to another user, so launchd may not end it\n");
	else
		text_printf(out, "could not be killed (state %c)\n", s->state);
}

/* The lines about workers that are known by name. */
static void add_each(const struct report_input *in, bool worst_only, const char *level,
	const struct outcome **list, struct text *out)
{
	enum { LINES_MAX = 16 };
	const struct result *r = in->result;
	size_t lines = 0, more = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];
		size_t count =
			o->left_killed || (o->left && !worst_only) ? same_left(r, i, list) : 0;

		if (count == 0)
			continue;
		if (lines++ >= LINES_MAX) {
			more += count;
			continue;
		}
		text_printf(out, "launchd: %s: ", level);
		ranks_add(out, list, count);
		(void)nodes_of_add(in, list, count, out);
		text_add(out, " left ");
		add_left(out, o->left, o->left_killed, count > 1);
	}
	if (more)
		text_printf(out,
			"launchd: %s: %zu more workers left processes behind: see --report FILE\n",
			level, more);
}

/* A line for workers that left equally many processes behind, then one for those that can't be told
 * apart, then one for each process that could not be ended. worst_only: nothing about those that
 * ended after SIGTERM, and a warning about the rest. */
static void add_remains(const struct report_input *in, bool worst_only, struct text *out)
{
	const struct result *r = in->result;
	const struct outcome **list = arena_alloc(in->arena, r->count * sizeof *list);
	const char *level = worst_only ? "warning" : "note";

	if (!list) {
		out->failed = true;
		return;
	}
	add_each(in, worst_only, level, list, out);
	if (r->left_killed || (r->left && !worst_only)) {
		text_printf(out, "launchd: %s: workers left ", level);
		add_left(out, r->left, r->left_killed, false);
	}
	for (unsigned i = 0; i < r->survivor_count && i < SURVIVORS_MAX; i++)
		add_survivor(in, &r->survivors[i], out);
	if (r->survivor_count > SURVIVORS_MAX)
		text_printf(out, "launchd: warning: still alive: %u more processes\n",
			r->survivor_count - SURVIVORS_MAX);
}

/* Where what was kept of the failure is, and how to read it: one path, to be copied whole. */
static void add_bundle(const struct report_input *in, const char *level, struct text *out)
{
	if (!in->bundle)
		return;
	text_printf(out, "launchd: %s: evidence: launchd --explain ", level);
	text_add_shell(out, in->bundle);
	text_add(out, "\n");
}

void report_text(const struct report_input *in, struct text *out)
{
	bool well = result_exit_code(in->result) == 0;

	if (cause_failed(&in->result->cause))
		report_culprit_text(in, out);
	else if (!well)
		add_cause(in, out);
	if (!well) {
		add_restarts(in, out);
		add_same_place(in, "error", out);
		others_add(in, out);
		nodes_missing_add(in, out);
		waiting_add(in, out);
	}
	add_remains(in, well, out);
	if (!well)
		add_bundle(in, "error", out);
}

/* --- between two attempts --- */

/* The first line of it; the rest is in the report of the last attempt, if that dies of it, too. */
static void add_exception(const char *message, struct text *out)
{
	size_t len = strcspn(message, "\r\n");

	text_add(out, "launchd: warning: exception: ");
	text_add_shown(out, message, len > EXCEPTION_MAX ? EXCEPTION_MAX : len);
	text_add(out, len > EXCEPTION_MAX ? " ...\n" : "\n");
}

/* The others that may have been first. */
static void add_together(const struct result *r, struct text *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++)
		count += worker_is_together(r, &r->outcomes[i]);
	if (count)
		text_printf(out, "launchd: warning: %zu other worker%s failed at the same time\n",
			count, count == 1 ? "" : "s");
}

void report_restart_text(const struct report_input *in, uint64_t delay_ms, struct text *out)
{
	const struct result *r = in->result;
	bool failed = cause_failed(&r->cause) != NULL;

	text_printf(out, "launchd: %s: ", r->cause.kind == CAUSE_RESTART ? "note" : "warning");
	if (failed) {
		culprit_add(in, out);
		text_add(out, "; ");
	} else if (r->cause.kind == CAUSE_RESTART) {
		cause_add(&r->cause, 0, out);
		cause_host_add(in, out);
		add_sender(&r->cause, out);
		text_add(out, "; ");
	} else if (r->cause.kind == CAUSE_HANG) { /* who, and why, was said when it was found */
		cause_brief_add(&r->cause, 0, out);
		text_add(out, "; ");
	}
	if (in->restart_asked)
		text_add(out, "the next attempt");
	else
		add_which(in, out);
	text_add(out, " starts ");
	if (delay_ms) {
		text_add(out, "in ");
		span_add(out, 0, delay_ms * NS_PER_MS);
	} else {
		text_add(out, "now");
	}
	text_add(out, "\n");
	if (failed && in->record && in->record->message)
		add_exception(in->record->message, out);
	if (failed)
		said_add_log(in, "warning", out);
	if (failed)
		add_together(r, out);
	add_same_place(in, "warning", out);
	add_bundle(in, "warning", out);
}
