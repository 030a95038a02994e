/* report.c - see report.h */
#include "daemon/report/report.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/hint.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/remains.h"
#include "daemon/report/said.h"

enum { COMMAND_MAX = 600 }; /* bytes that are shown; --report has more */

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
	plan_command(in->plan, o->local_rank, in->arena, &argv);
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

void report_culprit_text(const struct report_input *in, struct text *out)
{
	text_add(out, "launchd: error: ");
	culprit_add(in, out);
	text_add(out, "\n");
	add_moment(in, out);
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

/* "restarts: 1 of at most 3; no restart: exit code 2 is not in --restart-on" */
static void add_restarts(const struct report_input *in, struct text *out)
{
	if (in->max_restarts == 0)
		return;
	text_printf(
		out, "launchd: error: restarts: %u of at most %u", in->attempt, in->max_restarts);
	if (in->why_not && *in->why_not) {
		text_add(out, "; no restart: ");
		text_add_shown(out, in->why_not, strlen(in->why_not));
	}
	text_add(out, "\n");
}

/* A cause that is no worker's: "root cause: launchd got SIGTERM on gpu07 (node 1) from pid 812
 * (bash, uid 1000) after 12.3 s" */
static void add_cause(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	if (c->kind == CAUSE_NODE_LOST) {
		add_loss(in, out);
		return;
	}
	text_add(out, "launchd: error: root cause: ");
	cause_add(c, cause_node_of(in) == in->plan->node_rank ? in->plan->max_runtime_ms : 0, out);
	cause_host_add(in, out);
	if (c->kind == CAUSE_SIGNAL)
		add_sender(c, out);
	if (r->started_ns && c->at_ns) {
		text_add(out, " after ");
		span_add(out, r->started_ns, c->at_ns);
	}
	text_add(out, "\n");
	add_moment(in, out);
}

void report_text(const struct report_input *in, struct text *out)
{
	bool well = result_exit_code(in->result) == 0;

	if (in->result->cause.kind == CAUSE_FAILURE)
		report_culprit_text(in, out);
	else if (!well)
		add_cause(in, out);
	if (!well) {
		add_restarts(in, out);
		others_add(in, out);
		nodes_missing_add(in, out);
		waiting_add(in, out);
	}
	remains_add(in, well, out);
}
