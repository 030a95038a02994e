/* others.c - see others.h */
#include "daemon/report/others.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/nodes.h"
#include "daemon/report/report_input.h"

bool worker_is_planned(const struct report_input *in, const struct outcome *o)
{
	const struct plan *p = in->plan;

	if (o->pid || o->end.how != ENDED_NONE)
		return true;
	if (node_rank_of(in, o->node) != p->node_rank) /* which may have more workers than ours */
		return p->start_count >= p->nproc;
	return o->local_rank >= p->start_first && o->local_rank - p->start_first < p->start_count;
}

bool worker_is_together(const struct result *r, const struct outcome *o)
{
	if (r->cause.kind != CAUSE_FAILURE || !result_is_together(r, o))
		return false;
	/* on another node it may be known to be a consequence, however soon */
	return r->unsure || !result_is_jobwide(r) || o->node == r->cause.culprit.node;
}

/* What a worker did, most telling first: the order of the lines. */
enum story {
	STORY_TOGETHER,  /* failed when the culprit did */
	STORY_FAILED,    /* failed by itself after the culprit */
	STORY_PEER,      /* failed because another worker had gone */
	STORY_WAIT,      /* failed because another worker did not come */
	STORY_UNREAD,    /* failed because nobody read what it wrote */
	STORY_ENDED,     /* ended by itself, mostly with 0 */
	STORY_STOPPED,   /* ended within the grace after a signal of ours */
	STORY_OUTSTAYED, /* did not */
	STORY_KILLED,    /* by us, without a signal before */
	STORY_ALIVE,     /* not even SIGKILL ended it */
	STORY_UNSTARTED,
	STORY_NONE,     /* not started */
	STORY_LOST,     /* nobody knows: its node was lost */
	STORY_UNJOINED, /* its node never joined */
	STORY_COUNT,
};

static enum story story_of(const struct report_input *in, const struct outcome *o)
{
	const struct result *r = in->result;

	if (o->end.how == ENDED_NONE && node_is_silent(in, o->node))
		return *node_name_of(in, o->node) ? STORY_LOST : STORY_UNJOINED;
	if (ending_is_unstarted(&o->end))
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
	if (ending_is_success(&o->end))
		return STORY_ENDED;
	if (worker_is_together(r, o))
		return STORY_TOGETHER;
	if (o->blames == BLAMES_A_PEER)
		return STORY_PEER;
	if (o->blames == BLAMES_A_WAIT)
		return STORY_WAIT;
	if (o->blames == BLAMES_OUTPUT)
		return STORY_UNREAD;
	return cause_failed(&r->cause) ? STORY_FAILED : STORY_ENDED;
}

/* Workers with the same story, in order of rank. */
struct group {
	const struct report_input *in;
	const struct result *r;
	enum story story;
	bool later; /* all failed after the culprit, and the time is counted from there */
	const struct outcome **list;
	size_t count;
};

/* The time that a story tells. */
static uint64_t story_ns(const struct group *g, const struct outcome *o)
{
	bool asked = g->story == STORY_STOPPED || g->story == STORY_OUTSTAYED;
	uint64_t from = g->later ? g->r->cause.culprit.ended_ns :
		asked            ? o->asked_ns :
				   o->started_ns;

	return o->ended_ns > from ? o->ended_ns - from : 0;
}

/* A consequence may come first where it takes the culprit long to die. */
static bool is_later(const struct group *g)
{
	if (g->r->cause.kind != CAUSE_FAILURE ||
		(g->story != STORY_FAILED && g->story != STORY_PEER && g->story != STORY_WAIT &&
			g->story != STORY_UNREAD))
		return false;
	for (size_t i = 0; i < g->count; i++)
		if (g->list[i]->ended_ns < g->r->cause.culprit.ended_ns)
			return false;
	return true;
}

/* The times of a group's stories. */
struct times {
	uint64_t least_ns, most_ns;
	unsigned last; /* the rank that has the longest */
};

static struct times times_of(const struct group *g)
{
	struct times t = { .least_ns = UINT64_MAX };

	for (size_t i = 0; i < g->count; i++) {
		uint64_t ns = story_ns(g, g->list[i]);

		t.least_ns = ns < t.least_ns ? ns : t.least_ns;
		if (ns >= t.most_ns) {
			t.most_ns = ns;
			t.last = g->list[i]->rank;
		}
	}
	return t;
}

