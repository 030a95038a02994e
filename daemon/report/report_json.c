/* report_json.c - the report for programs; see report.h. Its schema is
 * config/docs/report.schema.json and launchd(1), REPORT: a change here is one there. */
#include "daemon/report/report.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/history.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/goodput_json.h"
#include "daemon/report/hint.h"
#include "daemon/report/outcome_json.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/said.h"

enum { SCHEMA = 1, NS_PER_US = 1000, US_DIGITS = 6 };

static const char *const blames_words[] = {
	[BLAMES_NOBODY] = "nobody",
	[BLAMES_ITSELF] = "itself",
	[BLAMES_A_PEER] = "peer",
	[BLAMES_A_WAIT] = "wait",
	[BLAMES_OUTPUT] = "output",
};

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

static void add_moment(struct json *j, const char *key, const struct result *r, uint64_t at_ns)
{
	struct text moment = { 0 };
	bool known = moment_add(&moment, r, at_ns, true);

	json_string(j, key, known ? text_string(&moment) : NULL);
	j->out->failed = j->out->failed || moment.failed;
	text_done(&moment);
}

static void add_job(const struct report_input *in, struct json *j)
{
	const struct result *r = in->result;
	bool jobwide = result_is_jobwide(r);
	const struct plan *p = in->plan;
	struct vec command = { 0 };

	vec_add(in->arena, &command, p->script);
	vec_add_all(in->arena, &command, p->args->at);
	json_object_begin(j, "job");
	json_string(j, "run_id", p->run_id);
	json_strings(j, "command", &command);
	json_string(j, "host", in->hostname);
	json_number(j, "node_rank", p->node_rank);
	json_number(j, "nnodes", p->nnodes);
	json_number(j, "nproc_per_node", p->nproc);
	json_number(j, "first_rank", p->first_rank);
	json_number(j, "world_size", p->world_size);
	json_string(j, "scope", p->nnodes > 1 && !jobwide ? "node" : "job");
	json_string(j, "verdict", in->verdict);
	json_number(j, "attempt", in->attempt);
	json_number(j, "max_restarts", in->max_restarts);
	json_string(j, "no_restart", or_null(in->why_not));
	json_string(j, "blackbox", in->bundle);
	add_moment(j, "started", r, r->started_ns);
	add_moment(j, "ended", r, r->ended_ns);
	json_seconds(j, "seconds", r->started_ns, r->ended_ns);
	json_number(
		j, "exit_code", in->verdict && !jobwide ? in->verdict_code : result_exit_code(r));
	json_object_end(j);
}

/* Where it came in. A job on one node does not number it. */
static unsigned cause_node(const struct report_input *in)
{
	const struct cause *c = &in->result->cause;

	if (!cause_failed(c) && c->kind != CAUSE_BAD_NODE &&
		(in->verdict || c->kind == CAUSE_NODE_LOST))
		return c->node;
	return cause_node_of(in);
}

static void add_cause(const struct report_input *in, struct json *j)
{
	static const struct sender nobody = { .pid = 0 };
	const struct result *r = in->result;
	const struct cause *c = &r->cause;

	json_object_begin(j, "cause");
	json_string(j, "kind", json_cause_word(c->kind));
	add_moment(j, "at", r, cause_ns(r));
	json_seconds(j, "seconds", r->started_ns, cause_ns(r));
	json_number_if(j, "node", c->kind != CAUSE_NONE, cause_node(in));
	json_bool(j, "unsure", r->unsure);
	json_string(j, "detail", or_null(c->detail));
	json_signal(j, "signal", c->signal);
	json_sender(
		j, c->kind == CAUSE_SIGNAL || c->kind == CAUSE_PREEMPTED ? &c->sender : &nobody);
	json_exclude(j, c->exclude);
	json_object_end(j);
}

static void add_past(const struct report_input *in, const struct past_attempt *p, struct json *j)
{
	json_object_begin(j, NULL);
	json_number(j, "attempt", p->attempt);
	json_string(j, "cause", json_cause_word(p->cause));
	if (p->has_culprit) {
		json_object_begin(j, "culprit");
		json_number(j, "rank", p->rank);
		json_number(j, "local_rank", p->local_rank);
		json_number(j, "node", node_rank_of(in, p->node));
		json_string(j, "exception", or_null(p->site.text));
		json_object_end(j);
	} else {
		json_string(j, "culprit", NULL);
	}
	json_number_if(j, "step", p->has_step, (long long)p->step);
	json_seconds(j, "seconds", p->started_ns, p->ended_ns);
	json_string(j, "decision", p->restarts ? "restart" : "no");
	json_string(j, "reason", or_null(p->reason));
	json_object_end(j);
}

/* What became of each attempt, and whether another one followed. */
static void add_restarts(const struct report_input *in, struct json *j)
{
	struct text place = { 0 };
	const struct result *r = in->result;

	json_array_begin(j, "restarts");
	for (unsigned i = 0; in->past && i < history_count(in->past); i++)
		add_past(in, history_nth(in->past, i), j);
	json_array_end(j);
	if (in->past && r->nodes)
		(void)history_place_add(in->past, r->nodes, r->node_count, r->count, &place);
	json_string(j, "same_place", or_null(text_string(&place)));
	text_done(&place);
}

static void add_record(const struct error_record *e, struct json *j)
{
	if (!e) {
		json_string(j, "error_file", NULL);
		return;
	}
	json_object_begin(j, "error_file");
	json_string(j, "message", e->message);
	json_string(j, "traceback", e->traceback);
	json_number_if(j, "timestamp", e->timestamp > 0, e->timestamp);
	json_string(j, "raw", e->raw);
	json_string(j, "raw_why", e->raw ? e->raw_why : NULL);
	json_object_end(j);
}

