/* explain.c - see explain.h */
#include "daemon/report/explain.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/report/explain_facts.h"
#include "daemon/report/explain_output.h"

/* The signals worth a line of their own, those that end the job first; the rest are forwarded. */
static size_t shown_signals(const struct plan *p, int ret[REACTION_SIGNALS])
{
	static const enum reaction_kind order[] = { REACTION_END, REACTION_STOP, REACTION_SUSPEND,
		REACTION_RESUME, REACTION_REOPEN, REACTION_IGNORE, REACTION_FORWARD };
	size_t count = 0;

	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (int n = 1; n < REACTION_SIGNALS; n++) {
			const struct reaction *r = &p->reactions.of[n];

			if (r->kind == order[i] && (r->kind != REACTION_FORWARD || r->named))
				ret[count++] = n;
		}
	return count;
}

static void add_signals(const struct explained *e, struct text *out)
{
	int shown[REACTION_SIGNALS];
	size_t count = shown_signals(e->plan, shown);

	text_add(out, "\nSignals\n");
	for (size_t i = 0; i < count; i++) {
		const struct reaction *r = &e->plan->reactions.of[shown[i]];
		bool ends = r->kind == REACTION_END || r->kind == REACTION_STOP;
		char grace[NUM_SECONDS_SIZE];
		size_t start = out->len;

		num_print_seconds(r->grace_ms, grace);
		text_printf(out, "  %-16s %s", signal_name(shown[i]), reaction_word(r->kind));
		if (ends)
			text_printf(out, " within %s s", grace);
		text_printf(out, "%*s  (%s)\n",
			out->len - start < 62 ? (int)(62 - (out->len - start)) : 0, "", r->from);
	}
	text_printf(out, "  %-16s %-43s  (default)\n", "others", reaction_word(REACTION_FORWARD));
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

/* The local ranks that are started: from the first up to the end. */
static unsigned first_local(const struct plan *p)
{
	return p->start_first;
}

static unsigned end_local(const struct plan *p)
{
	return p->start_first + p->start_count;
}

/* Whether an edit is the same for all workers, so that it is shown once. */
static bool is_common(const struct explained *e, const struct env_edit *edit, size_t index,
	const struct env_edits *of_worker)
{
	for (unsigned i = first_local(e->plan); i < end_local(e->plan); i++) {
		const struct env_edit *other = &of_worker[i].at[index];

		if (index >= of_worker[i].count || strcmp(other->name, edit->name) != 0 ||
			(other->value == NULL) != (edit->value == NULL) ||
			(edit->value && strcmp(other->value, edit->value) != 0))
			return false;
	}
	return true;
}

static bool ranks_are_known(const struct explained *e)
{
	return e->topology->identity.node_rank_known;
}

static void add_rank(
	const struct explained *e, unsigned local_rank, const char *unknown, struct text *out)
{
	if (ranks_are_known(e))
		text_printf(out, "%u", plan_rank(e->plan, local_rank).rank);
	else
		text_add(out, unknown);
}

static void add_workers(const struct explained *e, const struct env_edits *edits,
	struct arena *arena, struct text *out)
{
	const struct plan *p = e->plan;
	struct attempt attempt = explain_attempt(e, arena);

	if (p->start_count == 0)
		return;
	text_add(out, "\nEnvironment of every worker\n");
	for (size_t k = 0; k < edits[first_local(p)].count; k++)
		if (is_common(e, &edits[first_local(p)].at[k], k, edits))
			add_edit(&edits[first_local(p)].at[k], out);
	for (unsigned i = first_local(p); i < end_local(p); i++) {
		struct vec argv = { 0 };

		text_add(out, "\nWorker rank ");
		add_rank(e, i, EXPLAIN_BY_MEETING, out);
		text_printf(out, ", local rank %u\n    command   ", i);
		plan_command(p, i, arena, &argv);
		add_command(&argv, out);
		text_add(out, "\n");
		explain_streams_text(p, i, &attempt, out);
		for (size_t k = 0; k < edits[i].count; k++)
			if (!is_common(e, &edits[i].at[k], k, edits))
				add_edit(&edits[i].at[k], out);
	}
}

/* Ranks that the plan has had to take for those of node rank 0. */
static void hide_ranks(struct env_edits *edits)
{
	static const char *const names[] = { "RANK", "NODE_RANK", "GROUP_RANK", "ROLE_RANK" };

	for (size_t k = 0; k < edits->count; k++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strcmp(edits->at[k].name, names[i]) == 0 && edits->at[k].value)
				edits->at[k].value = EXPLAIN_BY_MEETING;
}

/* The edits of all workers; NULL: out of memory. */
static struct env_edits *all_edits(const struct explained *e, struct arena *arena)
{
	struct env_edits *edits = arena_alloc(arena, e->plan->nproc * sizeof *edits);
	struct attempt attempt = explain_attempt(e, arena);
	struct plan shown = *e->plan;

	if (!shown.master_addr)
		shown.master_addr = EXPLAIN_BY_MEETING;
	for (unsigned i = 0; edits && i < shown.nproc; i++) {
		plan_environment(&shown, i, &attempt, arena, &edits[i]);
		if (!ranks_are_known(e))
			hide_ranks(&edits[i]);
	}
	return arena_failed(arena) ? NULL : edits;
}

void explain_text(const struct explained *e, struct arena *arena, struct text *out)
{
	const struct env_edits *edits = all_edits(e, arena);
	struct explained_facts facts = { 0 };

	explain_facts(e, arena, &facts);
	text_add(out, "Dry run: nothing is started.\n\nJob\n");
	for (size_t i = 0; i < facts.count; i++)
		text_printf(out, "  %-16s %-24s  (%s)\n", facts.at[i].name, facts.at[i].value,
			facts.at[i].from);
	text_add(out, "\nSettings\n");
	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(e->settings, id))
			text_printf(out, "  %-24s %-20s  (%s)\n", setting_rows[id].flag,
				*e->settings->value[id].text ? e->settings->value[id].text : "\"\"",
				e->settings->value[id].from.where);
	add_signals(e, out);
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
	struct attempt attempt = explain_attempt(e, arena);
	struct vec argv = { 0 };

	plan_command(e->plan, i, arena, &argv);
	text_add(out, i > first_local(e->plan) ? ",\n  {\"rank\":" : "\n  {\"rank\":");
	add_rank(e, i, "null", out);
	text_printf(out, ",\"local_rank\":%u,\"command\":[", i);
	for (size_t k = 0; k < argv.count; k++) {
		text_add(out, k ? "," : "");
		text_add_json(out, argv.at[k]);
	}
	text_add(out, "],\n   ");
	explain_streams_json(e->plan, i, &attempt, out);
	text_add(out, ",\n   \"environment\":[");
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

static void add_json_signals(const struct explained *e, struct arena *arena, struct text *out)
{
	int shown[REACTION_SIGNALS];
	size_t count = shown_signals(e->plan, shown);
	bool first = true;

	for (size_t i = 0; i < count; i++) {
		const struct reaction *r = &e->plan->reactions.of[shown[i]];

		add_json_value(
			out, signal_name(shown[i]), reaction_action(arena, r), r->from, &first);
	}
	add_json_value(out, "others", "forward", "default", &first);
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
	const struct env_edits *edits = all_edits(e, arena);
	struct explained_facts facts = { 0 };
	bool first = true;

	if (!edits) {
		out->failed = true;
		return;
	}
	explain_facts(e, arena, &facts);
	text_add(out, "{\"schema\":1,\n \"job\":{");
	for (size_t i = 0; i < facts.count; i++)
		add_json_value(out, facts.at[i].name, facts.at[i].value, facts.at[i].from, &first);
	text_add(out, "},\n \"settings\":{");
	first = true;
	for (int id = 0; id < SETTING_COUNT; id++)
		if (is_shown(e->settings, id))
			add_json_value(out, setting_rows[id].flag, e->settings->value[id].text,
				e->settings->value[id].from.where, &first);
	text_add(out, "},\n \"signals\":{");
	add_json_signals(e, arena, out);
	text_add(out, "},\n \"notes\":[");
	add_json_notes(e, out);
	text_add(out, "],\n \"workers\":[");
	for (unsigned i = first_local(e->plan); i < end_local(e->plan); i++)
		add_json_worker(e, i, &edits[i], arena, out);
	text_add(out, "]}\n");
}