/* " (rank 37 was last)": where the others waited for it. */
static void add_last(struct text *out, const struct times *t)
{
	enum { LONGER_NS = 1000000000 };

	if (t->most_ns - t->least_ns >= LONGER_NS)
		text_printf(out, " (rank %u was last)", t->last);
}

/* "0.02 s"; for several from the shortest to the longest: "0.01 s to 29.8 s (rank 37 was last)". */
static void add_times(struct text *out, const struct group *g)
{
	const struct times t = times_of(g);
	char shortest[SPAN_SIZE], longest[SPAN_SIZE];

	span_format(t.least_ns, shortest);
	span_format(t.most_ns, longest);
	text_add(out, shortest);
	if (strcmp(shortest, longest) != 0)
		text_printf(out, " to %s", longest);
	add_last(out, &t);
}

/* "ended by launchd's SIGTERM within 0.02 s"; "exit code 1 within 0.02 s of launchd's SIGTERM" */
static void add_stopped(struct text *out, const struct group *g)
{
	enum { SHOWN_NS = 10000000 };
	const struct outcome *o = g->list[0];
	const struct times t = times_of(g);
	bool by_it = o->end.how == ENDED_SIGNAL && o->end.value == o->asked_signal &&
		!o->end.core && o->oom == OOM_NO;
	char longest[SPAN_SIZE];

	/* rounded up: it was within that */
	span_format((t.most_ns + SHOWN_NS - 1) / SHOWN_NS * SHOWN_NS, longest);
	if (by_it) {
		text_printf(out, "ended by launchd's %s within %s", signal_name(o->asked_signal),
			longest);
	} else {
		outcome_add(out, o);
		text_printf(
			out, " within %s of launchd's %s", longest, signal_name(o->asked_signal));
	}
	add_last(out, &t);
}

/* "failed 0.02 s later: exit code 1" */
static void add_failure(struct text *out, const struct group *g, const char *what)
{
	text_printf(out, "%s %s", what, g->later ? "" : "after ");
	add_times(out, g);
	text_printf(out, "%s: ", g->later ? " later" : "");
	outcome_add(out, g->list[0]);
}

/* Why nobody can tell who was first: " (the nodes' clocks agree only to 0.4 ms)" */
static void add_doubt(struct text *out, const struct group *g)
{
	enum { NS_PER_TENTH_MS = 100000, MS_MAX = 60000 };
	const struct outcome *culprit = &g->r->cause.culprit;
	uint64_t worst = 0, tenths;

	for (size_t i = 0; i < g->count; i++) {
		uint64_t error = result_tolerance_ns(g->r, culprit, g->list[i]);

		if (g->list[i]->node != culprit->node && error > worst)
			worst = error;
	}
	if (worst == 0 || !result_is_jobwide(g->r))
		return;
	tenths = worst / NS_PER_TENTH_MS + (worst % NS_PER_TENTH_MS != 0);
	if (tenths > (uint64_t)MS_MAX * 10)
		text_add(out, " (the nodes' clocks could not be compared)");
	else
		text_printf(out, " (the nodes' clocks agree only to %u.%u ms)",
			(unsigned)(tenths / 10), (unsigned)(tenths % 10));
}

static void add_story(struct text *out, const struct group *g, size_t nodes)
{
	const struct outcome *o = g->list[0];

	switch (g->story) {
	case STORY_TOGETHER:
		text_add(out, "failed at the same time: ");
		outcome_add(out, o);
		text_add(out,
			g->count == 1 ? "; either may be the root cause" :
					"; any of them may be the root cause");
		add_doubt(out, g);
		return;
	case STORY_FAILED:
		add_failure(out, g, "failed");
		return;
	case STORY_PEER:
		add_failure(out, g, "lost a peer and failed");
		return;
	case STORY_WAIT:
		add_failure(out, g, "timed out waiting for another rank, and failed");
		return;
	case STORY_UNREAD:
		add_failure(out, g, "wrote to output without a reader, and failed");
		return;
	case STORY_ENDED:
		outcome_add(out, o);
		text_add(out, " after ");
		add_times(out, g);
		return;
	case STORY_STOPPED:
		add_stopped(out, g);
		return;
	case STORY_OUTSTAYED:
		text_add(out, "still running ");
		add_times(out, g);
		text_printf(out, " after launchd's %s: ", signal_name(o->asked_signal));
		outcome_add(out, o);
		return;
	case STORY_KILLED:
		text_add(out, "killed by launchd after ");
		add_times(out, g);
		return;
	case STORY_ALIVE:
		text_add(out, "still alive when launchd exited");
		return;
	case STORY_UNSTARTED:
	case STORY_NONE:
		ending_describe(&o->end, out);
		return;
	case STORY_LOST:
		text_printf(out, "unknown: the node%s lost", nodes == 1 ? " was" : "s were");
		return;
	case STORY_UNJOINED:
		text_printf(out, "unknown: the node%s never joined", nodes == 1 ? "" : "s");
		return;
	case STORY_COUNT:
		break;
	}
	__builtin_unreachable();
}

