/* classify.c - see classify.h */
#include "daemon/witness/classify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum {
	/* what a hung worker does not reach in a second: measured, its threads tick */
	WORK_IO_BYTES = 256,
	WORK_NET_BYTES = 4096,
	WORK_FAULTS = 300,
	WORK_KID_CPU_MS = 60,
	BUSY_CPU_MS = 80,
	THREADS_CPU_MS = 1500, /* several threads compute */
	/* measured: loops of Python that wait touch up to 0.3 MB of their own, small ones that
	 * compute 0.9 MB and more */
	SPIN_BYTES = 640 << 10,
	GPU_SPIN_BYTES = 2 << 20, /* beside CUDA's threads and where power says the same; a guess */
	CLOSE_MS = 8,             /* two moments that the kernel's ticks can't order */
	RARE = 4,                 /* times the usual gap: a connection that was not in use */
	RARE_MS = 100,
	RAS_ALIVE_MS = 2500, /* NCCL's RAS sends once a second, over connections of its own */
	BLIND_MS = 20000,    /* for which GPUs of which nothing is known may compute */
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

/* --- what each of them does --- */

/* Between the two looks, brought to a second; counters that fell are of other processes now. */
static uint64_t per_second(const struct rank_sight *r, uint64_t before, uint64_t now)
{
	uint64_t ms = r->now.at_ms - r->before.at_ms;

	return now > before ? (now - before) * 1000 / (ms > 0 ? ms : 1) : 0;
}

#define RATE(r, field) per_second(r, (r)->before.field, (r)->now.field)

/* What NCCL's RAS needs for its answers is no work of the job's. */
static bool moves_net(const struct rank_sight *r)
{
	return RATE(r, net_bytes) >= WORK_NET_BYTES + (uint64_t)r->ops.ras_bytes;
}

static bool moves_data(const struct rank_sight *r)
{
	return RATE(r, io_bytes) >= WORK_IO_BYTES || RATE(r, faults) >= WORK_FAULTS;
}

static bool kids_work(const struct rank_sight *r)
{
	return r->now.kids != r->before.kids || r->now.kid_cpu_ms < r->before.kid_cpu_ms ||
		RATE(r, kid_cpu_ms) >= WORK_KID_CPU_MS;
}

/* A worker spins for kernels that wait: that is how CUDA waits. Where nobody knows what memory it
 * touches it is taken for such a one. */
static enum acting acting_by_cpu(const struct rank_sight *r)
{
	uint64_t cpu_ms = RATE(r, cpu_ms);

	if (cpu_ms < BUSY_CPU_MS)
		return ACTING_IDLE;
	if (r->now.gpu == GPU_WAITS || r->ops.ahead)
		return r->now.working_set <= GPU_SPIN_BYTES ? ACTING_IDLE : ACTING_WORK;
	if (cpu_ms >= THREADS_CPU_MS || r->now.working_set == WORKING_SET_UNKNOWN)
		return ACTING_WORK;
	return r->now.working_set <= SPIN_BYTES ? ACTING_SPIN : ACTING_WORK;
}

enum acting rank_acting(const struct rank_sight *r)
{
	enum acting by_cpu;

	if (r->now.state == 'X')
		return ACTING_IDLE;
	if (r->looks < 2 || r->now.state == '?')
		return ACTING_UNSEEN;
	if (r->now.gpu == GPU_BUSY || moves_data(r) || kids_work(r))
		return ACTING_WORK;
	by_cpu = acting_by_cpu(r);
	return by_cpu != ACTING_WORK && moves_net(r) ? ACTING_TALK : by_cpu;
}

/* --- who waits for whom --- */

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

/* Others wait for it, and it has sent nothing since it heard of them. */
static bool is_outside(const struct standing *s)
{
	return s->waited_for > 0 && s->waits == 0 && is_later(s->heard_ms, s->sent_ms, CLOSE_MS);
}

/* An outsider has heard of those who wait for it since anything went over this connection: perhaps
 * it waits for the other end itself, as what is sent and heard in the same moment shows no order.
 */
static bool has_passed(const struct rank_sight *r, const struct tcp_talk *mine)
{
	uint32_t last_ms = mine->sent_ms < mine->heard_ms ? mine->sent_ms : mine->heard_ms;

	return is_outside(&r->standing) && is_later(r->standing.heard_ms, last_ms, CLOSE_MS);
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

static bool is_seen(const struct rank_sight *r)
{
	return rank_acting(r) != ACTING_UNSEEN;
}

/* As their node does not answer. */
static unsigned unseen_of(const struct rank_sight *all, unsigned count, unsigned *ret_first)
{
	unsigned unseen = 0;

	for (unsigned i = count; i-- > 0;)
		if (!is_seen(&all[i])) {
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

static bool have_unseen(const struct rank_sight *all, unsigned count)
{
	unsigned first;

	return unseen_of(all, count, &first) > 0;
}

void ranks_connect(struct rank_sight *all, unsigned count, struct talk_end *room)
{
	size_t ends = 0;
	bool unseen;

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
	unseen = have_unseen(all, count);
	for (size_t i = 0; i < ends; i++)
		if (unseen && is_alone(all, room, i, ends))
			stand_alone(&all[room[i].rank], talk_of(all, &room[i]));
}

enum at_work anybody_works(const struct rank_sight *all, unsigned count)
{
	enum at_work found = NOBODY_WORKS;

	for (unsigned i = 0; i < count; i++) {
		enum acting acting = rank_acting(&all[i]);

		if (acting == ACTING_WORK)
			return SOMEBODY_WORKS;
		if (acting == ACTING_TALK || (all[i].looks == 2 && all[i].standing.talks))
			found = SOCKETS_WORK;
	}
	return found;
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
		if (is_seen(&all[i]) && is_stopped(&all[i])) {
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
		seen += is_seen(&all[i]);
		few += is_seen(&all[i]) && is(&all[i]);
	}
	if (few == 0 || few * 2 > seen || seen < 2)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (is_seen(&all[i]) && is(&all[i])) {
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
	bool behind = s->behind && s->waits == 0 && s->waited_for == 0;

	if (!is_seen(r) || (!behind && !is_outside(s)))
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
	unsigned first = 0, unseen = unseen_of(all, count, &first);
	bool unacked = false;

	for (unsigned i = 0; i < count; i++)
		unacked |= is_seen(&all[i]) && all[i].standing.unacked_away;
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

		if (is_seen(&all[i]) && w != WAIT_FUTEX && w != WAIT_POLL && w != WAIT_SOCKET)
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

/* Whether a worker uses GPUs of which nothing is known: then waiting looks like working. */
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

		if (!is_seen(&all[i]))
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

/* Who waits in the store, and who doesn't. */
static bool find_in_store(const struct rank_sight *all, unsigned count, struct hang_finding *f)
{
	unsigned waiting = 0, seen = 0;

	for (unsigned i = 0; i < count; i++) {
		seen += is_seen(&all[i]);
		waiting += is_seen(&all[i]) && *all[i].awaits;
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

		if (!is_seen(&all[i]))
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
	*ret = (struct hang_finding){ .class = HANG_NONE };
	if (find_stopped(all, count, ret) || find_cut_off(all, count, ret) ||
		find_outsiders(all, count, ret) ||
		find_few(all, count, has_ended, HANG_OUTSIDE, ret) ||
		find_few(all, count, has_dead, HANG_OUTSIDE, ret) ||
		find_in_store(all, count, ret) || find_by_ops(all, count, ret) ||
		find_late(all, count, ret))
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
	if (have_unseen(all, count)) { /* they may work */
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
