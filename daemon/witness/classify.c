/* classify.c - see classify.h */
#include "daemon/witness/classify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

enum {
	RARE = 4, /* times the usual gap: a connection that was not in use */
	RARE_MS = 100,
	BLIND_MS = 20000, /* for which GPUs that can't be seen may compute */
};

static const char *const class_words[HANG_CLASSES] = {
	[HANG_NONE] = "none",
	[HANG_STOPPED] = "stopped",
	[HANG_OUTSIDE] = "outside",
	[HANG_ALL_WAIT] = "all_wait",
	[HANG_DESYNC] = "desync",
	[HANG_SPINNING] = "spinning",
};

const char *hang_class_word(enum hang_class c)
{
	return class_words[c];
}

/* --- what that means --- */

static void name_rank(struct hang_finding *f, enum hang_class class, unsigned rank)
{
	f->class = class;
	if (f->count < FINDING_RANKS)
		f->ranks[f->count] = rank;
	f->count++;
}

/* "it sleeps" */
static const char *what_it_does(const struct rank_sight *r)
{
	static const char *const words[WAITS] = {
		[WAIT_UNKNOWN] = "what it does can't be seen",
		[WAIT_RUNS] = "it runs",
		[WAIT_FUTEX] = "it waits for a lock or a thread",
		[WAIT_SLEEP] = "it sleeps",
		[WAIT_POLL] = "it waits for a descriptor",
		[WAIT_PIPE] = "it waits for a pipe",
		[WAIT_SOCKET] = "it waits for a socket",
		[WAIT_DISK] = "it waits for a file system",
		[WAIT_CHILD] = "it waits for a process that it has started",
		[WAIT_SIGNAL] = "it is stopped",
		[WAIT_OTHER] = "it waits in the kernel",
	};

	if (r->now.state == 'X')
		return "it has ended";
	if (r->now.dead > 0)
		return "a process that it has started has died";
	return words[r->now.waits];
}

static bool is_stopped(const struct rank_sight *r)
{
	const struct worker_sample *s = &r->now;

	return s->state == 'T' || s->state == 't' || s->stuck > 0 ||
		(s->state == 'D' && r->before.state == 'D') ||
		(s->waits == WAIT_DISK && r->before.waits == WAIT_DISK);
}

static void say_stopped(const struct rank_sight *r, struct hang_finding *f)
{
	const struct worker_sample *s = &r->now;

	f->third_party = false;
	f->may_return = !s->traced && s->state != 'T' && s->state != 't';
	if (s->traced)
		(void)snprintf(f->why, sizeof f->why, "by a debugger");
	else if (s->state == 'T' && s->stop_signal == 19) {
		f->third_party = true;
		(void)snprintf(f->why, sizeof f->why, "by SIGSTOP, which launchd has not sent");
	} else if (s->state == 'T')
		(void)snprintf(f->why, sizeof f->why, "by a signal");
	else if (s->state == 'D' || s->waits == WAIT_DISK)
		(void)snprintf(f->why, sizeof f->why,
			"in the kernel (state %c), as for a file system that does not answer",
			s->state);
	else
		(void)snprintf(f->why, sizeof f->why, "a process that it has started is");
}

static bool find_stopped(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	for (unsigned i = 0; i < count; i++)
		if (rank_is_seen(&all[i]) && is_stopped(&all[i])) {
			if (f->count == 0)
				say_stopped(&all[i], f);
			name_rank(f, HANG_STOPPED, all[i].now.rank);
		}
	return f->count > 0;
}

/* Those that `is` holds for, if they are fewer than the others, as outsiders. */
static bool find_few(const struct rank_sight *all, unsigned count,
	bool (*is)(const struct rank_sight *r), enum hang_class class, struct hang_finding *f)
{
	unsigned few = 0, seen = 0;

	for (unsigned i = 0; i < count; i++) {
		seen += rank_is_seen(&all[i]);
		few += rank_is_seen(&all[i]) && is(&all[i]);
	}
	if (few == 0 || few * 2 > seen || seen < 2)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (rank_is_seen(&all[i]) && is(&all[i])) {
			if (f->count == 0)
				(void)snprintf(f->why, sizeof f->why, "%s", what_it_does(&all[i]));
			name_rank(f, class, all[i].now.rank);
		}
	return true;
}

static bool spins(const struct rank_sight *r)
{
	return rank_acting(r) == ACTING_SPIN;
}

static bool has_ended(const struct rank_sight *r)
{
	return r->now.state == 'X';
}

static bool has_dead(const struct rank_sight *r)
{
	return r->now.dead > 0;
}

