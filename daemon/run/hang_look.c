/* hang_look.c - see hang_look.h */
#include "daemon/run/hang_look.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/os/procfs.h"
#include "daemon/run/hang_gpus.h"
#include "daemon/run/rounds.h"
#include "daemon/workers/worker.h"

enum {
	LINE_BYTES = 1280, /* of one worker, at the most */
	/* while the job moves */
	FIRST_LOOKS = 60,     /* once a second; then */
	PERIOD_S = 5,         /* in which there are */
	PAIR = 2,             /* of them, a second apart, as in a quiet */
	MEMORY_TRIED_MAX = 3, /* how often each worker's memory is looked at, one of them a pair */
	MODEST_S = 10,
	SILENT_TICKS = 4, /* it has looked in these, unless it is stuck */
	DOUBLINGS = 3,
	BLIND_AFTER = 3,
	WELL_AFTER = 3, /* looks of one child */
	WARY_LOOKS = 600,
	AT_NOBODY = 0,
};

/* Which look is due, in the child. */
struct pace {
	unsigned quiet_looks; /* since the job is quiet */
	unsigned moving_looks, moving_s;
};

/* Shared with the child. */
struct rounds_seen {
	struct helper_answer helper;
	_Atomic unsigned at; /* the worker that is looked at: 1 is the first one */
	_Atomic bool quiet;
	struct rounds rounds;
};

static struct rounds_seen *seen_of(const struct hang_look *l)
{
	return (struct rounds_seen *)l->helper.answer;
}

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* Once a second: whether a look is due. */
static bool is_due(struct pace *p, bool quiet)
{
	if (quiet) {
		p->quiet_looks++;
		return true;
	}
	if (p->quiet_looks > 0) { /* a pair begins */
		p->quiet_looks = 0;
		p->moving_s = 0;
		p->moving_looks += p->moving_looks % PAIR;
	}
	if (p->moving_looks >= FIRST_LOOKS && p->moving_s++ % PERIOD_S >= PAIR)
		return false;
	p->moving_looks++;
	return true;
}

/* A walk through memory is expensive: while the job moves, one worker's in two looks. */
static enum memory_look memory_due(const struct hang_look *l, const struct pace *p, unsigned worker)
{
	/* anew after the first ones: what a job touches that starts is not its habit */
	unsigned looks = p->moving_looks - (p->moving_looks > FIRST_LOOKS ? FIRST_LOOKS : 0);
	unsigned turn = (looks - 1) / PAIR, count = l->count;

	if (l->modest)
		return MEMORY_LEFT;
	if (p->quiet_looks > 0)
		return MEMORY_WATCHED;
	return turn % count == worker && turn / count < MEMORY_TRIED_MAX ? MEMORY_TRIED :
									   MEMORY_LEFT;
}

/* In the child. */
static void look_once(
	struct hang_look *l, const struct pace *p, struct worker_sample *samples, struct text *out)
{
	struct rounds_seen *s = seen_of(l);

	for (unsigned i = 0; i < l->count; i++) {
		atomic_store(&s->at, i + 1);
		look_at_worker(&l->workers[i], now_ms(), memory_due(l, p, i), &samples[i]);
		samples[i].gpu = l->gpus ? hang_gpus_tell(l->gpus, i) : GPU_NONE;
	}
	atomic_store(&s->at, AT_NOBODY);
	(void)talks_add(&l->talks, l->workers, samples, l->count);
	for (unsigned i = 0; i < l->count; i++)
		sample_add(out, &samples[i]);
	rounds_tell(&s->rounds, l->room, out, now_ms());
}

/* Looks that were missed are not made up for: two of them tell little that are no second apart. */
static void next_due(const struct hang_look *l, struct timespec *due)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	due->tv_sec += l->modest ? MODEST_S : 1;
	if (now.tv_sec > due->tv_sec || (now.tv_sec == due->tv_sec && now.tv_nsec > due->tv_nsec))
		*due = now;
}

