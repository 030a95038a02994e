/* witness_sim.c - plays recorded jobs to the detector of hangs, many times over, on a clock of its
 * own.
 *
 *   witness_sim RUNS SEED < TRACES
 *   witness_sim RUNS SEED RUN < TRACES    prints what was told and said in that one, as a trace
 *
 * TRACES are those that tests/witness/trial.py keeps, one behind the other: each begins with a line
 * "# kind=sleep seed=0 rank=1 onset=2516864 over=0 right=outside:1", times in milliseconds; right:
 * what may be suspected, and whether with that rank; over: when a quiet ended that is no hang.
 *
 * Each run takes one of them, kinds in turn. Its ranks change places and stand on two nodes, whose
 * clocks differ; looks come sooner or later, some are lost; and what is quiet stays so for longer:
 * a benign quiet up to 9 minutes, a hang 12, by playing a part of it again and again, with counters
 * that go on. --on-hang-after is what it is by default.
 *
 * Prints a table; exits with 0 where at least 96 % of hangs were suspected right within 10 s, with
 * no rank named that is another, at most 5 % of quiets were suspected at all, none was acted on,
 * and each hang was, in time. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/witness/hang_trace.h"

enum {
	RANKS = 4,
	TRACES_MAX = 512,
	KINDS_MAX = 128,
	RIGHTS_MAX = 4,
	WITHIN_MS = 10000,
	BENIGN_MS = 540000,
	HANG_MS = 720000,
	AFTER_MS = 600000,
	STEADY_MS = 7000, /* the end of a hang that is played again */
	WORK_BYTES = 4096,
	SETTLED_MS = 2000, /* behind its beginning a quiet looks as it will */
	JITTER_MS = 30,
	APART_MS = 3000, /* the nodes' clocks */
	LOST_LOOKS_PCT = 1,
	LOST_ROUNDS_PCT = 1,
	LATE_PCT = 5, /* come behind the judgement that they are for */
};

struct right {
	char class[16];
	unsigned named;
};

struct recorded {
	char kind[32];
	unsigned rank;
	uint64_t onset_ms, over_ms; /* over: 0: never, it hangs */
	struct right rights[RIGHTS_MAX];
	struct trace_step *steps;
	size_t count, room;
	/* the part that is played again: behind the step `from` up to `to`; none: they are the same
	 */
	size_t from, to;
};

/* What became of the runs of one kind. */
struct tally {
	char kind[32];
	bool hangs;
	unsigned runs, suspected, right, acted, early, named; /* named: another rank than its */
	uint64_t latest_ms;
	char wrong[96]; /* the last one that was */
};

struct sim {
	const struct recorded *t;
	uint64_t seed;
	struct detector d;
	struct rank_sight sights[RANKS];
	struct talk_end room[RANKS * TALKS_MAX];
	unsigned place[RANKS];             /* where each recorded rank stands */
	int64_t clock_ms[2], jitter_ms[2]; /* of nodes */
	bool lost[2], late[2];             /* this round of theirs */
	struct trace_step held[RANKS];     /* that are late */
	bool holds[RANKS];
	bool shown;
	uint64_t moved_ms; /* by others than workers */
	uint64_t job_ms;
	/* the first that was said behind the onset */
	struct hang_finding said;
	uint64_t said_ms, acted_ms; /* 0: nothing */
};

static uint64_t chance(struct sim *s)
{
	uint64_t z = (s->seed += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static bool happens(struct sim *s, unsigned pct)
{
	return chance(s) % 100 < pct;
}

static int64_t within(struct sim *s, int64_t most)
{
	return (int64_t)(chance(s) % (uint64_t)(2 * most + 1)) - most;
}

/* --- reading --- */

static void read_rights(struct recorded *t, const char *text)
{
	int used;

	for (unsigned i = 0; i < RIGHTS_MAX; i++, text += used) {
		used = 0;
		if (sscanf(text, "%15[a-z_]:%u%n", t->rights[i].class, &t->rights[i].named,
			    &used) != 2)
			return;
		used += text[used] == ',';
	}
}

static int read_head(const char *line, struct recorded *ret)
{
	struct recorded t = { .steps = NULL };
	char rights[128];

	if (sscanf(line,
		    "# kind=%31s seed=%*u rank=%u onset=%" SCNu64 " over=%" SCNu64 " right=%127s",
		    t.kind, &t.rank, &t.onset_ms, &t.over_ms, rights) != 5)
		return -1;
	read_rights(&t, rights);
	*ret = t;
	return 0;
}

static int add_step(struct recorded *t, const struct trace_step *s)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		struct trace_step *more = realloc(t->steps, room * sizeof *more);

		if (!more)
			return -1;
		t->steps = more;
		t->room = room;
	}
	t->steps[t->count++] = *s;
	return 0;
}

