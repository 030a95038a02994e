/* survey.c - see survey.h */
#include "daemon/run/survey.h"

#include "common/json.h"
#include "common/text.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/sight.h"
#include "daemon/plan/plan.h"
#include "daemon/run/state.h"

enum {
	LIMIT_MS =
		2000, /* for a node that is frozen, or can't be reached: others are shown without */
	SELF = 0,     /* this node's rank: no other one asks */
};

/* Frees what the last one needed. */
static void drop(struct survey *s)
{
	for (unsigned i = 0; i < s->nodes; i++)
		text_done(&s->said[i]);
	arena_done(&s->memory);
	s->nodes = s->count = s->awaited = 0;
}

/* Why there is no status of a node. */
static const char *why_none(const struct survey *s, unsigned i, const struct node_sight *n)
{
	switch (n->state) {
	case NODE_AWAITED:
		return "it has not joined";
	case NODE_LEFT:
		return "it has left: its workers have exited with 0";
	case NODE_LOST:
		return "it is lost";
	case NODE_ABSENT:
		return "it never joined: its workers run without the others' launchers";
	case NODE_JOINED:
	case NODE_ENDED:
	case NODE_STATES:
		break;
	}
	if (s->asked[i])
		return "its launcher has not answered within 2 s";
	return s->run->state == RUN_MEETING ? "it has joined; the nodes have not met" :
					      "its launcher's answer can't be used";
}

/* One that has not come has told no name; the list of nodes may have it. */
static const char *name_of(const struct survey *s, unsigned i, const struct node_sight *n)
{
	const struct plan *p = s->run->plan;

	if (n->name[0])
		return n->name;
	return p->node_names && i < p->nnodes ? p->node_names[i] : NULL;
}

static void add_node(const struct survey *s, unsigned i, const struct node_sight *n, struct json *j)
{
	if (s->said[i].len > 0) {
		json_raw(j, NULL, text_string(&s->said[i]));
		return;
	}
	json_object_begin(j, NULL);
	json_number(j, "node_rank", i);
	json_string(j, "host", name_of(s, i, n));
	json_string(j, "error", why_none(s, i, n));
	json_object_end(j);
}

static void add_nodes(const struct survey *s, size_t count, struct text *out)
{
	struct json j = { .out = out };

	json_object_begin(&j, NULL);
	json_array_begin(&j, "nodes");
	for (unsigned i = 0; i < count; i++) {
		add_node(s, i, &s->seen[i], &j);
		out->failed = out->failed || s->said[i].failed;
	}
	json_array_end(&j);
	json_object_end(&j);
}

/* Clients that are answered may ask again at once, which begins the next one. */
static void finish(struct survey *s)
{
	struct ctl_client *clients[CONTROL_ALL];
	size_t seen = sight_nodes(&s->run->member, s->seen, s->nodes);
	unsigned count = s->count;
	struct text result = { 0 };

	(void)uv_timer_stop(&s->limit);
	add_nodes(s, seen, &result);
	for (unsigned i = 0; i < count; i++)
		clients[i] = s->clients[i];
	drop(s);
	for (unsigned i = 0; i < count; i++)
		if (seen == 0)
			ctl_refuse(clients[i], CONTROL_OVER, "the job is over");
		else if (result.failed)
			ctl_refuse(clients[i], CONTROL_FAILED, "out of memory");
		else
			ctl_answer(clients[i], text_string(&result));
	text_done(&result);
}

static void on_limit(uv_timer_t *t)
{
	finish(t->data);
}

/* This node is asked as the others are. */
static void begin(struct survey *s)
{
	s->query++;
	s->awaited = (unsigned)member_query(&s->run->member, s->query, s->asked) + 1;
	s->asked[SELF] = true;
	uv_update_time(&s->run->loop);
	(void)uv_timer_start(&s->limit, on_limit, LIMIT_MS, 0);
	s->ask_self(s->owner, s->query);
}

/* Memory for a round, and who is to be asked. False: there is none, and the client is told. */
static bool prepare(struct survey *s, struct ctl_client *c)
{
	const struct run *r = s->run;
	const struct plan *p = r->plan;
	size_t seen = 0;

	s->asked = arena_alloc(&s->memory, p->nnodes * sizeof *s->asked);
	s->said = arena_alloc(&s->memory, p->nnodes * sizeof *s->said);
	s->seen = arena_alloc(&s->memory, p->nnodes * sizeof *s->seen);
	s->nodes = arena_failed(&s->memory) ? 0 : p->nnodes;
	if (s->nodes > 0)
		seen = sight_nodes(&r->member, s->seen, s->nodes);
	if (s->nodes == 0)
		ctl_refuse(c, CONTROL_FAILED, "out of memory");
	else if (r->state == RUN_OVER)
		ctl_refuse(c, CONTROL_OVER, "the job is over");
	else if (seen == 0 && r->state == RUN_MEETING)
		ctl_refuse(c, CONTROL_NOT_NOW, "the nodes have not met");
	else if (seen == 0)
		ctl_refuse(c, CONTROL_ELSEWHERE,
			arena_printf(&s->memory,
				"this is node %u: only node 0's launcher, at %s, can ask all nodes",
				p->node_rank, p->master_addr));
	else if (seen < s->nodes)
		ctl_refuse(c, CONTROL_UNAVAILABLE,
			"this job's launchers have no control channel: each node is to be asked "
			"by itself");
	else
		return true;
	drop(s);
	return false;
}

void survey_join(struct survey *s, struct ctl_client *c)
{
	bool first = s->count == 0;

	if (first && !prepare(s, c))
		return;
	s->clients[s->count++] = c; /* each has one request at a time: there is room */
	if (first)
		begin(s);
}

void survey_told(struct survey *s, unsigned node, const struct message_status *told)
{
	struct text *said;

	if (s->count == 0 || told->query != s->query || node >= s->nodes || !s->asked[node])
		return;
	said = &s->said[node];
	s->asked[node] = false;
	text_add_bytes(said, told->at, told->len);
	if (said->len > 0 && !ctl_server_takes(s->server, said->at, said->len))
		text_done(said);
	if (--s->awaited == 0)
		finish(s);
}

void survey_enter(struct survey *s)
{
	(void)uv_timer_init(&s->run->loop, &s->limit); /* can't fail */
	s->limit.data = s;
}

void survey_leave(struct survey *s)
{
	drop(s);
	uv_close((uv_handle_t *)&s->limit, NULL);
}
