/* rank_sight.c - see rank_sight.h */
#include "daemon/witness/rank_sight.h"

#include <stdlib.h>

enum {
	CLOSE_MS = 8,        /* two moments that the kernel's ticks can't order */
	RAS_ALIVE_MS = 2500, /* NCCL's RAS sends once a second, over connections of its own */
	LASTING_LOOKS = 3,   /* work of a hung job is seldom in so many, one after the other */
};

static bool is_later(uint32_t a_ms, uint32_t b_ms, unsigned by_ms)
{
	return b_ms >= a_ms && b_ms - a_ms >= by_ms; /* ages: the later one is younger */
}

/* It has sent, and nothing has come since. */
static bool asks(const struct tcp_talk *t)
{
	return is_later(t->sent_ms, t->heard_ms, 1);
}

/* Something has come, and nothing was sent since. */
static bool owes(const struct tcp_talk *t)
{
	return is_later(t->heard_ms, t->sent_ms, 1);
}

/* What is sent again, as nobody has acknowledged it, is no talk. */
static bool talks_now(const struct rank_sight *r, const struct tcp_talk *t)
{
	uint64_t ms = r->now.at_ms - r->before.at_ms;

	return (t->sent_ms < ms && t->retries == 0) || t->heard_ms < ms;
}

/* Where NCCL's RAS answers, it keeps connections alive that say nothing of the job. What NCCL
 * itself sends over TCP would be more. */
static bool is_of_ras(
	const struct rank_sight *r, const struct rank_sight *peer, const struct tcp_talk *mine)
{
	return r->ops.ras_bytes > 0 && peer->ops.ras_bytes > 0 &&
		(mine->sent_ms < RAS_ALIVE_MS || mine->heard_ms < RAS_ALIVE_MS);
}

static bool is_unacked(const struct tcp_talk *t)
{
	return t->unacked > 0 || t->retries > 0;
}

static void stand_to(
	struct rank_sight *r, const struct tcp_talk *mine, const struct tcp_talk *theirs)
{
	struct standing *s = &r->standing;

	s->known = true;
	s->talks |= talks_now(r, mine);
	s->unacked |= is_unacked(mine);
	s->sent_ms = mine->sent_ms < s->sent_ms ? mine->sent_ms : s->sent_ms;
	if (owes(mine) && asks(theirs)) {
		s->waited_for++;
		s->heard_ms = mine->heard_ms > s->heard_ms ? mine->heard_ms : s->heard_ms;
	}
	if (asks(mine)) {
		s->waits++;
		if (mine->heard_ms - mine->sent_ms > s->gap_ms)
			s->gap_ms = mine->heard_ms - mine->sent_ms;
	}
}

