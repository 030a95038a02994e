/* report_json.c - the report for programs; see report.h. Its schema is
 * config/docs/report.schema.json and launchd(1), REPORT: a change here is one there. */
#include "daemon/report/report.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/hint.h"
#include "daemon/report/json_parts.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/said.h"

enum { SCHEMA = 1, NS_PER_US = 1000, US_PER_S = 1000000 };

static const char *const blames_words[] = {
	[BLAMES_NOBODY] = "nobody",
	[BLAMES_ITSELF] = "itself",
	[BLAMES_A_PEER] = "peer",
};

static void add_moment(struct text *out, const char *key, const struct result *r, uint64_t at_ns)
{
	struct text moment = { 0 };
	bool known = moment_add(&moment, r, at_ns, true);

	json_add_string(out, key, known ? text_string(&moment) : NULL);
	out->failed = out->failed || moment.failed;
	text_done(&moment);
}

static void add_numbers(struct text *out, const char *key, const unsigned *list, size_t count)
{
	text_printf(out, "\"%s\":[", key);
	for (size_t i = 0; i < count; i++)
		text_printf(out, "%s%u", i ? "," : "", list[i]);
	text_add(out, "]");
}

/* What came of all nodes together, and of all attempts. */
static void add_whole(const struct report_input *in, struct text *out)
{
	bool is_node = in->plan->nnodes > 1 && !result_is_jobwide(in->result);

	json_add_string(out, "scope", is_node ? "node" : "job");
	text_add(out, ",");
	json_add_string(out, "verdict", in->verdict);
	text_printf(out, ",\"attempt\":%u,\"max_restarts\":%u,", in->attempt, in->max_restarts);
	json_add_string(out, "no_restart", in->why_not && *in->why_not ? in->why_not : NULL);
	text_add(out, ",\n  ");
}

static void add_job(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	int code = in->verdict && !result_is_jobwide(r) ? in->verdict_code : result_exit_code(r);
	const struct plan *p = in->plan;
	struct vec command = { 0 };

	vec_add(in->arena, &command, p->script);
	for (size_t i = 0; i < p->args->count; i++)
		vec_add(in->arena, &command, p->args->at[i]);
	text_add(out, " \"job\":{");
	json_add_string(out, "run_id", p->run_id);
	text_add(out, ",");
	json_add_words(out, "command", &command);
	text_add(out, ",\n  ");
	json_add_string(out, "host", in->hostname);
	text_printf(out,
		",\"node_rank\":%u,\"nnodes\":%u,\"nproc_per_node\":%u,\"first_rank\":%u,"
		"\"world_size\":%u,\n  ",
		p->node_rank, p->nnodes, p->nproc, p->first_rank, p->world_size);
	add_whole(in, out);
	add_moment(out, "started", r, r->started_ns);
	text_add(out, ",");
	add_moment(out, "ended", r, r->ended_ns);
	text_add(out, ",");
	json_add_seconds(out, "seconds", r->started_ns, r->ended_ns);
	text_printf(out, ",\"exit_code\":%d},\n", code);
}

/* Where it came in. A job on one node does not number it. */
static unsigned cause_node(const struct report_input *in)
{
	const struct cause *c = &in->result->cause;

	if (c->kind != CAUSE_FAILURE && (in->verdict || c->kind == CAUSE_NODE_LOST))
		return c->node;
	return cause_node_of(in);
}

static void add_cause(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct cause *c = &r->cause;
	bool by_signal = c->kind == CAUSE_SIGNAL;

	text_add(out, " \"cause\":{");
	json_add_string(out, "kind", json_cause_word(c->kind));
	text_add(out, ",");
	add_moment(out, "at", r, cause_ns(r));
	text_add(out, ",");
	json_add_seconds(out, "seconds", r->started_ns, cause_ns(r));
	text_add(out, ",");
	json_add_number(out, "node", c->kind != CAUSE_NONE, cause_node(in));
	text_printf(out, ",\"unsure\":%s,", json_bool(r->unsure));
	json_add_string(out, "detail", *c->detail ? c->detail : NULL);
	text_add(out, ",\n  ");
	json_add_string(out, "signal", c->signal ? signal_name(c->signal) : NULL);
	text_add(out, ",");
	json_add_sender(out, by_signal ? &c->sender : &(struct sender){ .pid = 0 });
	text_add(out, "},\n");
}

static void add_record(const struct error_record *e, struct text *out)
{
	if (!e) {
		json_add_string(out, "error_file", NULL);
		return;
	}
	text_add(out, "\"error_file\":{");
	json_add_string(out, "message", e->message);
	text_add(out, ",");
	json_add_string(out, "traceback", e->traceback);
	text_add(out, ",");
	json_add_number(out, "timestamp", e->timestamp > 0, e->timestamp);
	text_add(out, ",");
	json_add_string(out, "raw", e->raw);
	text_add(out, ",");
	json_add_string(out, "raw_why", e->raw ? e->raw_why : NULL);
	text_add(out, "}");
}

/* The command line as one text. */
static void add_command_line(const struct report_input *in, struct text *out)
{
	enum { COMMAND_LINE_MAX = 131072 }; /* the kernel's bound of one word */
	struct text line = { 0 };
	bool known = report_command(in, COMMAND_LINE_MAX, &line);

	json_add_string(out, "command_line", known ? text_string(&line) : NULL);
	out->failed = out->failed || line.failed;
	text_done(&line);
}