/* The first judgement from then on, or behind `last` the last one until then. */
static size_t judgement(const struct recorded *t, uint64_t at_ms, bool last)
{
	size_t found = t->count;

	for (size_t i = 0; i < t->count; i++) {
		const struct trace_step *s = &t->steps[i];

		if (s->kind != TRACE_JUDGE || (last ? s->at_ms > at_ms : s->at_ms < at_ms))
			continue;
		found = i;
		if (!last)
			break;
	}
	return found;
}

/* The last look at a rank up to that step; NULL: none. */
static const struct worker_sample *look_before(const struct recorded *t, size_t step, unsigned rank)
{
	for (size_t i = step + 1; i-- > 0;)
		if (t->steps[i].kind == TRACE_SAMPLE && t->steps[i].sample.rank == rank)
			return &t->steps[i].sample;
	return NULL;
}

static uint64_t bytes_of(const struct worker_sample *s)
{
	return s->main_bytes + s->read_bytes + s->written_bytes;
}

/* Whether the looks before this judgement show that somebody has read or written since those
 * before. */
static bool shows_work(const struct recorded *t, size_t judgement)
{
	size_t before = judgement;

	while (before > 0 && t->steps[--before].kind != TRACE_JUDGE)
		;
	for (unsigned rank = 0; rank < RANKS; rank++) {
		const struct worker_sample *now = look_before(t, judgement, rank);
		const struct worker_sample *then = look_before(t, before, rank);

		if (now && then && bytes_of(now) > bytes_of(then) + WORK_BYTES)
			return true;
	}
	return false;
}

/* Of a quiet in which somebody works now and then: from where he does to where he does, so that
 * what follows one another is no longer than it was. */
static void begin_and_end_with_work(struct recorded *t)
{
	size_t from = t->to, to = t->from;

	for (size_t i = t->from; i <= t->to; i++)
		if (t->steps[i].kind == TRACE_JUDGE && shows_work(t, i)) {
			from = i < from ? i : from;
			to = i;
		}
	if (from < to) {
		t->from = from;
		t->to = to;
	}
}

static void find_part(struct recorded *t)
{
	uint64_t end = t->over_ms;
	size_t last;

	if (end == 0) {
		last = judgement(t, UINT64_MAX, true);
		end = last < t->count ? t->steps[last].at_ms : 0;
		t->from = judgement(t, end > STEADY_MS ? end - STEADY_MS : 0, false);
	} else {
		last = judgement(t, end - 1000, true);
		t->from = judgement(t, t->onset_ms + SETTLED_MS, false);
	}
	t->to = last;
	if (t->to >= t->count || t->from >= t->to)
		t->from = t->to = 0;
	else if (t->over_ms)
		begin_and_end_with_work(t);
}

static size_t read_all(struct recorded *all)
{
	char *line = NULL;
	size_t room = 0, count = 0;
	struct trace_step s;

	while (getline(&line, &room, stdin) > 0) {
		if (*line == '#') {
			if (count == TRACES_MAX || read_head(line, &all[count]) < 0)
				return 0;
			count++;
		} else if (count == 0) {
			continue;
		} else if (trace_read(line, strcspn(line, "\n"), &s) < 0) {
			if (strncmp(line, "rank=", 5) != 0)
				continue;
			(void)fprintf(
				stderr, "a look of an older launchd, which lacks mcpu: %s", line);
			return 0;
		} else if (add_step(&all[count - 1], &s) < 0) {
			return 0;
		}
	}
	free(line);
	for (size_t i = 0; i < count; i++)
		find_part(&all[i]);
	return count;
}

/* --- one run --- */

static const struct tcp_talk *talk_in(const struct worker_sample *s, uint64_t id)
{
	for (unsigned i = 0; i < s->talk_count; i++)
		if (s->talks[i].id == id)
			return &s->talks[i];
	return NULL;
}

/* The age of what was sent or heard last, where the part is played for the n-th time again. into:
 * since the part began. */
static uint32_t age_again(
	uint32_t age, uint32_t age_at_end, uint64_t into, uint64_t part, unsigned n)
{
	if (age <= into)
		return age; /* it was in this turn */
	return (uint32_t)(age_at_end < part ? into + age_at_end : age + n * part);
}