/* In the child, until it is killed. */
static void work(struct helper *h)
{
	struct hang_look *l = h->owner;
	struct worker_sample *samples = calloc(l->count, sizeof *samples);
	struct pace pace = { 0 };
	struct timespec due;

	if (!samples)
		helper_fail(h, "out of memory");
	(void)clock_gettime(CLOCK_MONOTONIC, &due);
	for (;;) {
		struct text out = { 0 };

		if (is_due(&pace, l->modest || atomic_load(&seen_of(l)->quiet)))
			look_once(l, &pace, samples, &out);
		text_done(&out);
		next_due(l, &due);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
}

static void on_end(struct helper *h, bool succeeded)
{
	(void)succeeded;
	helper_close(h); /* the next quiet starts another one */
}

void hang_look_start(struct hang_look *l, uv_loop_t *loop, const struct worker *workers,
	unsigned count, unsigned store_port, unsigned node, char **argv)
{
	if (l->helper.state != HELPER_NONE || proc_look() != PROC_OURS)
		return;
	if (!l->workers) /* else this child takes the place of another */
		l->workers = calloc(count, sizeof *l->workers);
	if (!l->workers)
		return;
	for (unsigned i = 0; i < count; i++) {
		l->workers[i].pid = worker_is_alive(&workers[i]) ? workers[i].outcome.pid : 0;
		l->workers[i].rank = workers[i].outcome.rank;
	}
	l->count = count;
	l->talks = (struct talks){ .store_port = store_port, .node = node };
	l->room = (size_t)count * LINE_BYTES;
	l->taken = l->looked = 0;
	l->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = l,
		.name = "hang-look",
		.argv = argv,
		.group = true,
		.lasting = true,
	};
	(void)helper_start(&l->helper, loop, sizeof(struct rounds_seen) + 2 * l->room, 0);
}

void hang_look_quiet(struct hang_look *l, bool quiet)
{
	l->quiet = quiet;
	if (l->helper.state == HELPER_RUNNING)
		atomic_store(&seen_of(l)->quiet, quiet);
}

/* No look has finished for a while, so what was seen before is old. */
static void forget_looks(const struct hang_look *l, uint64_t now_ms, struct text *out)
{
	for (unsigned i = 0; i < l->count; i++)
		if (l->workers[i].pid > 0)
			text_printf(out, "rank=%u at=%" PRIu64 " state=? mcpu=0\n",
				l->workers[i].rank, now_ms);
}

/* The next one reads only what can't block of the worker at which this one is stuck, perhaps as it
 * was stopped there. */
static void give_up_child(struct hang_look *l)
{
	unsigned at = l->helper.state == HELPER_RUNNING ? atomic_load(&seen_of(l)->at) : AT_NOBODY;

	if (at != AT_NOBODY && at <= l->count)
		l->workers[at - 1].wary_looks = WARY_LOOKS;
	l->failed++;
	l->silent = 0;
	helper_close(&l->helper);
}

void hang_look_take(struct hang_look *l, uint64_t now_ms, struct text *out)
{
	unsigned doubled = l->failed < DOUBLINGS ? l->failed : DOUBLINGS;

	if (!l->workers)
		return;
	if (l->helper.state == HELPER_RUNNING &&
		rounds_take(&seen_of(l)->rounds, l->room, &l->taken, out)) {
		l->silent = 0;
		if (++l->looked >= WELL_AFTER)
			l->failed = 0;
		return;
	}
	if (!l->quiet)
		l->silent = 0;
	else if (++l->silent == SILENT_TICKS)
		forget_looks(l, now_ms, out);
	if (l->silent >= (unsigned)SILENT_TICKS << doubled)
		give_up_child(l);
}

bool hang_look_is_blind(const struct hang_look *l)
{
	return l->failed >= BLIND_AFTER;
}

void hang_look_stop(struct hang_look *l)
{
	helper_close(&l->helper);
	free(l->workers);
	l->workers = NULL;
	l->silent = 0;
}
