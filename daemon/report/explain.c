/* explain.c - see explain.h */
#include "daemon/report/explain.h"

#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"

/* What an attempt will choose when it starts. */
static struct attempt attempt_shown(const struct plan *plan, struct arena *arena)
{
	return (struct attempt){
		.master_port = plan->master_port ? arena_printf(arena, "%u", plan->master_port) :
						   "<a free port>",
		.run_dir = "<run directory>",
	};
}

/* One decided value. */
struct fact_row {
	const char *name, *value, *from;
};

enum { FACT_ROWS = 11 };

static void fact_rows(const struct explained *e, struct arena *a, struct fact_row ret[FACT_ROWS])
{
	const struct topology *t = e->topology;
	const struct plan *p = e->plan;
	const char *all = "nproc_per_node of every node";
	const char *started_by = t->launcher != LAUNCHER_NONE ? launcher_name(t->launcher) :
		e->facts->under_systemd                       ? "systemd" :
								"a user or script";
	struct attempt attempt = attempt_shown(p, a);
	const struct fact_row rows[FACT_ROWS] = {
		{ "nnodes", arena_printf(a, "%u", p->nnodes), t->identity.nnodes_from },
		{ "node_rank", arena_printf(a, "%u", p->node_rank), t->identity.node_rank_from },
		{ "nproc_per_node", arena_printf(a, "%u", p->nproc), t->nproc_from },
		{ "world_size", arena_printf(a, "%u", p->world_size), all },
		{ "first_rank", arena_printf(a, "%u", p->first_rank), all },
		{ "master_addr", p->master_addr, t->master.addr_from },
		{ "master_port", attempt.master_port, t->master.port_from },
		{ "run_id", p->run_id,
			settings_where(e->settings,
				settings_flag(e->settings, SET_STANDALONE) ? SET_STANDALONE :
									     SET_RDZV_ID) },
		{ "program", p->program, e->facts->program.from },
		{ "stdin", p->stdio[0].how == STDIO_FILE ? p->stdio[0].path : "inherited",
			settings_number(e->settings, SET_STDIN) != 0 ||
					p->stdio[0].how != STDIO_FILE ?
				settings_where(e->settings, SET_STDIN) :
				started_by },
		{ "started_by", started_by, "environment" },
	};

	memcpy(ret, rows, sizeof rows);
}

/* Settings worth a line: all that have a value and ask for no act. */
static bool is_shown(const struct settings *s, int id)
{
	const struct value *v = &s->value[id];
	bool limited = setting_rows[id].standing != STANDS;

	if (setting_rows[id].only_flag && id != SET_CONFIG)
		return false;
	return v->from.level > (limited ? LEVEL_PRESET : LEVEL_NONE);
}

static void add_notes(const struct explained *e, struct text *out)
{
	for (const struct note *n = e->notes->first; n; n = n->next)
		text_printf(out, "  %s: %s\n", note_word(n->level), n->text);
}

static void add_command(const struct vec *argv, struct text *out)
{
	for (size_t i = 0; i < argv->count; i++) {
		text_add(out, i ? " " : "");
		text_add_shell(out, argv->at[i]);
	}
}

static const char *const how_words[ENV_HOW_COUNT] = {
	[ENV_SET] = "set",
	[ENV_REWRITTEN] = "rewritten",
	[ENV_REMOVED] = "removed",
};

static void add_edit(const struct env_edit *edit, struct text *out)
{
	size_t start;

	text_printf(out, "    %-9s ", how_words[edit->how]);
	start = out->len;
	text_add(out, edit->name);
	if (edit->value) {
		text_add(out, "=");
		text_add_shell(out, edit->value);
	}
	text_printf(out, "%*s  (%s)\n", out->len - start < 44 ? (int)(44 - (out->len - start)) : 0,
		"", edit->why);
}

/* Whether an edit is the same for all workers, so that it is shown once. */
static bool is_common(const struct explained *e, const struct env_edit *edit, size_t index,
	const struct env_edits *of_worker)
{
	for (unsigned i = 0; i < e->plan->nproc; i++) {
		const struct env_edit *other = &of_worker[i].at[index];

		if (index >= of_worker[i].count || strcmp(other->name, edit->name) != 0 ||
			(other->value == NULL) != (edit->value == NULL) ||
			(edit->value && strcmp(other->value, edit->value) != 0))
			return false;
	}
	return true;
}

static void add_workers(const struct explained *e, const struct env_edits *edits,
	struct arena *arena, struct text *out)
{
	const struct plan *p = e->plan;

	text_add(out, "\nEnvironment of every worker\n");
	for (size_t k = 0; k < edits[0].count; k++)
		if (is_common(e, &edits[0].at[k], k, edits))
			add_edit(&edits[0].at[k], out);
	for (unsigned i = 0; i < p->nproc; i++) {
		struct vec argv = { 0 };

		text_printf(out, "\nWorker rank %u, local rank %u\n    command   ",
			plan_rank(p, i).rank, i);
		plan_command(p, i, arena, &argv);
		add_command(&argv, out);
		text_add(out, "\n");
		for (size_t k = 0; k < edits[i].count; k++)
			if (!is_common(e, &edits[i].at[k], k, edits))
				add_edit(&edits[i].at[k], out);
	}
}