static int by_id(const void *a, const void *b)
{
	const struct talk_end *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static const struct tcp_talk *talk_of(const struct rank_sight *all, const struct talk_end *e)
{
	return &all[e->rank].now.talks[e->index];
}

/* Of one connection, which is the workers' own. */
static bool are_ends(
	const struct rank_sight *all, const struct talk_end *a, const struct talk_end *b)
{
	return a->id == b->id && a->rank != b->rank &&
		!is_of_ras(&all[a->rank], &all[b->rank], talk_of(all, a));
}

bool standing_is_outside(const struct standing *s)
{
	return s->waited_for > 0 && s->waits == 0 && is_later(s->heard_ms, s->sent_ms, CLOSE_MS);
}

bool moments_are_close(uint32_t a_ms, uint32_t b_ms)
{
	return !is_later(a_ms, b_ms, CLOSE_MS) && !is_later(b_ms, a_ms, CLOSE_MS);
}

/* It knows of those that wait for it since anything went over this connection, and waits with no
 * other: perhaps it waits for the other end itself: what is sent and received in nearly the same
 * moment shows no order. */
static bool has_passed(const struct rank_sight *r, const struct tcp_talk *mine)
{
	const struct standing *s = &r->standing;
	uint32_t last_ms = mine->sent_ms < mine->heard_ms ? mine->sent_ms : mine->heard_ms;
	unsigned here = asks(mine) && moments_are_close(mine->sent_ms, mine->heard_ms);

	return s->waited_for > 0 && s->waits == here &&
		is_later(s->heard_ms, s->sent_ms, CLOSE_MS) &&
		is_later(s->heard_ms, last_ms, CLOSE_MS);
}

/* The other end has sent something to somebody since the outsider was asked, so it has entered what
 * those who ask wait in. Ages of two nodes' looks compare by what both know of this connection. */
static bool has_sent_since(const struct rank_sight *outsider, const struct tcp_talk *mine,
	const struct rank_sight *other, const struct tcp_talk *theirs)
{
	int64_t apart_ms = (int64_t)mine->heard_ms - theirs->sent_ms;

	return other->standing.sent_ms + apart_ms < (int64_t)outsider->standing.heard_ms + CLOSE_MS;
}

static void find_behind(struct rank_sight *all, const struct talk_end *a, const struct talk_end *b)
{
	const struct tcp_talk *mine = talk_of(all, a), *theirs = talk_of(all, b);

	if (has_passed(&all[a->rank], mine) &&
		!has_sent_since(&all[a->rank], mine, &all[b->rank], theirs))
		all[b->rank].standing.behind = true;
}

/* The n-th of `count` ends has no other one: that is of a worker that is not seen, or of nobody's.
 */
static bool is_alone(
	const struct rank_sight *all, const struct talk_end *ends, size_t n, size_t count)
{
	return !(n > 0 && are_ends(all, &ends[n - 1], &ends[n])) &&
		!(n + 1 < count && are_ends(all, &ends[n], &ends[n + 1]));
}

bool rank_is_seen(const struct rank_sight *r)
{
	return rank_acting(r) != ACTING_UNSEEN;
}

unsigned ranks_unseen(const struct rank_sight *all, unsigned count, unsigned *ret_first)
{
	unsigned unseen = 0;

	for (unsigned i = count; i-- > 0;)
		if (!rank_is_seen(&all[i])) {
			unseen++;
			*ret_first = i;
		}
	return unseen;
}

/* To a worker that is not seen, perhaps: what is waited for there is no fault of this one. */
static void stand_alone(struct rank_sight *r, const struct tcp_talk *t)
{
	r->standing.waits += asks(t);
	r->standing.unacked_away |= is_unacked(t);
}

void ranks_connect(struct rank_sight *all, unsigned count, struct talk_end *room)
{
	size_t ends = 0;
	unsigned first, unseen = ranks_unseen(all, count, &first);

	for (unsigned i = 0; i < count; i++) {
		all[i].standing = (struct standing){ .sent_ms = UINT32_MAX };
		for (unsigned k = 0; k < all[i].now.talk_count; k++)
			room[ends++] = (struct talk_end){ all[i].now.talks[k].id, i, k };
	}
	qsort(room, ends, sizeof *room, by_id);
	for (size_t i = 0; i + 1 < ends; i++) {
		const struct talk_end *a = &room[i], *b = a + 1;

		if (!are_ends(all, a, b))
			continue;
		stand_to(&all[a->rank], talk_of(all, a), talk_of(all, b));
		stand_to(&all[b->rank], talk_of(all, b), talk_of(all, a));
	}
	for (size_t i = 0; i + 1 < ends; i++) {
		const struct talk_end *a = &room[i], *b = a + 1;

		if (!are_ends(all, a, b))
			continue;
		find_behind(all, a, b);
		find_behind(all, b, a);
	}
	for (size_t i = 0; i < ends && unseen > 0; i++)
		if (is_alone(all, room, i, ends))
			stand_alone(&all[room[i].rank], talk_of(all, &room[i]));
}

struct at_work ranks_at_work(const struct rank_sight *all, unsigned count)
{
	struct at_work found = { .talk = false };

	for (unsigned i = 0; i < count; i++) {
		const struct rank_sight *r = &all[i];
		enum acting acting = rank_acting(r);

		if (!r->fresh)
			continue;
		found.work |= acting == ACTING_WORK;
		found.net |= acting == ACTING_NET;
		found.cpu |= acting == ACTING_RUNS;
		found.talk |= r->looks == 2 && r->standing.talks;
		found.lasts |= r->work.worked >= LASTING_LOOKS;
	}
	return found;
}