/* Its command as words, where this node knows them, and as one line. */
static void add_command(const struct report_input *in, const struct outcome *o, struct json *j)
{
	enum { COMMAND_LINE_MAX = 131072 }; /* the kernel's bound of one word */
	struct text line = { 0 };
	struct vec argv = { 0 };
	bool known = report_command(in, COMMAND_LINE_MAX, &line);

	if (cause_node_of(in) == in->plan->node_rank) {
		const struct attempt attempt = plan_attempt(in->plan, in->attempt, in->arena);

		plan_command(in->plan, o->local_rank, &attempt, in->arena, &argv);
		json_strings(j, "command", &argv);
	} else {
		json_string(j, "command", NULL);
	}
	json_string(j, "command_line", known ? text_string(&line) : NULL);
	j->out->failed = j->out->failed || line.failed;
	text_done(&line);
}

static void add_culprit(const struct report_input *in, struct json *j)
{
	const struct outcome *o = result_culprit(in->result);

	if (!o) {
		json_string(j, "culprit", NULL);
		return;
	}
	json_object_begin(j, "culprit");
	json_number(j, "rank", o->rank);
	json_number(j, "local_rank", o->local_rank);
	json_number(j, "node", cause_node_of(in));
	add_command(in, o, j);
	json_string(j, "hint", report_hint(in));
	add_record(in->record, j);
	said_add_json(in, j);
	json_object_end(j);
}

/* How it ended, in one word. */
static const char *how_word(const struct report_input *in, const struct outcome *o)
{
	if (o->end.how == ENDED_NONE && node_is_silent(in, o->node))
		return "not_known";
	return o->pid && o->end.how == ENDED_NONE ? "alive" : json_how_word(o->end.how);
}

static void add_worker(const struct report_input *in, const struct outcome *o, struct json *j)
{
	const struct result *r = in->result;

	json_object_begin(j, NULL);
	json_number(j, "rank", o->rank);
	json_number(j, "local_rank", o->local_rank);
	json_number(j, "node", node_rank_of(in, o->node));
	json_number(j, "attempt", o->attempt);
	json_number_if(j, "pid", o->pid > 0, o->pid);
	json_string(j, "how", how_word(in, o));
	json_ending(j, o);
	json_string(j, "blames", blames_words[o->blames]);
	json_bool(j, "together", worker_is_together(r, o));
	json_asked(j, o);
	json_seconds(j, "seconds_after_asked", o->asked_ns, o->ended_ns);
	json_seconds(j, "started_seconds", r->started_ns, o->started_ns);
	json_seconds(j, "ended_seconds", r->started_ns, o->ended_ns);
	json_seconds(j, "seconds", o->started_ns, o->ended_ns);
	json_number(j, "left", o->left);
	json_number(j, "left_killed", o->left_killed);
	json_object_end(j);
}

static void add_survivors(const struct report_input *in, struct json *j)
{
	const struct result *r = in->result;

	json_number(j, "left", r->left);
	json_number(j, "left_killed", r->left_killed);
	json_bool(j, "left_known", !r->left_unknown);
	json_number(j, "survivor_count", r->survivor_count);
	json_array_begin(j, "survivors");
	for (unsigned i = 0; i < r->survivor_count && i < SURVIVORS_MAX; i++) {
		const struct survivor *s = &r->survivors[i];
		size_t len = strnlen(s->command, sizeof s->command);

		json_object_begin(j, NULL);
		json_number(j, "pid", s->pid);
		json_number(j, "uid", s->uid);
		json_string(j, "state", (const char[]){ s->state, '\0' });
		json_string(j, "command", arena_strndup(in->arena, s->command, len));
		json_number(j, "node", node_rank_of(in, s->node));
		json_object_end(j);
	}
	json_array_end(j);
}

static void add_node(struct json *j, unsigned rank, const struct node *node)
{
	json_object_begin(j, NULL);
	json_number(j, "rank", rank);
	json_string(j, "name", or_null(node->name));
	json_bool(j, "lost", node->lost);
	json_bool(j, "lost_unsure", node->lost_unsure);
	json_decimal(j, "clock_error_seconds", node->clock_error_ns / NS_PER_US, US_DIGITS);
	json_object_end(j);
}

/* Those whose workers the report tells of. */
static void add_nodes(const struct report_input *in, struct json *j)
{
	const struct result *r = in->result;
	struct node own = { 0 };

	(void)snprintf(own.name, sizeof own.name, "%s", in->hostname);
	json_array_begin(j, "nodes");
	for (unsigned i = 0; result_is_jobwide(r) && i < r->node_count; i++)
		add_node(j, i, &r->nodes[i]);
	if (!result_is_jobwide(r))
		add_node(j, in->plan->node_rank, &own);
	json_array_end(j);
	json_array_begin(j, "not_in_store");
	for (size_t i = 0; i < in->waiting_count; i++)
		json_number(j, NULL, in->waiting[i]);
	json_array_end(j);
}

void report_json(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	struct json j = { .out = out, .lines = true };

	json_object_begin(&j, NULL);
	json_number(&j, "schema", SCHEMA);
	json_string(&j, "launchd", LAUNCHD_VERSION);
	add_job(in, &j);
	add_cause(in, &j);
	add_culprit(in, &j);
	add_restarts(in, &j);
	json_goodput(&j, in->goodput);
	add_nodes(in, &j);
	json_array_begin(&j, "workers");
	for (size_t i = 0; i < r->count; i++)
		if (worker_is_planned(in, &r->outcomes[i]))
			add_worker(in, &r->outcomes[i], &j);
	json_array_end(&j);
	add_survivors(in, &j);
	json_object_end(&j);
	text_add(out, "\n");
	if (arena_failed(in->arena))
		out->failed = true;
}
