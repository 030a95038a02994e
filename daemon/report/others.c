/* others.c - see others.h */
#include "daemon/report/others.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/phrases.h"
#include "daemon/report/report.h"

bool worker_is_planned(const struct plan *plan, const struct outcome *o)
{
	return o->pid || o->end.how != ENDED_NONE ||
		(o->local_rank >= plan->start_first &&
			o->local_rank - plan->start_first < plan->start_count);
}

/* What a worker did, most telling first: the order of the lines. */
enum story {
	STORY_TOGETHER,  /* failed when the culprit did */
	STORY_FAILED,    /* failed by itself after the culprit */
	STORY_ENDED,     /* ended by itself, mostly with 0 */
	STORY_STOPPED,   /* ended within the grace after a signal of ours */
	STORY_OUTSTAYED, /* did not */
	STORY_KILLED,    /* by us, without a signal before */
	STORY_ALIVE,     /* not even SIGKILL ended it */
	STORY_UNSTARTED,
	STORY_NONE, /* not started */
	STORY_COUNT,
};

static enum story story_of(const struct result *r, const struct outcome *o)
{
	if (o->end.how == ENDED_UNSTARTED)
		return STORY_UNSTARTED;
	if (!o->pid)
		return STORY_NONE;
	if (o->end.how == ENDED_NONE)
		return STORY_ALIVE;
	if (o->asked == ASKED_TO_STOP)
		return STORY_STOPPED;
	if (o->asked == ASKED_KILLED && o->asked_signal)
		return STORY_OUTSTAYED;
	if (o->asked == ASKED_KILLED && o->end.how == ENDED_SIGNAL && o->end.value == SIGKILL)
		return STORY_KILLED;
	if (ending_is_success(&o->end) || r->cause.kind != CAUSE_FAILURE)
		return STORY_ENDED;
	return result_is_together(r, o) ? STORY_TOGETHER : STORY_FAILED;
}

/* The time that a story tells. */
static uint64_t story_ns(const struct result *r, enum story s, const struct outcome *o)
{
	uint64_t from = s == STORY_FAILED                  ? r->culprit->ended_ns :
		s == STORY_STOPPED || s == STORY_OUTSTAYED ? o->asked_ns :
							     o->started_ns;

	return o->ended_ns > from ? o->ended_ns - from : 0;
}

/* Workers with the same story, in order of rank. */
struct group {
	const struct result *r;
	enum story story;
	const struct outcome **list;
	size_t count;
};

/* "0.02 s"; for several from the shortest to the longest, and whose that is where others waited
 * for it: "0.01 s to 29.8 s (rank 37)". */
static void add_times(struct text *out, const struct group *g)
{
	enum { LONGER_NS = 1000000000 };
	uint64_t least = UINT64_MAX, most = 0;
	char shortest[SPAN_SIZE], longest[SPAN_SIZE];
	unsigned last = 0;

	for (size_t i = 0; i < g->count; i++) {
		uint64_t ns = story_ns(g->r, g->story, g->list[i]);

		least = ns < least ? ns : least;
		if (ns >= most) {
			most = ns;
			last = g->list[i]->rank;
		}
	}
	span_format(least, shortest);
	span_format(most, longest);
	text_add(out, shortest);
	if (strcmp(shortest, longest) != 0)
		text_printf(out, " to %s", longest);
	if (most - least >= LONGER_NS)
		text_printf(out, " (rank %u)", last);
}

