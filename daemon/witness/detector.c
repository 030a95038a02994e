/* detector.c - see detector.h */
#include "daemon/witness/detector.h"

#include <stdio.h>
#include <string.h>

#include "common/sm.h"

static const struct sm_state states[DETECTOR_STATES] = {
	[DETECTOR_MOVING] = { "moving", SM_TO(DETECTOR_SUSPECT) },
	[DETECTOR_SUSPECT] = { "suspect", SM_TO(DETECTOR_CERTAIN) | SM_TO(DETECTOR_MOVING) },
	[DETECTOR_CERTAIN] = { "certain", SM_TO(DETECTOR_MOVING) },
};
const struct sm detector_life = { "detector", states, DETECTOR_STATES };

static void detector_goto(struct detector *d, enum detector_state next)
{
	d->state = sm_go(&detector_life, d->state, next);
	d->stirs = 0;
	if (next == DETECTOR_MOVING)
		d->finding = (struct hang_finding){ .class = HANG_NONE };
}

void detector_begin(struct detector *d, uint64_t now_ms)
{
	if (d->state != DETECTOR_MOVING)
		detector_goto(d, DETECTOR_MOVING);
	memset(d->sights, 0, d->ranks * sizeof *d->sights);
	d->latest = (struct hang_finding){ .class = HANG_NONE };
	d->agreed = 0;
	d->unsure = UNSURE_NOT;
	d->ras_bytes = 0;
	d->moved_ms = now_ms;
	d->began = true;
}

uint64_t detector_quiet_ms(const struct detector *d, uint64_t now_ms)
{
	return d->began && now_ms > d->moved_ms ? now_ms - d->moved_ms : 0;
}

bool detector_hears_talk(const struct detector *d, uint64_t now_ms)
{
	return d->talked && now_ms < d->looked_ms + TALK_MS;
}

/* Of the looks at each worker only so many count: what was done between two of them is old. */
static void keep_looks(struct detector *d, unsigned most)
{
	for (unsigned i = 0; i < d->ranks; i++)
		if (d->sights[i].looks > most)
			d->sights[i].looks = most;
}

/* quiet: for so long nothing had moved. */
static enum detector_news move(struct detector *d, uint64_t at_ms, uint64_t quiet)
{
	if (!d->began || at_ms <= d->moved_ms)
		return NEWS_NONE;
	if (quiet > d->longest_ms)
		d->longest_ms = quiet;
	for (unsigned i = 0; i < d->ranks && quiet >= SUSPECT_MS; i++)
		d->sights[i].left_out = LEFT_OUT;
	d->moved_ms = at_ms;
	d->unsure = UNSURE_NOT;
	d->agreed = 0;
	d->latest = (struct hang_finding){ .class = HANG_NONE };
	if (d->state == DETECTOR_MOVING)
		return NEWS_NONE;
	detector_goto(d, DETECTOR_MOVING);
	return NEWS_CLEARED;
}

/* What a worker has done since the last look it may have done before this. */
enum detector_news detector_moved(struct detector *d, uint64_t at_ms)
{
	keep_looks(d, 0);
	return move(d, at_ms, detector_quiet_ms(d, at_ms));
}

void detector_see(struct detector *d, const struct worker_sample *s)
{
	struct rank_sight *r = s->rank < d->ranks ? &d->sights[s->rank] : NULL;

	if (!r || (r->now.at_ms > 0 && s->at_ms < r->now.at_ms + LOOKS_APART_MS))
		return;
	/* of two that come between two judgements the first is not lost: what was done before it
	 * counts */
	if (r->looks < 2 || !r->fresh)
		r->before = r->now;
	r->now = *s;
	r->fresh = true;
	if (s->state == '?') /* unknown: what was seen before is old */
		r->looks = 0;
	else if (r->looks < 2)
		r->looks++;
}

void detector_stopped(struct detector *d, unsigned rank, int signal)
{
	if (rank < d->ranks)
		d->sights[rank].now.stop_signal = signal;
}

void detector_awaits(struct detector *d, unsigned rank, const char *key)
{
	if (rank < d->ranks)
		(void)snprintf(d->sights[rank].awaits, sizeof d->sights[rank].awaits, "%s", key);
}

void detector_late(struct detector *d, unsigned rank, bool late)
{
	if (rank < d->ranks)
		d->sights[rank].late = late;
}