static void go_on_talking(struct worker_sample *s, const struct worker_sample *first,
	const struct worker_sample *last, unsigned n)
{
	uint64_t into = s->at_ms > first->at_ms ? s->at_ms - first->at_ms : 0;
	uint64_t part = last->at_ms - first->at_ms;

	for (unsigned i = 0; i < s->talk_count; i++) {
		struct tcp_talk *talk = &s->talks[i];
		const struct tcp_talk *end = talk_in(last, talk->id);

		if (!end)
			continue;
		talk->sent_ms = age_again(talk->sent_ms, end->sent_ms, into, part, n);
		talk->heard_ms = age_again(talk->heard_ms, end->heard_ms, into, part, n);
	}
}

static uint64_t part_ms(const struct recorded *t)
{
	return t->steps[t->to].at_ms - t->steps[t->from].at_ms;
}

/* What of counters is lost where a process dies that nobody reaps is not made up for. */
static uint64_t grown(uint64_t first, uint64_t last)
{
	return last > first ? last - first : 0;
}

/* A look of the part, played for the n-th time again, or behind all of that: by its own clock, so
 * that looks are as far apart as they were. */
static void go_on(const struct recorded *t, struct worker_sample *s, unsigned n)
{
	const struct worker_sample *first = look_before(t, t->from, s->rank);
	const struct worker_sample *last = look_before(t, t->to, s->rank);

	if (n == 0)
		return;
	if (!first || !last) {
		s->at_ms += n * part_ms(t);
		return;
	}
	go_on_talking(s, first, last, n);
	s->at_ms += n * (last->at_ms - first->at_ms);
	s->main_cpu_ms += n * (last->main_cpu_ms - first->main_cpu_ms);
	s->main_bytes += n * (last->main_bytes - first->main_bytes);
	s->main_faults += n * (last->main_faults - first->main_faults);
	s->rest_cpu_ms += n * grown(first->rest_cpu_ms, last->rest_cpu_ms);
	s->read_bytes += n * grown(first->read_bytes, last->read_bytes);
	s->reads += n * grown(first->reads, last->reads);
	s->written_bytes += n * grown(first->written_bytes, last->written_bytes);
	s->writes += n * grown(first->writes, last->writes);
	s->kid_cpu_ms += n * grown(first->kid_cpu_ms, last->kid_cpu_ms);
	s->net_bytes += n * (last->net_bytes - first->net_bytes);
}

static void take_news(struct sim *s, enum detector_news news, uint64_t at_ms)
{
	if (news == NEWS_SUSPECT && s->said_ms == 0) {
		s->said = s->d.finding;
		s->said_ms = at_ms;
	}
	if (news == NEWS_CERTAIN && s->acted_ms == 0)
		s->acted_ms = at_ms;
}

static void new_round(struct sim *s)
{
	for (unsigned node = 0; node < 2; node++) {
		s->jitter_ms[node] = within(s, JITTER_MS);
		s->lost[node] = happens(s, LOST_ROUNDS_PCT);
		s->late[node] = happens(s, LATE_PCT);
	}
}

/* A look that comes later sees older words. */
static uint32_t later(uint32_t age, int64_t by)
{
	return (int64_t)age + by > 0 ? (uint32_t)((int64_t)age + by) : 0;
}

static enum detector_news tell(struct sim *s, const struct trace_step *step)
{
	struct text line = { 0 };
	enum detector_news news = trace_play(&s->d, step);

	if (s->shown) {
		trace_add(&line, step);
		trace_add_news(&line, &s->d, news, step->at_ms);
		(void)fputs(text_string(&line), stdout);
		text_done(&line);
	}
	return news;
}

static void deliver(struct sim *s, unsigned rank)
{
	if (s->holds[rank])
		(void)tell(s, &s->held[rank]);
	s->holds[rank] = false;
}

static void see(struct sim *s, struct trace_step *step)
{
	struct worker_sample *w = &step->sample;
	unsigned node = w->rank / 2 % 2;

	w->at_ms = (uint64_t)((int64_t)w->at_ms + s->clock_ms[node] + s->jitter_ms[node]);
	for (unsigned i = 0; i < w->talk_count; i++) {
		w->talks[i].sent_ms = later(w->talks[i].sent_ms, s->jitter_ms[node]);
		w->talks[i].heard_ms = later(w->talks[i].heard_ms, s->jitter_ms[node]);
	}
	if (s->lost[node] || happens(s, LOST_LOOKS_PCT))
		return;
	s->held[w->rank] = *step;
	s->holds[w->rank] = true;
	if (!s->late[node])
		deliver(s, w->rank);
}

