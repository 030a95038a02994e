/* report_path.c - where --report goes; see decide.h */
#include "daemon/plan/decide.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

/* What the letter behind a '%' stands for; NULL: nothing. */
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

int decide_report(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why)
{
	const char *text = settings_text(s, SET_REPORT);
	const char *where = settings_where(s, SET_REPORT);
	const char *number = arena_printf(s->arena, "%u", p->node_rank);
	const char *path = "";
	bool of_this_node = false;

	if (!text)
		return 0;
	for (const char *at = text; *at;) {
		size_t plain = strcspn(at, "%");
		const char *value = at[plain] ? value_of(at[plain + 1], facts, number) : "";

		if (!value)
			return failure_set(why, -EINVAL,
				"%s: \"%s\" has a \"%.2s\", which stands for nothing: %%n is the node "
				"rank, %%h the host's name, %%%% a percent sign",
				where, text, at + plain);
		of_this_node |= at[plain] && at[plain + 1] != '%';
		path = arena_printf(s->arena, "%s%.*s%s", path, (int)plain, at, value);
		at += at[plain] ? plain + 2 : plain;
	}
	if (p->nnodes > 1 && !of_this_node)
		notes_add(notes, NOTE_VERBOSE,
			"%s: only node rank 0 writes %s, which tells of all %u nodes; with %%n (the "
			"node rank) in the name each node writes its own",
			where, path, p->nnodes);
	if (p->node_rank == 0 || p->nnodes == 1 || of_this_node)
		p->report_path = path;
	return 0;
}
