/* report.c - see report.h */
#include "daemon/report/report.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/phrases.h"
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
	const struct outcome *o = in->result->culprit;
	struct vec argv = { 0 };
	size_t start = out->len;

	if (in->command) {
		size_t len = strnlen(in->command, max_bytes + 1);

		text_add_shown(out, in->command, len > max_bytes ? max_bytes : len);
		text_add(out, len > max_bytes ? " ..." : "");
		return true;
	}
	if (node_rank_of(in, o->node) != in->plan->node_rank)
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

static void add_culprit(const struct report_input *in, struct text *out)
{
	text_add(out, "launchd: error: ");
	culprit_add(in, out);
	text_add(out, "\n");
	add_moment(in, out);
	add_command(in, out);
	said_add(in, out);
}

/* ", sent by pid 812 (bash, uid 1000)" */
static void add_sender(const struct cause *c, struct text *out)
{
	const struct sender *s = &c->sender;

	if (s->kernel) {
		text_add(out, ", sent by the ");
		text_add(out,
			c->signal == SIGHUP || c->signal == SIGINT || c->signal == SIGQUIT ?
				"terminal" :
				"kernel");
	} else if (s->pid) {
		text_printf(out, ", sent by pid %d (", (int)s->pid);
		text_add_shown(out, s->command, strnlen(s->command, sizeof s->command));
		text_printf(
			out, "%suid %u)", *s->command ? ", " : "ended since, ", (unsigned)s->uid);
	}
}

/* "node 2 (gpu03) was lost after 12.3 s: silent for 10.0 s" */
static void add_loss(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	text_add(out, "launchd: error: ");
	node_add(in, c->node, out);
	text_add(out, " was lost");
	if (r->started_ns && c->at_ns) {
		text_add(out, " after ");
		span_add(out, r->started_ns, c->at_ns);
	}
	if (*c->detail) {
		text_add(out, ": ");
		text_add_shown(out, c->detail, strnlen(c->detail, sizeof c->detail));
	}
	text_add(out, "\n");
	add_moment(in, out);
}

/* "restarts: 1 of at most 3; no restart: exit code 2 is none of --restart-on" */
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

/* The cause that is no worker's. */
static void add_cause(const struct report_input *in, struct text *out)
{
	static const char *const reasons[] = {
		[CAUSE_GUARD] = ": launchd itself was killed",
		[CAUSE_LAUNCHER] = ": what started launchd (mpirun, srun) has ended",
		[CAUSE_HANGUP] = ": nobody reads launchd's output any more, so mpirun or srun has "
				 "ended",
	};
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	if (c->kind == CAUSE_NODE_LOST) {
		add_loss(in, out);
		return;
	}
	text_add(out, "launchd: error: the job was ended");
	if (c->kind == CAUSE_SIGNAL)
		text_printf(out, " by %s", signal_name(c->signal));
	if (c->kind == CAUSE_MAX_RUNTIME)
		text_add(out, " by --max-runtime");
	if (c->kind == CAUSE_MAX_RUNTIME && node_rank_of(in, c->node) == in->plan->node_rank) {
		text_add(out, " (");
		span_add(out, 0, in->plan->max_runtime_ms * 1000000);
		text_add(out, ")");
	}
	host_add(in, c->node, out);
	if (c->kind == CAUSE_SIGNAL)
		add_sender(c, out);
	if (r->started_ns && c->at_ns) {
		text_add(out, c->kind == CAUSE_SIGNAL ? ", after " : " after ");
		span_add(out, r->started_ns, c->at_ns);
	}
	if (c->kind >= CAUSE_GUARD)
		text_add(out, reasons[c->kind]);
	text_add(out, "\n");
	add_moment(in, out);
}

void report_text(const struct report_input *in, struct text *out)
{
	bool well = result_exit_code(in->result) == 0;

	if (in->result->cause.kind == CAUSE_FAILURE)
		add_culprit(in, out);
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