/* A step in the n-th turn, by so much later. */
static void play(struct sim *s, size_t at, unsigned n, uint64_t gap_ms)
{
	struct trace_step step = s->t->steps[at];

	step.at_ms += n * (n > 0 ? part_ms(s->t) : 0) + gap_ms;
	step.rank = s->place[step.rank % RANKS];
	if (step.kind == TRACE_SAMPLE) {
		go_on(s->t, &step.sample, n);
		step.sample.at_ms += gap_ms;
		step.sample.rank = s->place[step.sample.rank % RANKS];
		see(s, &step);
		return;
	}
	if (step.kind == TRACE_NEWS)
		return;
	if (step.kind == TRACE_BEGIN)
		step.after_ms = AFTER_MS;
	if (step.kind == TRACE_MOVED)
		s->moved_ms = step.at_ms;
	for (unsigned i = 0; i < RANKS && step.kind == TRACE_MOVED; i++)
		deliver(s, i);
	take_news(s, tell(s, &step), step.at_ms);
	for (unsigned i = 0; i < RANKS && step.kind == TRACE_JUDGE; i++)
		deliver(s, i);
	if (step.kind != TRACE_JUDGE)
		return;
	new_round(s);
	s->job_ms = step.at_ms - s->t->steps[0].at_ms;
}

static void begin(struct sim *s, const struct recorded *t, uint64_t seed)
{
	bool shown = s->shown;

	memset(s, 0, sizeof *s);
	s->t = t;
	s->seed = seed;
	s->shown = shown;
	s->moved_ms = t->onset_ms;
	s->d = (struct detector){
		.after_ms = AFTER_MS, .sights = s->sights, .room = s->room, .ranks = RANKS
	};
	for (unsigned i = 0; i < RANKS; i++) {
		unsigned other = (unsigned)(chance(s) % (i + 1));

		s->place[i] = s->place[other];
		s->place[other] = i;
	}
	s->clock_ms[1] = within(s, APART_MS);
	new_round(s);
}

static void run(struct sim *s, const struct recorded *t, uint64_t seed)
{
	uint64_t end = t->over_ms ? t->over_ms : t->steps[t->count - 1].at_ms;
	uint64_t quiet = end > t->onset_ms ? end - t->onset_ms : 0, longer, gap = 0;
	unsigned turns = 0;
	size_t at = 0;

	begin(s, t, seed);
	longer = t->over_ms ? chance(s) % (BENIGN_MS - quiet) : HANG_MS - quiet;
	if (t->to > t->from)
		turns = (unsigned)(longer / part_ms(t)) + (t->over_ms == 0);
	for (; turns > 0 && at <= t->to; at++)
		play(s, at, 0, 0);
	for (unsigned n = 1; n <= turns; n++)
		for (size_t k = t->from + 1; k <= t->to; k++)
			play(s, k, n, 0);
	for (; at < t->count; at++) {
		if (turns == 0 && gap == 0 && t->steps[at].kind == TRACE_JUDGE &&
			t->steps[at].at_ms > t->onset_ms)
			gap = longer; /* nobody has looked */
		play(s, at, turns, gap);
	}
}

/* --- all --- */

static bool is_right(const struct sim *s)
{
	const struct hang_finding *f = &s->said;
	uint64_t since = s->t->onset_ms > s->moved_ms ? s->t->onset_ms : s->moved_ms;

	if (s->said_ms == 0 || s->said_ms < s->t->onset_ms || s->said_ms > since + WITHIN_MS)
		return false;
	for (unsigned i = 0; i < RIGHTS_MAX && *s->t->rights[i].class; i++) {
		const struct right *r = &s->t->rights[i];

		if (strcmp(hang_class_word(f->class), r->class) == 0 && f->count == r->named &&
			(!r->named || f->ranks[0] == s->place[s->t->rank]))
			return true;
	}
	return false;
}

static bool names_another(const struct sim *s)
{
	const struct hang_finding *f = &s->said;
	unsigned its = s->place[s->t->rank];

	return s->said_ms > 0 && f->count > 0 && (f->count > 1 || f->ranks[0] != its);
}

static struct tally *tally_of(struct tally *all, const struct recorded *t)
{
	struct tally *k = all;

	while (*k->kind && strcmp(k->kind, t->kind) != 0)
		k++;
	memcpy(k->kind, t->kind, sizeof k->kind);
	k->hangs = t->over_ms == 0;
	return k;
}