static bool is_away(const struct rank_sight *r)
{
	enum waiting_in w = r->now.waits;

	return w == WAIT_SLEEP || w == WAIT_PIPE || w == WAIT_CHILD;
}

static bool is_idle_beside_spinning(const struct rank_sight *r)
{
	return rank_acting(r) == ACTING_IDLE;
}

static bool awaits_key(const struct rank_sight *r)
{
	return *r->awaits;
}

static bool awaits_no_key(const struct rank_sight *r)
{
	return !*r->awaits;
}

/* How far back a rank is of what the others are in: the one that is farthest is the one to name.
 * One that is behind an outsider is farther; one that does not wait is, too. */
static unsigned how_far(const struct rank_sight *r)
{
	const struct standing *s = &r->standing;
	bool behind = s->behind && s->waits == 0 &&
		(s->waited_for == 0 || moments_are_close(s->heard_ms, s->sent_ms));

	if (!rank_is_seen(r) || (!behind && !standing_is_outside(s)))
		return 0;
	return 1U + (behind ? 1 : 0) + (is_away(r) || spins(r) || has_ended(r) ? 2 : 0);
}

/* By who talks to whom. */
static bool find_outsiders(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	unsigned far = 0;

	for (unsigned i = 0; i < count; i++)
		if (how_far(&all[i]) > far)
			far = how_far(&all[i]);
	for (unsigned i = 0; i < count && far > 0; i++) {
		if (how_far(&all[i]) != far)
			continue;
		if (f->count == 0)
			(void)snprintf(f->why, sizeof f->why,
				"%s, and has sent the others nothing for %u s",
				what_it_does(&all[i]), (unsigned)(all[i].standing.sent_ms / 1000));
		name_rank(f, spins(&all[i]) ? HANG_SPINNING : HANG_OUTSIDE, all[i].now.rank);
	}
	return f->count > 0;
}

/* The most usual silence before what they wait with; 0: nobody waits. */
static uint32_t least_gap(const struct rank_sight *all, unsigned count)
{
	uint32_t least = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct standing *s = &all[i].standing;

		if (s->waits > 0 && (least == 0 || s->gap_ms < least))
			least = s->gap_ms;
	}
	return least;
}

static bool find_cut_off(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	unsigned first = 0, unseen = ranks_unseen(all, count, &first);
	bool unacked = false;

	for (unsigned i = 0; i < count; i++)
		unacked |= rank_is_seen(&all[i]) && all[i].standing.unacked_away;
	if (unseen == 0 || !unacked)
		return false;
	f->class = HANG_ALL_WAIT;
	(void)snprintf(f->why, sizeof f->why,
		unseen == 1 ? "%u of them, rank %u, can't be seen, and what is sent there is not "
			      "acknowledged: the network" :
			      "%u of them, rank %u the first, can't be seen, and what is sent "
			      "there is not acknowledged: the network",
		unseen, first);
	return true;
}

/* All have sent something since the last collective, and some got no answer. The odd one has sent
 * it where nobody expected it: over a connection that was not in use. */
static bool find_desync(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	uint32_t usual = least_gap(all, count);
	unsigned waits = 0;
	bool unacked = false;

	for (unsigned i = 0; i < count; i++) {
		const struct standing *s = &all[i].standing;

		waits += s->waits;
		unacked |= s->unacked;
	}
	if (unacked) {
		f->class = HANG_ALL_WAIT;
		(void)snprintf(f->why, sizeof f->why,
			"what they send each other is not acknowledged: the network");
		return true;
	}
	if (waits == 0)
		return false;
	for (unsigned i = 0; i < count; i++) {
		const struct standing *s = &all[i].standing;

		if (s->waits > 0 && s->gap_ms > RARE_MS && s->gap_ms > RARE * usual)
			name_rank(f, HANG_DESYNC, all[i].now.rank);
	}
	f->class = HANG_DESYNC;
	(void)snprintf(f->why, sizeof f->why,
		"they have entered different collectives, or one of "
		"them with other sizes");
	return true;
}

static bool wait_for_others(const struct rank_sight *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		enum waiting_in w = all[i].now.waits;

		if (rank_is_seen(&all[i]) && w != WAIT_FUTEX && w != WAIT_POLL && w != WAIT_SOCKET)
			return false;
	}
	return true;
}

/* With one another. */
static bool have_talked(const struct rank_sight *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (all[i].standing.known)
			return true;
	return false;
}

