/* unfinished.c - workers that are done while others run on; see report.h */
#include "daemon/report/report.h"

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"

enum { NAMED_MAX = 4 };

/* "rank 1 (pid 4711), rank 4 (pid 4714) are still running": those to look at, as long as they are
 * few. */
static void add_running(struct text *out, const struct outcome *const *list, size_t count)
{
	for (size_t i = 0; count <= NAMED_MAX && i < count; i++)
		text_printf(
			out, "%srank %u (pid %d)", i ? ", " : "", list[i]->rank, (int)list[i]->pid);
	if (count > NAMED_MAX)
		ranks_add(out, list, count);
	text_add(out, count == 1 ? " is still running" : " are still running");
}

void report_unfinished(const struct outcome *outcomes, size_t count, uint64_t now_ns,
	struct arena *arena, struct text *out)
{
	const struct outcome **done = arena_alloc(arena, count * sizeof *done);
	const struct outcome **running = arena_alloc(arena, count * sizeof *running);
	size_t done_count = 0, running_count = 0;
	uint64_t first_ns = UINT64_MAX;

	if (!done || !running) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct outcome *o = &outcomes[i];

		if (o->pid && o->end.how == ENDED_NONE)
			running[running_count++] = o;
		if (o->pid && ending_is_success(&o->end)) {
			done[done_count++] = o;
			first_ns = o->ended_ns < first_ns ? o->ended_ns : first_ns;
		}
	}
	if (done_count == 0 || running_count == 0)
		return;
	ranks_add(out, done, done_count);
	text_printf(out, " ended with exit code 0, %s", done_count == 1 ? "" : "the first ");
	span_add(out, first_ns, now_ns);
	text_add(out, " ago; ");
	add_running(out, running, running_count);
}