static void add_line(struct text *out, const struct group *g)
{
	size_t nodes;

	text_printf(out, "launchd: %s: ", g->story == STORY_TOGETHER ? "error" : "note");
	nodes = workers_add(g->in, g->list, g->count, out);
	text_add(out, ": ");
	add_story(out, g, nodes);
	text_add(out, "\n");
}

static bool is_same_story(const struct outcome *a, const struct outcome *b)
{
	return a->end.how == b->end.how && a->end.value == b->end.value &&
		a->end.core == b->end.core && a->oom == b->oom && a->oom_limit == b->oom_limit &&
		a->asked_signal == b->asked_signal;
}

/* Three and more with the same story share a line; two do among many, too. A job of 4,096 workers
 * ends with a screenful that names the culprit, and not with 4,096 lines that scroll it away. */
enum { GROUP_MIN = 3, SINGLE_MAX = 16, LINES_MAX = 32 };

/* The other workers, sorted by story. */
struct others {
	const struct outcome **all;
	enum story *stories;
	const struct outcome **group; /* room for the one at hand */
	size_t count;
};

/* Those from the first one on that share its line; they are taken out of the list. */
static struct group group_take(const struct report_input *in, struct others *o, size_t first)
{
	struct group g = { in, in->result, o->stories[first], false, o->group, 0 };
	const struct outcome *model = o->all[first];

	for (size_t i = first; i < o->count; i++)
		if (o->all[i] && o->stories[i] == g.story && is_same_story(o->all[i], model))
			g.list[g.count++] = o->all[i];
	if (g.count < GROUP_MIN && o->count <= SINGLE_MAX)
		g.count = 1;
	for (size_t i = first, n = 0; n < g.count; i++)
		if (o->all[i] == g.list[n]) {
			o->all[i] = NULL;
			n++;
		}
	g.later = is_later(&g);
	return g;
}

static bool others_make(const struct report_input *in, struct others *ret)
{
	const struct result *r = in->result;
	const struct outcome *culprit = result_culprit(r), *failed = cause_failed(&r->cause);
	/* whom the first lines are about */
	unsigned told = culprit ? culprit->rank : failed ? failed->rank : UINT_MAX;

	ret->all = arena_alloc(in->arena, r->count * sizeof *ret->all);
	ret->group = arena_alloc(in->arena, r->count * sizeof *ret->group);
	ret->stories = arena_alloc(in->arena, r->count * sizeof *ret->stories);
	ret->count = 0;
	if (arena_failed(in->arena))
		return false;
	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o->rank == told || !worker_is_planned(in, o))
			continue;
		ret->stories[ret->count] = story_of(in, o);
		ret->all[ret->count++] = o;
	}
	return true;
}

/* What is not sure and no worker's line tells. */
static const char *doubt_of(enum cause_kind kind)
{
	if (kind == CAUSE_NODE_LOST)
		return "a worker may have failed before the node was lost: launchd can't tell";
	if (kind == CAUSE_FAILURE)
		return "another worker may have failed first: the nodes' clocks can't tell";
	return "a worker may have failed first: the nodes' clocks can't tell";
}

static void add_unsure(const struct report_input *in, const struct others *o, struct text *out)
{
	if (!in->result->unsure)
		return;
	for (size_t i = 0; i < o->count; i++)
		if (o->stories[i] == STORY_TOGETHER)
			return;
	text_printf(out, "launchd: note: %s\n", doubt_of(in->result->cause.kind));
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
	add_unsure(in, &o, out);
	for (int s = 0; s < STORY_COUNT; s++)
		for (size_t i = 0; i < o.count; i++) {
			struct group g;

			if (!o.all[i] || o.stories[i] != (enum story)s || lines == LINES_MAX)
				continue;
			g = group_take(in, &o, i);
			add_line(out, &g);
			told += g.count;
			lines++;
		}
	if (told < o.count)
		text_printf(out,
			"launchd: note: %zu more workers are not listed: see --report FILE\n",
			o.count - told);
}