static void add_culprit(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	const struct outcome *o = result_culprit(r);
	struct vec argv = { 0 };
	unsigned node;

	if (!o) {
		text_add(out, " \"culprit\":null,\n");
		return;
	}
	node = cause_node_of(in);
	text_printf(out, " \"culprit\":{\"rank\":%u,\"local_rank\":%u,\"node\":%u,\n  ", o->rank,
		o->local_rank, node);
	if (node == in->plan->node_rank) {
		plan_command(in->plan, o->local_rank, in->arena, &argv);
		json_add_words(out, "command", &argv);
	} else {
		json_add_string(out, "command", NULL);
	}
	text_add(out, ",");
	add_command_line(in, out);
	text_add(out, ",\n  ");
	json_add_string(out, "hint", report_hint(in));
	text_add(out, ",");
	add_record(in->record, out);
	text_add(out, ",\n  ");
	said_add_json(in, out);
	text_add(out, "},\n");
}

/* How it ended, in one word. */
static const char *how_word(const struct report_input *in, const struct outcome *o)
{
	if (o->end.how == ENDED_NONE && node_is_silent(in, o->node))
		return "not_known";
	return o->pid && o->end.how == ENDED_NONE ? "alive" : json_how_word(o->end.how);
}

static void add_worker(const struct report_input *in, const struct outcome *o, struct text *out)
{
	const struct result *r = in->result;
	bool together = worker_is_together(r, o);

	text_printf(out, "  {\"rank\":%u,\"local_rank\":%u,\"node\":%u,\"attempt\":%u,", o->rank,
		o->local_rank, node_rank_of(in, o->node), o->attempt);
	json_add_number(out, "pid", o->pid > 0, o->pid);
	text_add(out, ",");
	json_add_string(out, "how", how_word(in, o));
	text_add(out, ",");
	json_add_ending(out, o);
	text_add(out, ",");
	json_add_string(out, "blames", blames_words[o->blames]);
	text_printf(out, ",\"together\":%s,\n   \"ended_by_launchd\":%s,\"killed_by_launchd\":%s,",
		json_bool(together), json_bool(o->asked != ASKED_NOTHING),
		json_bool(o->asked == ASKED_KILLED));
	json_add_string(out, "asked_signal", o->asked_signal ? signal_name(o->asked_signal) : NULL);
	text_add(out, ",");
	json_add_seconds(out, "seconds_after_asked", o->asked_ns, o->ended_ns);
	text_add(out, ",\n   ");
	json_add_seconds(out, "started_seconds", r->started_ns, o->started_ns);
	text_add(out, ",");
	json_add_seconds(out, "ended_seconds", r->started_ns, o->ended_ns);
	text_add(out, ",");
	json_add_seconds(out, "seconds", o->started_ns, o->ended_ns);
	text_printf(out, ",\"left\":%u,\"left_killed\":%u}", o->left, o->left_killed);
}

static void add_survivors(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;

	text_printf(out,
		" \"left\":%u,\"left_killed\":%u,\"left_known\":%s,\n \"survivor_count\":%u,"
		"\"survivors\":[",
		r->left, r->left_killed, json_bool(!r->left_unknown), r->survivor_count);
	for (unsigned i = 0; i < r->survivor_count && i < SURVIVORS_MAX; i++) {
		const struct survivor *s = &r->survivors[i];
		const char state[] = { s->state, '\0' };

		text_printf(out, "%s\n  {\"pid\":%d,\"uid\":%u,", i ? "," : "", (int)s->pid,
			(unsigned)s->uid);
		json_add_string(out, "state", state);
		text_add(out, ",");
		json_add_string(out, "command",
			arena_strndup(
				in->arena, s->command, strnlen(s->command, sizeof s->command)));
		text_printf(out, ",\"node\":%u}", node_rank_of(in, s->node));
	}
	text_add(out, "]}\n");
}

static void add_node(struct text *out, unsigned rank, const struct node *node)
{
	uint64_t us = node->clock_error_ns / NS_PER_US;

	text_printf(out, "{\"rank\":%u,", rank);
	json_add_string(out, "name", *node->name ? node->name : NULL);
	text_printf(out, ",\"lost\":%s,\"lost_unsure\":%s,\"clock_error_seconds\":%llu.%06u}",
		json_bool(node->lost), json_bool(node->lost_unsure),
		(unsigned long long)(us / US_PER_S), (unsigned)(us % US_PER_S));
}

/* Those whose workers the report tells of. */
static void add_nodes(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	unsigned count = result_is_jobwide(r) ? r->node_count : 1;

	text_add(out, " \"nodes\":[");
	for (unsigned i = 0; i < count; i++) {
		struct node own = { 0 };

		(void)snprintf(own.name, sizeof own.name, "%s", in->hostname);
		text_add(out, i ? ",\n  " : "\n  ");
		if (result_is_jobwide(r))
			add_node(out, i, &r->nodes[i]);
		else
			add_node(out, in->plan->node_rank, &own);
	}
	text_add(out, "],\n ");
	add_numbers(out, "not_in_store", in->waiting, in->waiting_count);
	text_add(out, ",\n");
}

void report_json(const struct report_input *in, struct text *out)
{
	const struct result *r = in->result;
	bool first = true;

	text_printf(out, "{\"schema\":%d,\"launchd\":\"" LAUNCHD_VERSION "\",\n", SCHEMA);
	add_job(in, out);
	add_cause(in, out);
	add_culprit(in, out);
	add_nodes(in, out);
	text_add(out, " \"workers\":[");
	for (size_t i = 0; i < r->count; i++) {
		if (!worker_is_planned(in, &r->outcomes[i]))
			continue;
		text_add(out, first ? "\n" : ",\n");
		add_worker(in, &r->outcomes[i], out);
		first = false;
	}
	text_add(out, "],\n");
	add_survivors(in, out);
	if (arena_failed(in->arena))
		out->failed = true;
}
