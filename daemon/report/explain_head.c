/* explain_head.c - see explain_head.h */
#include "daemon/report/explain_head.h"

#include "common/arena.h"
#include "common/json.h"
#include "common/notes.h"
#include "common/text.h"
#include "config/hosts.h"
#include "config/settings.h"
#include "daemon/plan/head_node.h"
#include "daemon/report/explain.h"

/* A host's number of workers, and what decides it. */
static const char *workers_on(const struct explained_head *e, const struct host *h,
	struct arena *arena, const char **ret_from)
{
	if (!e->plan->slots) {
		*ret_from = settings_where(e->settings, SET_NPROC_PER_NODE);
		return settings_text(e->settings, SET_NPROC_PER_NODE);
	}
	*ret_from = arena_printf(arena, "%s: slots", h->where);
	return arena_printf(arena, "%u", h->slots);
}

void explain_head_text(const struct explained_head *e, struct arena *arena, struct text *out)
{
	const struct head_plan *p = e->plan;
	const char *from;

	text_printf(out, "Dry run: nothing is started.\n\nJob\n  %-16s %-24zu  (%s)\n", "nnodes",
		e->hosts->count, e->hosts_from);
	if (p->kill_from)
		text_printf(out, "  %-16s %-24llu  (%s)\n", "mpirun_grace",
			(unsigned long long)p->kill_s, p->kill_from);
	text_add(out, "\nWorkers of each node\n");
	for (size_t i = 0; i < e->hosts->count; i++) {
		const struct host *h = &e->hosts->at[i];
		const char *workers = workers_on(e, h, arena, &from);

		text_printf(out, "  %-16s %-24s  (%s)\n", h->name, workers, from);
	}
	if (e->notes->first)
		text_add(out, "\nNotes\n");
	for (const struct note *n = e->notes->first; n; n = n->next)
		text_printf(out, "  %s: %s\n", note_word(n->level), n->text);
	text_add(out, "\nCommand\n ");
	for (size_t i = 0; i < p->argv.count; i++) {
		text_add(out, " ");
		text_add_shell(out, p->argv.at[i]);
	}
	text_add(out, "\n");
}

static void json_value(struct json *j, const char *name, const char *value, const char *from)
{
	json_object_begin(j, name);
	json_string(j, "value", value);
	json_string(j, "source", from);
	json_object_end(j);
}

void explain_head_json(const struct explained_head *e, struct arena *arena, struct text *out)
{
	static const char *const words[] = { "verbose", "note", "warning" };
	struct json j = { .out = out, .lines = true };
	const char *from;

	json_object_begin(&j, NULL);
	json_number(&j, "schema", EXPLAIN_SCHEMA);
	json_object_begin(&j, "job");
	json_value(&j, "nnodes", arena_printf(arena, "%zu", e->hosts->count), e->hosts_from);
	if (e->plan->kill_from)
		json_value(&j, "mpirun_grace",
			arena_printf(arena, "%llu", (unsigned long long)e->plan->kill_s),
			e->plan->kill_from);
	json_object_end(&j);
	json_array_begin(&j, "notes");
	for (const struct note *n = e->notes->first; n; n = n->next) {
		json_object_begin(&j, NULL);
		json_string(&j, "level", words[n->level]);
		json_string(&j, "text", n->text);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array_begin(&j, "nodes");
	for (size_t i = 0; i < e->hosts->count; i++) {
		const char *workers = workers_on(e, &e->hosts->at[i], arena, &from);

		json_object_begin(&j, NULL);
		json_string(&j, "host", e->hosts->at[i].name);
		json_value(&j, "nproc_per_node", workers, from);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_strings(&j, "command", &e->plan->argv);
	json_object_end(&j);
	text_add(out, "\n");
}
