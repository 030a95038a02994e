/* rank_work.c - see rank_work.h. The numbers were measured on jobs that hang and on healthy ones
 * that are quiet, beside monitors and loaders of many kinds. */
#include "daemon/witness/rank_work.h"

#include <limits.h>
#include <string.h>

#include "daemon/witness/rank_sight.h"

enum {
	MEAN_LOOKS = 3,
	/* what a hung main thread does not reach in a second */
	MAIN_BYTES = 256,
	MAIN_FAULTS = 300,
	MAIN_CPU_MS = 80,
	MAIN_LITTLE_CPU_MS = 30, /* of a loop that polls, and does something now and then */
	/* what the tree of one does not reach, whatever its habit */
	NET_BYTES = 32 << 10,
	KID_BUSY_MS = 300,
	BUSY_LOOKS = 2,
	BIG_BYTES = 256 << 10,
	/* least excess over the habit that counts as work: in what serves a waiting main thread */
	SERVED_CPU_MS = 30,
	SERVED_BYTES = 4 << 10,
	/* and in anything else */
	BESIDE_CPU_MS = 100,
	BESIDE_BIG_BYTES = 64 << 10,
	BIG_CALL = 8 << 10,
	/* loops of Python that wait touch up to 0.3 MB of their own, small ones that compute 0.9 MB
	 * and more; beside monitors a part of what the job does when it moves */
	SPIN_BYTES = 640 << 10,
	SPIN_PART = 16,
	GPU_SPIN_BYTES = 2 << 20, /* beside CUDA's threads and where power says the same; a guess */
};

/* --- what it does --- */

/* Between the two looks; counters that fell are of other processes now. */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* At most half of what fits, because two of them are added. */
static unsigned per_second(const struct rank_sight *r, uint64_t grown)
{
	uint64_t ms = r->now.at_ms - r->before.at_ms, rate = grown * 1000 / (ms > 0 ? ms : 1);

	return rate < UINT_MAX / 2 ? (unsigned)rate : UINT_MAX / 2;
}

#define GROWN(r, field) grown((r)->before.field, (r)->now.field)
#define RATE(r, field)  per_second(r, GROWN(r, field))

static unsigned big(unsigned rate, uint64_t bytes, uint64_t calls)
{
	return bytes / BIG_CALL >= calls ? rate : 0;
}

/* What NCCL's RAS needs for its answers is no work of the job's. */
static unsigned net_rate(const struct rank_sight *r)
{
	unsigned rate = r->standing.talks ? 0 : RATE(r, net_bytes);

	return rate > r->ops.ras_bytes ? rate - r->ops.ras_bytes : 0;
}

static bool is_work(enum acting a)
{
	return a == ACTING_WORK || a == ACTING_NET || a == ACTING_RUNS;
}

void rank_rate(struct rank_sight *r)
{
	struct rank_work *w = &r->work;
	struct rank_rates *now = w->rates;
	unsigned read = RATE(r, read_bytes), written = RATE(r, written_bytes);
	unsigned big_read = big(read, GROWN(r, read_bytes), GROWN(r, reads));
	unsigned big_written = big(written, GROWN(r, written_bytes), GROWN(r, writes));

	memmove(w->rates + 1, w->rates, (RATES_KEPT - 1) * sizeof *w->rates);
	w->rated += w->rated < RATES_KEPT;
	*now = (struct rank_rates){
		.main_cpu_ms = RATE(r, main_cpu_ms),
		.main_bytes = RATE(r, main_bytes),
		.main_faults = RATE(r, main_faults),
		.net_bytes = net_rate(r),
		.kid_busiest_ms = r->now.kid_busiest_ms,
		.working_set = r->now.working_set,
	};
	now->rest[HABIT_CPU] = RATE(r, rest_cpu_ms);
	now->rest[HABIT_KID_CPU] = RATE(r, kid_cpu_ms);
	now->rest[HABIT_BYTES] = read + written;
	now->rest[HABIT_WRITTEN] = written;
	now->rest[HABIT_BIG] = big_read + big_written;
	now->rest[HABIT_BIG_WRITTEN] = big_written;
	now->rest[HABIT_NET] = RATE(r, net_bytes);
	w->worked = is_work(rank_acting(r)) ? w->worked + 1 : 0;
}

