/* explain_facts.c - see explain_facts.h */
#include "daemon/report/explain_facts.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain.h"
#include "daemon/report/explain_output.h"

struct attempt explain_attempt(const struct explained *e, struct arena *arena)
{
	const struct plan *p = e->plan;
	const char *tree = explain_log_tree(p, arena);
	bool known = p->master_port && !(p->nnodes > 1 && e->topology->control.takes_master_port);

	return (struct attempt){
		.master_port = known  ? arena_printf(arena, "%u", p->master_port) :
			p->nnodes > 1 ? EXPLAIN_BY_MEETING :
					"<a free port>",
		.run_dir = "<run directory>",
		.log_dir = tree ? arena_printf(arena, "%s/attempt_0", tree) : NULL,
	};
}

static void add_fact(
	struct explained_facts *t, const char *name, const char *value, const char *from)
{
	assert(t->count < sizeof t->at / sizeof *t->at);
	t->at[t->count++] = (struct explained_fact){ name, value, from };
}

static const char *number(struct arena *a, unsigned n)
{
	return arena_printf(a, "%u", n);
}

/* "0-7", "3" or "none" */
static const char *started_ranks(const struct plan *p, struct arena *a)
{
	unsigned first = p->first_rank + p->start_first;

	return p->start_count == 0  ? "none" :
		p->start_count == 1 ? number(a, first) :
				      arena_printf(a, "%u-%u", first, first + p->start_count - 1);
}

/* "10.0.0.4:29501", "[fe80::1]:29501", "by PMIx" */
static const char *control_shown(const struct control *c, struct arena *a)
{
	bool v6 = c->addr && strchr(c->addr, ':');

	switch (c->how) {
	case CONTROL_NONE:
		break;
	case CONTROL_STATIC:
		return arena_printf(a, "%s%s%s:%u", v6 ? "[" : "", c->addr, v6 ? "]" : "", c->port);
	case CONTROL_PMIX:
		return "by PMIx";
	}
	return "none";
}

/* "3", "3, the first after 5 s" */
static const char *restarts_shown(const struct plan *p, struct arena *a)
{
	char delay[NUM_SECONDS_SIZE];

	if (p->restart_delay_ms == 0)
		return number(a, p->max_restarts);
	num_print_seconds(p->restart_delay_ms, delay);
	return arena_printf(a, "%u, the first after %s s", p->max_restarts, delay);
}

static void add_output(const struct explained *e, struct arena *a, struct explained_facts *t)
{
	const struct settings *s = e->settings;
	const struct output_plan *o = &e->plan->output;
	/* with none of the three there is no tree */
	enum setting_id asked = o->log_dir       ? SET_LOG_DIR :
		settings_given(s, SET_REDIRECTS) ? SET_REDIRECTS :
						   SET_TEE;

	if (o->tree)
		add_fact(t, "logs", explain_log_tree(e->plan, a), settings_where(s, asked));
	if (o->events_path)
		add_fact(t, "events", o->events_path, settings_where(s, SET_EVENTS));
	if (o->events_fd >= 0)
		add_fact(t, "events", arena_printf(a, "fd:%d", o->events_fd),
			settings_where(s, SET_EVENTS));
}

/* What only some jobs have. */
static void add_rare_facts(const struct explained *e, struct arena *a, struct explained_facts *t)
{
	const struct plan *p = e->plan;
	char grace[NUM_SECONDS_SIZE];

	if (p->wrap.count > 0)
		add_fact(t, "wrapper", p->wrapper ? p->wrapper : "not found, not needed here",
			settings_where(e->settings, SET_WRAP));
	if (p->nnodes > 1)
		add_fact(t, "control", control_shown(&e->topology->control, a),
			e->topology->control.from);
	if (e->key)
		add_fact(t, "key", e->key,
			settings_given(e->settings, SET_KEY_FILE) ?
				settings_where(e->settings, SET_KEY_FILE) :
				"environment");
	if (p->max_restarts > 0)
		add_fact(t, "restarts", restarts_shown(p, a),
			settings_where(e->settings, SET_MAX_RESTARTS));
	if (p->torch_version)
		add_fact(t, "torch", p->torch_version, p->program);
	if (p->report_path)
		add_fact(t, "report", p->report_path, settings_where(e->settings, SET_REPORT));
	add_output(e, a, t);
	num_print_seconds(p->mpirun_grace_ms, grace);
	if (p->mpirun_grace_from)
		add_fact(t, "mpirun_grace", arena_strdup(a, grace), p->mpirun_grace_from);
}

void explain_facts(const struct explained *e, struct arena *a, struct explained_facts *t)
{
	const struct topology *top = e->topology;
	const struct settings *s = e->settings;
	const struct plan *p = e->plan;
	const char *all = "nproc_per_node of every node";
	const char *started_by = top->launcher != LAUNCHER_NONE ? launcher_name(top->launcher) :
		e->facts->under_systemd                         ? "systemd" :
								  "a user or script";
	bool no_input = p->input.how == STDIO_FILE, known = top->identity.node_rank_known;

	add_fact(t, "nnodes", number(a, p->nnodes), top->identity.nnodes_from);
	add_fact(t, "node_rank", known ? number(a, p->node_rank) : EXPLAIN_BY_MEETING,
		top->identity.node_rank_from);
	add_fact(t, "nproc_per_node", number(a, p->nproc), top->nproc_from);
	add_fact(t, "world_size", number(a, p->world_size), all);
	add_fact(t, "first_rank", known ? number(a, p->first_rank) : EXPLAIN_BY_MEETING, all);
	add_fact(t, "started_ranks", known ? started_ranks(p, a) : EXPLAIN_BY_MEETING,
		settings_given(s, SET_ONLY_RANK) ? settings_where(s, SET_ONLY_RANK) :
						   top->nproc_from);
	add_fact(t, "master_addr", p->master_addr ? p->master_addr : EXPLAIN_BY_MEETING,
		top->master.addr_from);
	add_fact(t, "master_port", explain_attempt(e, a).master_port, top->master.port_from);
	add_fact(t, "run_id", p->run_id,
		settings_where(s, settings_flag(s, SET_STANDALONE) ? SET_STANDALONE : SET_RDZV_ID));
	add_fact(t, "store", p->store == STORE_AGENT ? "agent" : "rank0", p->store_from);
	add_fact(t, "program", p->program, e->facts->program.from);
	add_fact(t, "stdin", no_input ? p->input.path : "inherited",
		settings_number(s, SET_STDIN) != 0 || !no_input ? settings_where(s, SET_STDIN) :
			e->facts->background                    ? "a background job" :
								  started_by);
	add_fact(t, "started_by", started_by, "environment");
	add_rare_facts(e, a, t);
}