/* The edits of all workers; NULL: out of memory. */
static struct env_edits *all_edits(const struct plan *plan, struct arena *arena)
{
	struct env_edits *edits = arena_alloc(arena, plan->nproc * sizeof *edits);
	struct attempt attempt = attempt_shown(plan, arena);

	for (unsigned i = 0; edits && i < plan->nproc; i++)
		plan_environment(plan, i, &attempt, arena, &edits[i]);
	return arena_failed(arena) ? NULL : edits;
}

void explain_text(const struct explained *e, struct arena *arena, struct text *out)
{
	const struct env_edits *edits = all_edits(e->plan, arena);
	struct fact_row rows[FACT_ROWS];

	fact_rows(e, arena, rows);
	text_add(out, "Dry run: nothing is started.\n\nJob\n");
	for (int i = 0; i < FACT_ROWS; i++)
		text_printf(
			out, "  %-16s %-24s  (%s)\n", rows[i].name, rows[i].value, rows[i].from);
	text_add(out, "\nSettings\n");
	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(e->settings, id))
			text_printf(out, "  %-20s %-20s  (%s)\n", setting_rows[id].flag,
				*e->settings->value[id].text ? e->settings->value[id].text : "\"\"",
				e->settings->value[id].from.where);
	if (e->notes->first)
		text_add(out, "\nNotes\n");
	add_notes(e, out);
	if (edits)
		add_workers(e, edits, arena, out);
	else
		out->failed = true;
}

static void add_json_pair(struct text *out, const char *name, const char *value, bool *first)
{
	text_add(out, *first ? "" : ",");
	*first = false;
	text_add_json(out, name);
	text_add(out, ":");
	text_add_json(out, value);
}

static void add_json_value(
	struct text *out, const char *name, const char *value, const char *from, bool *first)
{
	bool inner = true;

	text_add(out, *first ? "\n  " : ",\n  ");
	*first = false;
	text_add_json(out, name);
	text_add(out, ":{");
	add_json_pair(out, "value", value, &inner);
	add_json_pair(out, "source", from, &inner);
	text_add(out, "}");
}

static void add_json_worker(const struct explained *e, unsigned i, const struct env_edits *edits,
	struct arena *arena, struct text *out)
{
	struct vec argv = { 0 };

	plan_command(e->plan, i, arena, &argv);
	text_printf(out, "%s\n  {\"rank\":%u,\"local_rank\":%u,\"command\":[", i ? "," : "",
		plan_rank(e->plan, i).rank, i);
	for (size_t k = 0; k < argv.count; k++) {
		text_add(out, k ? "," : "");
		text_add_json(out, argv.at[k]);
	}
	text_add(out, "],\"environment\":[");
	for (size_t k = 0; k < edits->count; k++) {
		const struct env_edit *edit = &edits->at[k];
		bool first = true;

		text_add(out, k ? ",\n    {" : "\n    {");
		add_json_pair(out, "name", edit->name, &first);
		add_json_pair(out, "change", how_words[edit->how], &first);
		add_json_pair(out, "value", edit->value, &first);
		add_json_pair(out, "why", edit->why, &first);
		text_add(out, "}");
	}
	text_add(out, "]}");
}

static void add_json_notes(const struct explained *e, struct text *out)
{
	static const char *const words[] = { "verbose", "note", "warning" };

	for (const struct note *n = e->notes->first; n; n = n->next) {
		bool first = true;

		text_add(out, n == e->notes->first ? "\n  {" : ",\n  {");
		add_json_pair(out, "level", words[n->level], &first);
		add_json_pair(out, "text", n->text, &first);
		text_add(out, "}");
	}
}

void explain_json(const struct explained *e, struct arena *arena, struct text *out)
{
	const struct env_edits *edits = all_edits(e->plan, arena);
	struct fact_row rows[FACT_ROWS];
	bool first = true;

	if (!edits) {
		out->failed = true;
		return;
	}
	fact_rows(e, arena, rows);
	text_add(out, "{\"schema\":1,\n \"job\":{");
	for (int i = 0; i < FACT_ROWS; i++)
		add_json_value(out, rows[i].name, rows[i].value, rows[i].from, &first);
	text_add(out, "},\n \"settings\":{");
	first = true;
	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(e->settings, id))
			add_json_value(out, setting_rows[id].flag, e->settings->value[id].text,
				e->settings->value[id].from.where, &first);
	text_add(out, "},\n \"notes\":[");
	add_json_notes(e, out);
	text_add(out, "],\n \"workers\":[");
	for (unsigned i = 0; i < e->plan->nproc; i++)
		add_json_worker(e, i, &edits[i], arena, out);
	text_add(out, "]}\n");
}