void rank_learn(struct rank_sight *r)
{
	struct rank_work *w = &r->work;

	memcpy(w->habits[w->learnt % HABIT_LOOKS], w->rates->rest, sizeof *w->habits);
	w->learnt++;
	if (w->rates->working_set != WORKING_SET_UNKNOWN)
		w->touched[w->touched_count++ % TOUCHED_KEPT] = w->rates->working_set;
}

/* --- its habit --- */

/* The most that it has done while the job moved. The latest of these looks may have shown what it
 * does in a quiet that has begun meanwhile. */
static uint64_t habit_of(const struct rank_work *w, enum habit h)
{
	unsigned first = w->learnt > HABIT_LOOKS ? w->learnt - HABIT_LOOKS : 0, most = 0;

	for (unsigned i = first; i + HABIT_LAG < w->learnt; i++)
		most = w->habits[i % HABIT_LOOKS][h] > most ? w->habits[i % HABIT_LOOKS][h] : most;
	return most;
}

/* Of the last looks, the mean of what lies that far inside struct rank_rates. */
static uint64_t mean_at(const struct rank_work *w, size_t offset)
{
	unsigned looks = w->rated < MEAN_LOOKS ? w->rated : MEAN_LOOKS;
	uint64_t sum = 0;

	for (unsigned i = 0; i < looks; i++)
		sum += *(const unsigned *)(const void *)((const char *)&w->rates[i] + offset);
	return looks > 0 ? sum / looks : 0;
}

#define MEAN(w, field) mean_at(w, offsetof(struct rank_rates, field))

static bool exceeds_that(const struct rank_work *w, enum habit h, enum habit known, unsigned least)
{
	uint64_t habit = habit_of(w, known);

	return mean_at(w, offsetof(struct rank_rates, rest) + h * sizeof(unsigned)) >
		least + habit + habit / 2;
}

static bool exceeds(const struct rank_work *w, enum habit h, unsigned least)
{
	return exceeds_that(w, h, h, least);
}

/* Returns the median of the memory touched while the job moved; 0: not known. */
static int64_t usually_touched(const struct rank_work *w)
{
	unsigned known = w->touched_count < TOUCHED_KEPT ? w->touched_count : TOUCHED_KEPT;

	for (unsigned i = 0; i < known; i++) {
		int64_t mine = w->touched[i];
		unsigned below = 0;

		for (unsigned k = 0; k < known; k++)
			below += w->touched[k] < mine || (w->touched[k] == mine && k < i);
		if (below == (known - 1) / 2)
			return mine;
	}
	return 0;
}

enum touching { TOUCH_UNKNOWN, TOUCH_LITTLE, TOUCH_MUCH };

/* By the least of the last looks: one of them may have fallen on something that was not the loop.
 */
static enum touching touching(const struct rank_work *w)
{
	int64_t part = usually_touched(w) / SPIN_PART;
	int64_t most = part > SPIN_BYTES ? part : SPIN_BYTES;
	enum touching found = TOUCH_UNKNOWN;

	for (unsigned i = 0; i < w->rated; i++) {
		if (w->rates[i].working_set == WORKING_SET_UNKNOWN)
			continue;
		if (w->rates[i].working_set <= most)
			return TOUCH_LITTLE;
		found = TOUCH_MUCH;
	}
	return found;
}

/* --- whether that is work --- */

/* A worker spins for kernels that wait: that is how CUDA waits. If its touched memory is not
 * known, it counts as one of these. */
static bool waits_for_gpu(const struct rank_sight *r)
{
	return (r->now.gpu == GPU_WAITS || r->ops.ahead) && r->now.working_set <= GPU_SPIN_BYTES;
}