/* Whether a worker uses GPUs that can't be seen: waiting looks like working then. */
static bool is_blind(const struct rank_sight *all, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (all[i].now.gpu == GPU_UNKNOWN)
			return true;
	return false;
}

/* Whether all that are seen use GPUs, of which none computes, and kernels on some of them wait. */
static bool gpus_wait(const struct rank_sight *all, unsigned count)
{
	unsigned seen = 0, waiting = 0;

	for (unsigned i = 0; i < count; i++) {
		enum gpu_activity gpu = all[i].now.gpu;

		if (!rank_is_seen(&all[i]))
			continue;
		if (gpu != GPU_IDLE && gpu != GPU_WAITS)
			return false;
		seen++;
		waiting += gpu == GPU_WAITS;
	}
	return seen > 1 && waiting > 0;
}

static bool has_idle_gpu(const struct rank_sight *r)
{
	return r->now.gpu == GPU_IDLE;
}

/* By their GPUs: those that have given theirs nothing to do, while kernels of the others wait. */
static bool find_by_gpus(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	if (!gpus_wait(all, count) || !find_few(all, count, has_idle_gpu, HANG_OUTSIDE, f))
		return false;
	(void)snprintf(f->why, sizeof f->why,
		"no kernel runs on its GPU, while those of the others wait; %s",
		what_it_does(&all[f->ranks[0]]));
	return true;
}

static void say_key(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	for (unsigned i = 0; i < count; i++)
		if (*all[i].awaits) {
			(void)snprintf(f->why, sizeof f->why, "the store's key %s does not come",
				all[i].awaits);
			return;
		}
}

/* A thread that waits for nobody asks once a second, as long as its group completes nothing: where
 * it doesn't, its process is stopped, the group is gone, or the way to the store. */
static bool is_late(const struct rank_sight *r)
{
	return r->late && !*r->awaits;
}

static bool find_late(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	if (!find_few(all, count, is_late, HANG_OUTSIDE, f))
		return false;
	(void)snprintf(f->why, sizeof f->why,
		"its NCCL monitor does not ask the store any more, as those of others do; %s",
		what_it_does(&all[f->ranks[0]]));
	return true;
}

static bool is_unjoined(const struct rank_sight *r)
{
	return r->now.store_port == 0;
}

/* Before workers have talked with one another: most are in the store, whoever hosts it, and wait
 * there for those that aren't. */
static bool find_unjoined(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	for (unsigned i = 0; i < count; i++)
		if (all[i].standing.known || !rank_is_seen(&all[i]))
			return false;
	if (!find_few(all, count, is_unjoined, HANG_OUTSIDE, f))
		return false;
	(void)snprintf(f->why, sizeof f->why,
		"it has not joined the store, and the others have; %s",
		what_it_does(&all[f->ranks[0]]));
	return true;
}

/* Who waits in the store, and who doesn't. */
static bool find_in_store(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	unsigned waiting = 0, seen = 0;

	for (unsigned i = 0; i < count; i++) {
		seen += rank_is_seen(&all[i]);
		waiting += rank_is_seen(&all[i]) && *all[i].awaits;
	}
	if (waiting == 0)
		return false;
	if (waiting == seen)
		f->class = HANG_ALL_WAIT;
	else if (!find_few(all, count, awaits_no_key, HANG_OUTSIDE, f))
		(void)find_few(all, count, awaits_key, HANG_OUTSIDE, f);
	say_key(all, count, f);
	return f->class != HANG_NONE;
}

/* --- by NCCL's counts --- */

static bool is_gone(const struct rank_sight *r)
{
	return r->ops.gone;
}

/* The others have started what it has not, and it waits for nobody. */
static bool is_behind(const struct rank_sight *r)
{
	return r->ops.behind && !r->ops.ahead;
}

static bool is_odd(const struct rank_sight *r)
{
	return r->ops.odd || (r->ops.behind && r->ops.ahead);
}

static bool find_by_ops(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	if (find_few(all, count, is_gone, HANG_OUTSIDE, f)) {
		(void)snprintf(f->why, sizeof f->why,
			"its process does not answer NCCL's RAS any more; %s",
			what_it_does(&all[f->ranks[0]]));
		return true;
	}
	if (find_few(all, count, is_behind, HANG_OUTSIDE, f)) {
		const struct rank_sight *first = &all[f->ranks[0]];

		(void)snprintf(f->why, sizeof f->why,
			"%s, and has started %" PRIu64
			" collectives of a communicator of NCCL's, while others have %" PRIu64,
			what_it_does(first), first->ops.started, first->ops.most);
		return true;
	}
	if (!find_few(all, count, is_odd, HANG_DESYNC, f))
		return false;
	(void)snprintf(f->why, sizeof f->why,
		"by NCCL's counts it has started other collectives than the others have");
	return true;
}

