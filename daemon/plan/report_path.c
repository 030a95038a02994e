/* report_path.c - where --report and --events go; see decide.h */
#include "daemon/plan/decide.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

/* What the letter after a '%' stands for; NULL: nothing. */
static const char *value_of(char letter, const struct facts *facts, const char *node_rank)
{
	switch (letter) {
	case 'n':
		return node_rank;
	case 'h':
		return facts->hostname;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

/* The setting's file on this node; NULL: another node writes it. `holds` says what one file holds
 * where only node rank 0 writes it. */
static int node_path(const struct settings *s, enum setting_id id, const char *holds,
	const struct facts *facts, const struct plan *p, const char **ret, struct notes *notes,
	struct failure *why)
{
	const char *text = settings_text(s, id);
	const char *where = settings_where(s, id);
	const char *number = arena_printf(s->arena, "%u", p->node_rank);
	const char *path = "";
	bool of_this_node = false;

	for (const char *at = text; *at;) {
		size_t plain = strcspn(at, "%");
		const char *value = at[plain] ? value_of(at[plain + 1], facts, number) : "";

		if (!value)
			return failure_usage(why,
				"%s: \"%s\" has a \"%.2s\", which means nothing: %%n is the node rank, %%h the host's name, %%%% a percent sign",
				where, text, at + plain);
		of_this_node |= at[plain] && at[plain + 1] != '%';
		path = arena_printf(s->arena, "%s%.*s%s", path, (int)plain, at, value);
		at += at[plain] ? plain + 2 : plain;
	}
	if (p->nnodes > 1 && !of_this_node)
		notes_add(notes, NOTE_VERBOSE,
			"%s: only node rank 0 writes %s, %s; with %%n (the node rank) in the name "
			"each node writes its own",
			where, path, holds);
	if (p->node_rank == 0 || p->nnodes == 1 || of_this_node)
		*ret = path;
	return 0;
}

int decide_report(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why)
{
	if (!settings_text(s, SET_REPORT))
		return 0;
	return node_path(s, SET_REPORT,
		arena_printf(s->arena, "which covers all %u nodes", p->nnodes), facts, p,
		&p->report_path, notes, why);
}

int decide_events(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why)
{
	const char *text = settings_text(s, SET_EVENTS);
	uint64_t fd;

	if (!text)
		return 0;
	if (strncmp(text, "fd:", 3) != 0)
		return node_path(s, SET_EVENTS, "what it sees", facts, p, &p->output.events_path,
			notes, why);
	if (num_parse(text + 3, 0, INT_MAX, &fd) < 0)
		return failure_usage(why,
			"%s: \"%s\" has no descriptor number after \"fd:\"; for a file of that name write ./%s",
			settings_where(s, SET_EVENTS), text, text);
	p->output.events_fd = (int)fd;
	return 0;
}