void detector_ras(struct detector *d, uint32_t bytes)
{
	for (unsigned i = 0; i < d->ranks && (bytes > 0 || d->ras_bytes > 0); i++)
		d->sights[i].ops = (struct rank_ops){ .ras_bytes = bytes };
	d->ras_bytes = bytes;
}

void detector_ops(struct detector *d, unsigned rank, const struct rank_ops *ops)
{
	if (rank >= d->ranks)
		return;
	d->sights[rank].ops = *ops;
	d->sights[rank].ops.ras_bytes = d->ras_bytes;
}

static bool have_fresh(const struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++)
		if (d->sights[i].fresh)
			return true;
	return false;
}

static bool have_seen_anybody(const struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++)
		if (rank_acting(&d->sights[i]) != ACTING_UNSEEN)
			return true;
	return false;
}

/* What looks show now. Where that is nothing in particular for a minute, longer than this job has
 * ever been quiet, then this: a job that lives does something. */
static struct hang_finding find(const struct detector *d, uint64_t quiet)
{
	struct hang_finding f;

	hang_classify(d->sights, d->ranks, &f);
	if (f.class == HANG_NONE && quiet >= SILENT_MS && quiet >= LEARNED * d->longest_ms) {
		f.class = HANG_ALL_WAIT;
		(void)snprintf(f.why, sizeof f.why, "no worker does anything");
	}
	return f;
}

/* A quiet that this job has come back from is no reason for alarm when it comes again. */
static uint64_t suspect_ms(const struct detector *d)
{
	uint64_t known = d->longest_ms + d->longest_ms / 2;

	if (known < SUSPECT_MS)
		return SUSPECT_MS;
	return known < SILENT_MS || d->longest_ms > SILENT_MS ? known : SILENT_MS;
}

/* Some are looked at, and there were no two looks at them yet: what the others wait for may be
 * there. */
static bool some_are_unseen(const struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++) {
		char state = d->sights[i].now.state;

		if (d->sights[i].looks < 2 && state != '?' && state != 'X')
			return true;
	}
	return false;
}

static uint64_t certain_ms(const struct detector *d)
{
	uint64_t learned = LEARNED * d->longest_ms, after = d->after_ms;

	if (d->finding.class == HANG_STOPPED && d->finding.third_party && after > STOPPED_MS)
		after = STOPPED_MS;
	return learned > after ? learned : after;
}

/* Those that nobody sees may work, and then nothing hangs; unless what is sent to them is not
 * acknowledged. That a process is stopped is seen without them. */
static bool may_be_certain(const struct detector *d)
{
	unsigned first, unseen = ranks_unseen(d->sights, d->ranks, &first);
	bool unacked = false;

	for (unsigned i = 0; i < d->ranks; i++)
		unacked |= d->sights[i].standing.unacked_away;
	return unseen == 0 || unacked || d->finding.class == HANG_STOPPED;
}

static enum detector_news suspect(struct detector *d, uint64_t quiet)
{
	bool proven = d->latest.class == HANG_STOPPED && !d->latest.may_return;
	uint64_t least = proven ? SUSPECT_MS : suspect_ms(d);

	if (!proven && some_are_unseen(d))
		least += UNSEEN_MS;
	if (d->agreed < LOOKS_AGREE || d->latest.class == HANG_NONE || quiet < least)
		return NEWS_NONE;
	detector_goto(d, DETECTOR_SUSPECT);
	d->finding = d->latest;
	return NEWS_SUSPECT;
}

/* Quiet was what the look before has shown: since then it may have moved at any time, as looks are
 * some seconds apart while it does. */
static enum detector_news move_by_looks(struct detector *d, uint64_t now_ms)
{
	return move(d, now_ms, detector_quiet_ms(d, d->looked_ms));
}

static enum detector_news move_doubted(struct detector *d, enum unsure why, uint64_t now_ms)
{
	uint64_t before = d->unsure == why ? d->doubted_ms : d->moved_ms;
	enum detector_news news = move_by_looks(d, now_ms);

	d->unsure = why;
	d->doubted_ms = before;
	return news;
}

static bool somebody_spins(const struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++)
		if (rank_acting(&d->sights[i]) == ACTING_SPIN)
			return true;
	return false;
}

/* Nobody works any more: had they, at all? NCCL's RAS says itself a few seconds later that nothing
 * moves. */