/* All have started the same, as far as NCCL counts, and nothing new for that long. */
static bool have_stood(const struct rank_sight *all, unsigned count, uint32_t least_ms)
{
	unsigned known = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct rank_ops *o = &all[i].ops;

		if (!rank_is_seen(&all[i]))
			continue;
		if (!o->known || o->behind || o->ahead || o->odd || o->gone ||
			o->still_ms < least_ms)
			return false;
		known++;
	}
	return known > 1;
}

static bool find_even(
	const struct rank_sight *all, unsigned count, uint32_t least_ms, struct hang_finding *f)
{
	if (!have_stood(all, count, least_ms))
		return false;
	f->class = HANG_ALL_WAIT;
	(void)snprintf(f->why, sizeof f->why,
		"no worker differs, and all have started the same collectives of NCCL's: the "
		"network or a device");
	return true;
}

void hang_classify(const struct rank_sight *all, unsigned count, struct hang_finding *ret)
{
	unsigned first;

	*ret = (struct hang_finding){ .class = HANG_NONE };
	if (find_stopped(all, count, ret) || find_cut_off(all, count, ret) ||
		find_outsiders(all, count, ret) ||
		find_few(all, count, has_ended, HANG_OUTSIDE, ret) ||
		find_few(all, count, has_dead, HANG_OUTSIDE, ret) ||
		find_in_store(all, count, ret) || find_unjoined(all, count, ret) ||
		find_by_ops(all, count, ret) || find_late(all, count, ret))
		return;
	if (is_blind(all, count)) {
		(void)find_even(all, count, BLIND_MS, ret);
		return;
	}
	if (find_by_gpus(all, count, ret))
		return;
	if (find_few(all, count, spins, HANG_SPINNING, ret) ||
		find_few(all, count, is_idle_beside_spinning, HANG_OUTSIDE, ret) ||
		find_few(all, count, is_away, HANG_OUTSIDE, ret))
		return;
	if (ranks_unseen(all, count, &first) > 0) { /* they may work */
		(void)find_even(all, count, 0, ret);
		return;
	}
	if (find_desync(all, count, ret) || find_even(all, count, 0, ret))
		return;
	if (count > 1 && wait_for_others(all, count) && have_talked(all, count)) {
		ret->class = HANG_ALL_WAIT;
		(void)snprintf(
			ret->why, sizeof ret->why, "no worker differs: the network or a device");
	} else if (gpus_wait(all, count)) {
		ret->class = HANG_ALL_WAIT;
		(void)snprintf(ret->why, sizeof ret->why,
			"no worker differs, and all GPUs do far less than they did, by their power "
			"or their tensor units: the network or a device");
	}
}

bool finding_is_same(const struct hang_finding *a, const struct hang_finding *b)
{
	unsigned named = a->count < FINDING_RANKS ? a->count : FINDING_RANKS;

	return a->class == b->class && a->count == b->count &&
		memcmp(a->ranks, b->ranks, named * sizeof *a->ranks) == 0;
}

/* "ranks 3, 5 and 12 more" */
static void add_ranks(const struct hang_finding *f, struct text *out)
{
	text_add(out, f->count == 1 ? "rank" : "ranks");
	for (unsigned i = 0; i < f->count && i < FINDING_RANKS; i++)
		text_printf(out, "%s %u", i > 0 ? "," : "", f->ranks[i]);
	if (f->count > FINDING_RANKS)
		text_printf(out, " and %u more", f->count - FINDING_RANKS);
}

void finding_describe(const struct hang_finding *f, struct text *out)
{
	const char *is = f->count == 1 ? "is" : "are";

	if (f->count > 0)
		add_ranks(f, out);
	switch (f->class) {
	case HANG_NONE:
	case HANG_CLASSES:
		return;
	case HANG_STOPPED:
		text_printf(out, " %s stopped", is);
		break;
	case HANG_OUTSIDE:
		text_printf(out, " %s outside what all others wait in", is);
		break;
	case HANG_ALL_WAIT:
		text_add(out, "all ranks wait alike");
		break;
	case HANG_DESYNC:
		text_printf(out, "%s",
			f->count > 0 ? " differs: all ranks wait, but out of step" :
				       "all ranks wait, but out of step");
		break;
	case HANG_SPINNING:
		text_printf(out, " %s spinning while all others wait", is);
		break;
	}
	if (*f->why)
		text_printf(out, ": %s", f->why);
}