/* By its main thread's CPU time alone. A loop that polls uses little of it, but some in each look:
 * if only the looks before have used some, it has stopped. */
static enum acting acting_by_cpu(const struct rank_sight *r)
{
	static const enum acting by[] = {
		[TOUCH_UNKNOWN] = ACTING_RUNS,
		[TOUCH_LITTLE] = ACTING_SPIN,
		[TOUCH_MUCH] = ACTING_WORK,
	};
	enum touching touches = touching(&r->work);

	if (waits_for_gpu(r))
		return ACTING_IDLE;
	if (r->work.rates->main_cpu_ms >= MAIN_CPU_MS)
		return by[touches];
	return touches != TOUCH_LITTLE && r->work.rates->main_cpu_ms > 0 &&
			MEAN(&r->work, main_cpu_ms) >= MAIN_LITTLE_CPU_MS ?
		ACTING_WORK :
		ACTING_IDLE;
}

static bool moves_data(const struct rank_rates *now)
{
	return now->main_bytes >= MAIN_BYTES || now->main_faults >= MAIN_FAULTS;
}

/* Its main thread waits for what others of its tree may bring. */
static bool is_served(const struct rank_sight *r)
{
	enum waiting_in w = r->now.waits;

	return w == WAIT_PIPE || w == WAIT_POLL || w == WAIT_CHILD;
}

/* Of a program that starts each second and reads by calls of about 8 KB, some looks show big bytes:
 * these are to exceed what it has moved by calls of any size. */
static bool rest_works(const struct rank_sight *r)
{
	const struct rank_work *w = &r->work;

	if (is_served(r))
		return exceeds(w, HABIT_KID_CPU, SERVED_CPU_MS) ||
			exceeds(w, HABIT_BYTES, SERVED_BYTES) ||
			exceeds(w, HABIT_WRITTEN, SERVED_BYTES);
	return (!waits_for_gpu(r) && exceeds(w, HABIT_CPU, BESIDE_CPU_MS)) ||
		exceeds_that(w, HABIT_BIG, HABIT_BYTES, BESIDE_BIG_BYTES) ||
		exceeds_that(w, HABIT_BIG_WRITTEN, HABIT_WRITTEN, BESIDE_BIG_BYTES);
}

/* So much is work beside anything; one look may show a burst of a monitor's. */
static bool works_anyway(const struct rank_work *w)
{
	unsigned busy = 0, moved = 0;

	while (busy < w->rated && w->rates[busy].kid_busiest_ms >= KID_BUSY_MS)
		busy++;
	for (unsigned i = 0; i < w->rated && i < MEAN_LOOKS; i++)
		moved += w->rates[i].rest[HABIT_BIG] >= BIG_BYTES;
	return busy >= BUSY_LOOKS ||
		(moved >= BUSY_LOOKS && w->rates->rest[HABIT_BIG] >= BIG_BYTES);
}

/* Little counts if the main thread waits for it, or if it exceeds the habit. */
static bool moves_net(const struct rank_sight *r)
{
	const struct rank_work *w = &r->work;

	return w->rates->net_bytes >= NET_BYTES ||
		(MEAN(w, net_bytes) > SERVED_BYTES &&
			(is_served(r) || exceeds(w, HABIT_NET, SERVED_BYTES)));
}

enum acting rank_acting(const struct rank_sight *r)
{
	enum acting by_cpu;

	if (r->now.state == 'X')
		return ACTING_IDLE;
	if (r->looks < 2 || r->now.state == '?')
		return ACTING_UNSEEN;
	if (r->now.gpu == GPU_BUSY || moves_data(r->work.rates) || rest_works(r) ||
		works_anyway(&r->work))
		return ACTING_WORK;
	by_cpu = acting_by_cpu(r);
	return by_cpu != ACTING_WORK && moves_net(r) ? ACTING_NET : by_cpu;
}