static void add_story(struct text *out, const struct group *g)
{
	const struct outcome *o = g->list[0];

	switch (g->story) {
	case STORY_TOGETHER:
		text_add(out, "failed at the same time: ");
		outcome_add(out, o);
		text_add(out,
			g->count == 1 ? "; either may be the cause" :
					"; any of them may be the cause");
		return;
	case STORY_FAILED:
		text_add(out, "failed ");
		add_times(out, g);
		text_add(out, " later: ");
		outcome_add(out, o);
		return;
	case STORY_ENDED:
		outcome_add(out, o);
		text_add(out, " after ");
		add_times(out, g);
		return;
	case STORY_STOPPED:
		outcome_add(out, o);
		text_add(out, ", ");
		add_times(out, g);
		text_printf(out, " after launchd's %s", signal_name(o->asked_signal));
		return;
	case STORY_OUTSTAYED:
		text_add(out, "still there ");
		add_times(out, g);
		text_printf(out, " after launchd's %s: ", signal_name(o->asked_signal));
		outcome_add(out, o);
		return;
	case STORY_KILLED:
		text_add(out, "killed by launchd after ");
		add_times(out, g);
		return;
	case STORY_ALIVE:
		text_add(out, "still there when launchd ended");
		return;
	case STORY_UNSTARTED:
	case STORY_NONE:
		ending_describe(&o->end, out);
		return;
	case STORY_COUNT:
		break;
	}
	__builtin_unreachable();
}

static void add_line(struct text *out, const struct group *g)
{
	text_printf(out, "launchd: %s: ", g->story == STORY_TOGETHER ? "error" : "note");
	if (g->count == 1)
		worker_add(out, g->list[0]);
	else
		ranks_add(out, g->list, g->count);
	text_add(out, ": ");
	add_story(out, g);
	text_add(out, "\n");
}

static bool is_same_story(const struct outcome *a, const struct outcome *b)
{
	return a->end.how == b->end.how && a->end.value == b->end.value &&
		a->end.core == b->end.core && a->oom == b->oom &&
		a->asked_signal == b->asked_signal;
}

enum { SINGLE_MAX = 16, LINES_MAX = 32 };

/* The other workers, sorted by story. */
struct others {
	const struct outcome **all;
	enum story *stories;
	const struct outcome **group; /* room for the one at hand */
	size_t count;
};

/* Those from the first one on that share its line; they are taken out of the list. */
static struct group group_take(const struct result *r, struct others *o, size_t first)
{
	struct group g = { r, o->stories[first], o->group, 0 };
	const struct outcome *model = o->all[first];
	bool alone = o->count <= SINGLE_MAX;

	for (size_t i = first; i < o->count && !(alone && g.count > 0); i++) {
		if (!o->all[i] || o->stories[i] != g.story || !is_same_story(o->all[i], model))
			continue;
		g.list[g.count++] = o->all[i];
		o->all[i] = NULL;
	}
	return g;
}

static bool others_make(const struct report_input *in, struct others *ret)
{
	const struct result *r = in->result;
	const struct outcome *first = r->cause.kind == CAUSE_FAILURE ? r->culprit : NULL;

	ret->all = arena_alloc(in->arena, r->count * sizeof *ret->all);
	ret->group = arena_alloc(in->arena, r->count * sizeof *ret->group);
	ret->stories = arena_alloc(in->arena, r->count * sizeof *ret->stories);
	ret->count = 0;
	if (arena_failed(in->arena))
		return false;
	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o == first || !worker_is_planned(in->plan, o))
			continue;
		ret->stories[ret->count] = story_of(r, o);
		ret->all[ret->count++] = o;
	}
	return true;
}

void others_add(const struct report_input *in, struct text *out)
{
	struct others o;
	unsigned lines = 0;
	size_t told = 0;

	if (!others_make(in, &o)) {
		out->failed = true;
		return;
	}
	for (int s = 0; s < STORY_COUNT; s++)
		for (size_t i = 0; i < o.count; i++) {
			struct group g;

			if (!o.all[i] || o.stories[i] != (enum story)s || lines == LINES_MAX)
				continue;
			g = group_take(in->result, &o, i);
			add_line(out, &g);
			told += g.count;
			lines++;
		}
	if (told < o.count)
		text_printf(out, "launchd: note: %zu more workers, whose ends --report FILE has\n",
			o.count - told);
}