static void count(struct tally *k, const struct sim *s, unsigned number)
{
	uint64_t least = s->said.third_party ? STOPPED_MS : AFTER_MS;
	uint64_t since = s->t->onset_ms > s->moved_ms ? s->t->onset_ms : s->moved_ms;
	uint64_t after = s->said_ms > since ? s->said_ms - since : 0;

	k->runs++;
	k->suspected += s->said_ms > 0;
	k->right += is_right(s);
	k->acted += s->acted_ms > 0;
	k->named += k->hangs && names_another(s);
	k->early += s->acted_ms > 0 && s->acted_ms < s->moved_ms + least;
	k->latest_ms = after > k->latest_ms ? after : k->latest_ms;
	if (s->said_ms > 0 && !is_right(s))
		(void)snprintf(k->wrong, sizeof k->wrong, "%s %s%u in run %u after %" PRIu64,
			hang_class_word(s->said.class), s->said.count ? "" : "of none, ",
			s->said.ranks[0], number, after);
}

static int sum_up(const struct tally *all, uint64_t job_ms)
{
	unsigned hangs = 0, right = 0, quiets = 0, suspected = 0, acted = 0, missed = 0, named = 0;

	for (const struct tally *k = all; *k->kind; k++) {
		named += k->named;
		printf("%-26s %s %3u runs, %3u suspected, %3u right, %3u acted on; %.1f s  %s\n",
			k->kind, k->hangs ? "hangs" : "quiet", k->runs, k->suspected, k->right,
			k->acted, (double)k->latest_ms / 1000, k->wrong);
		hangs += k->hangs ? k->runs : 0;
		right += k->hangs ? k->right : 0;
		quiets += k->hangs ? 0 : k->runs;
		suspected += k->hangs ? 0 : k->suspected;
		acted += k->hangs ? k->early : k->acted;
		missed += k->hangs ? k->runs - k->acted : 0;
	}
	printf("%u of %u hangs were suspected right within %d s, %u of %u quiets at all; "
	       "%u false actions, %u hangs without one, %u wrong ranks; %.0f h of jobs\n",
		right, hangs, WITHIN_MS / 1000, suspected, quiets, acted, missed, named,
		(double)job_ms / 3600000);
	return hangs > 0 && quiets > 0 && right * 100 >= hangs * 96 && suspected * 20 <= quiets &&
			acted == 0 && missed == 0 && named == 0 ?
		0 :
		1;
}

/* Hangs and quiets in turn, of each their kinds in turn, of each of them any. */
static const struct recorded *choose(
	const struct recorded *all, size_t count, unsigned run, uint64_t any)
{
	const struct recorded *kinds[KINDS_MAX], *of[TRACES_MAX];
	size_t kind_count = 0, of_count = 0;

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		if ((all[i].over_ms == 0) != (run % 2 == 0))
			continue;
		while (k < kind_count && strcmp(kinds[k]->kind, all[i].kind) != 0)
			k++;
		if (k == kind_count && k < KINDS_MAX)
			kinds[kind_count++] = &all[i];
	}
	for (size_t i = 0; kind_count > 0 && i < count; i++)
		if (strcmp(all[i].kind, kinds[run / 2 % kind_count]->kind) == 0)
			of[of_count++] = &all[i];
	return of_count > 0 ? of[any % of_count] : NULL;
}

int main(int argc, char **argv)
{
	static struct recorded all[TRACES_MAX];
	static struct tally tallies[KINDS_MAX + 1];
	static struct sim s;
	size_t traces = argc >= 3 ? read_all(all) : 0;
	unsigned runs = argc >= 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned shown = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : UINT_MAX;
	uint64_t job_ms = 0;

	if (traces == 0) {
		(void)fprintf(stderr, "usage: %s RUNS SEED [RUN] < TRACES\n", argv[0]);
		return 2;
	}
	s.seed = strtoull(argv[2], NULL, 10);
	for (unsigned i = 0; i < runs; i++) {
		uint64_t any = chance(&s), seed = chance(&s);
		const struct recorded *t = choose(all, traces, i, any);

		if (!t)
			continue;
		s.shown = i == shown;
		if (s.shown)
			printf("# run=%u kind=%s rank=%u\n", i, t->kind, t->rank);
		run(&s, t, seed);
		count(tally_of(tallies, t), &s, i);
		job_ms += s.job_ms;
		s.seed = seed;
	}
	for (size_t i = 0; i < traces; i++)
		free(all[i].steps);
	return sum_up(tallies, job_ms);
}