static void end_doubt(struct detector *d, uint64_t now_ms)
{
	bool unfounded = (d->unsure == UNSURE_NET && d->ras_bytes > 0) ||
		(d->unsure == UNSURE_CPU && somebody_spins(d));

	if (unfounded && now_ms - d->doubted_ms < DOUBT_MS)
		d->moved_ms = d->doubted_ms;
	d->unsure = UNSURE_NOT;
}

/* There is one before it, whatever was between them. */
static bool can_be_rated(const struct rank_sight *r)
{
	return r->fresh && r->before.at_ms > 0 && r->now.state != '?' && r->before.state != '?';
}

/* What they show, while it is not known yet whether the job moves. */
static struct at_work rate_looks(struct detector *d)
{
	ranks_connect(d->sights, d->ranks, d->room);
	for (unsigned i = 0; i < d->ranks; i++)
		if (can_be_rated(&d->sights[i]))
			rank_rate(&d->sights[i]);
	return ranks_at_work(d->sights, d->ranks);
}

/* It does, where workers talk, and as something has moved since the look before. What is done at
 * the end of a long quiet was done in it. */
static void learn_looks(struct detector *d, bool talk)
{
	for (unsigned i = 0; i < d->ranks; i++) {
		struct rank_sight *r = &d->sights[i];

		if (!can_be_rated(r) || d->no_habits || (!talk && r->looks == 2))
			continue;
		if (r->left_out > 0)
			r->left_out--;
		else
			rank_learn(r);
	}
}

static void keep_judged(struct detector *d)
{
	for (unsigned i = 0; i < d->ranks; i++)
		d->sights[i].fresh = false;
}

/* A hung job may do something in one look, or another one that ends there. */
static enum detector_news take_work(struct detector *d, const struct at_work *w, uint64_t now_ms)
{
	enum detector_news news;

	if (!w->talk && !w->lasts && d->state != DETECTOR_MOVING) {
		if ((w->work || w->net) && d->stirs < STIRS_MAX)
			d->stirs += STIRS_FOR;
		return NEWS_NONE;
	}
	if (!w->work && !w->net && !w->talk)
		news = move_doubted(d, UNSURE_CPU, now_ms);
	else if (!w->work && !w->cpu && d->ras_bytes == 0)
		news = move_doubted(d, UNSURE_NET, now_ms);
	else
		news = move_by_looks(d, now_ms);
	learn_looks(d, w->talk);
	keep_looks(d, 1);
	return news;
}

/* Nobody works. */
static enum detector_news judge_quiet(struct detector *d, uint64_t now_ms)
{
	struct hang_finding f;
	uint64_t quiet;

	end_doubt(d, now_ms);
	d->stirs -= d->stirs > 0;
	quiet = detector_quiet_ms(d, now_ms);
	f = find(d, quiet);
	d->agreed = finding_is_same(&f, &d->latest) ? d->agreed + 1 : 1;
	d->latest = f;
	if (d->state == DETECTOR_MOVING)
		return suspect(d, quiet);
	if (d->state == DETECTOR_CERTAIN)
		return NEWS_NONE;
	if (d->agreed > LOOKS_AGREE && f.class != HANG_NONE && !finding_is_same(&f, &d->finding)) {
		d->finding = f;
		return NEWS_SUSPECT;
	}
	if (finding_is_same(&f, &d->finding))
		d->finding = f; /* in its words of now */
	if (quiet < certain_ms(d) || !may_be_certain(d) ||
		(d->stirs > 0 && d->finding.class != HANG_STOPPED))
		return NEWS_NONE;
	detector_goto(d, DETECTOR_CERTAIN);
	return NEWS_CERTAIN;
}

static enum detector_news judge(struct detector *d, uint64_t now_ms)
{
	struct at_work w;

	if (!d->began)
		return NEWS_NONE;
	w = rate_looks(d);
	d->talked = have_fresh(d) ? w.talk : d->talked;
	if (w.talk || w.net || w.cpu || w.work)
		return take_work(d, &w, now_ms);
	learn_looks(d, false);
	return have_seen_anybody(d) ? judge_quiet(d, now_ms) : NEWS_NONE;
}

enum detector_news detector_judge(struct detector *d, uint64_t now_ms)
{
	enum detector_news news = judge(d, now_ms);

	if (have_fresh(d))
		d->looked_ms = now_ms;
	keep_judged(d);
	return news;
}
