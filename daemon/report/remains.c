/* remains.c - see remains.h */
#include "daemon/report/remains.h"

#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/report/nodes.h"
#include "daemon/report/report.h"

/* "2 processes behind; launchd killed 1 of them" */
static void add_left(struct text *out, unsigned left, unsigned killed, bool each)
{
	text_printf(
		out, "%u process%s behind%s; ", left, left == 1 ? "" : "es", each ? " each" : "");
	if (killed == 0)
		text_printf(out, "%s ended after launchd's SIGTERM\n", left == 1 ? "it" : "they");
	else if (killed >= left)
		text_printf(out, "launchd killed %s\n", left == 1 ? "it" : "them");
	else
		text_printf(out, "launchd killed %u of them\n", killed);
}

/* The workers that left as much behind as the first one; 0: one before it spoke for it. */
static size_t same_left(const struct result *r, size_t first, const struct outcome **list)
{
	const struct outcome *model = &r->outcomes[first];
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o->left != model->left || o->left_killed != model->left_killed)
			continue;
		if (i < first)
			return 0;
		list[count++] = o;
	}
	return count;
}

static void add_survivor(const struct report_input *in, const struct survivor *s, struct text *out)
{
	text_add(out, "launchd: warning: still alive");
	if (result_is_jobwide(in->result))
		host_add(in, s->node, out);
	text_printf(out, ": pid %d (", (int)s->pid);
	text_add_shown(out, s->command, strnlen(s->command, sizeof s->command));
	text_printf(out, ", uid %u): ", (unsigned)s->uid);
	if (s->state == 'D')
		text_add(out,
			"stuck in the kernel (state D); it ends when its system call returns\n");
	else if (s->uid != in->uid && in->uid != 0)
		text_add(out, "belongs to another user, so launchd may not end it\n");
	else
		text_printf(out, "could not be ended (state %c)\n", s->state);
}

/* The lines about workers that are known by name. */
static void add_each(const struct report_input *in, bool worst_only, const char *level,
	const struct outcome **list, struct text *out)
{
	enum { LINES_MAX = 16 };
	const struct result *r = in->result;
	size_t lines = 0, more = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];
		size_t count =
			o->left_killed || (o->left && !worst_only) ? same_left(r, i, list) : 0;

		if (count == 0)
			continue;
		if (lines++ >= LINES_MAX) {
			more += count;
			continue;
		}
		text_printf(out, "launchd: %s: ", level);
		ranks_add(out, list, count);
		(void)nodes_of_add(in, list, count, out);
		text_add(out, " left ");
		add_left(out, o->left, o->left_killed, count > 1);
	}
	if (more)
		text_printf(out,
			"launchd: %s: %zu more workers left processes behind: see --report FILE\n",
			level, more);
}

void remains_add(const struct report_input *in, bool worst_only, struct text *out)
{
	const struct result *r = in->result;
	const struct outcome **list = arena_alloc(in->arena, r->count * sizeof *list);
	const char *level = worst_only ? "warning" : "note";

	if (!list) {
		out->failed = true;
		return;
	}
	add_each(in, worst_only, level, list, out);
	if (r->left_killed || (r->left && !worst_only)) {
		text_printf(out, "launchd: %s: workers left ", level);
		add_left(out, r->left, r->left_killed, false);
	}
	for (unsigned i = 0; i < r->survivor_count && i < SURVIVORS_MAX; i++)
		add_survivor(in, &r->survivors[i], out);
	if (r->survivor_count > SURVIVORS_MAX)
		text_printf(out, "launchd: warning: still alive: %u more processes\n",
			r->survivor_count - SURVIVORS_MAX);
}
