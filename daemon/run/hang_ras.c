/* hang_ras.c - see hang_ras.h */
#include "daemon/run/hang_ras.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "daemon/blackbox/ras_ask.h"
#include "daemon/blackbox/ras_talk.h"
#include "daemon/os/nvidia.h"
#include "daemon/run/rounds.h"
#include "daemon/witness/ras_counts.h"
#include "daemon/workers/worker.h"

enum {
	EVERY_MS = 4000,
	ASK_MS = 8000, /* NCCL waits 3 s for its processes, some of them one after the other */
	STALE_MS = 20000,
	ANSWER_MAX = 64 << 20, /* 700 bytes of each rank of a communicator */
	LINE_BYTES = 96,
};

/* Shared with the child. */
struct ras_heard {
	struct helper_answer helper;
	struct rounds rounds; /* of each answer */
};

/* In the child. */
struct ras_asking {
	char address[RAS_ADDRESS_SIZE];
	struct ras_counts last;
	struct rank_ops *ops;
	uint64_t since_ms; /* that the last counts have stood; 0: there are none */
};

static struct ras_heard *heard_of(const struct hang_ras *r)
{
	return (struct ras_heard *)r->helper.answer;
}

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* --- in the child --- */

static void add_ranks(
	const struct hang_ras *r, struct ras_asking *a, uint32_t still_ms, struct text *out)
{
	if (!ras_counts_judge(&a->last, r->workers, r->count, r->ranks, a->ops))
		return;
	for (unsigned i = 0; i < r->ranks; i++) {
		a->ops[i].still_ms = still_ms;
		if (a->ops[i].known)
			rank_ops_add(out, i, &a->ops[i]);
	}
}

/* What an answer says beside the one before; of the first little follows yet. */
static void hear(const struct hang_ras *r, struct ras_asking *a, struct ras_counts *now,
	uint64_t asked_ms, struct text *out)
{
	bool first = a->since_ms == 0, moved = !first && ras_counts_moved(&a->last, now);

	if (first || moved)
		a->since_ms = asked_ms;
	ras_counts_done(&a->last);
	a->last = *now;
	text_printf(out, "%sops ras %zu\n", moved ? "ops moved\n" : "", now->bytes);
	if (!first && !moved)
		add_ranks(r, a, (uint32_t)(now_ms() - a->since_ms), out);
}

/* An answer that doesn't come, or can't be read, says nothing. */
static int ask_once(const struct hang_ras *r, struct ras_asking *a)
{
	struct text answer = { 0 }, out = { 0 };
	uint64_t asked_ms = now_ms();
	struct ras_counts now;
	int rc = ras_ask(a->address, RAS_QUESTION, ASK_MS, ANSWER_MAX, &answer);

	if (rc == 0 && ras_counts_read(text_string(&answer), answer.len, &now) == 0) {
		hear(r, a, &now, asked_ms, &out);
		rounds_tell(&heard_of(r)->rounds, r->room, &out, now_ms());
	}
	text_done(&answer);
	text_done(&out);
	return rc;
}

/* False: it is switched off, or unknown: at NCCL's own port another job might answer. All
 * workers of a node have the same, by whomever it was set. */
static bool find_address(const struct hang_ras *r, char ret[RAS_ADDRESS_SIZE])
{
	int rc = 0;

	for (unsigned i = 0; i < r->count && rc == 0; i++)
		if (r->workers[i].pid > 0)
			rc = ras_address_of((pid_t)r->workers[i].pid, ret);
	return rc > 0;
}

/* Until it is killed, or there is nobody to ask: where no GPU is, none will come. */
static void work(struct helper *h)
{
	struct hang_ras *r = h->owner;
	struct ras_asking a = { 0 };
	const struct timespec pause = { .tv_sec = EVERY_MS / 1000 };

	if (!find_address(r, a.address))
		return;
	a.ops = calloc(r->ranks, sizeof *a.ops);
	if (!a.ops)
		return;
	while (ask_once(r, &a) != -ECONNREFUSED || nvidia_gpus_here())
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	free(a.ops);
}

/* --- in the supervisor --- */

static void on_end(struct helper *h, bool succeeded)
{
	struct hang_ras *r = h->owner;

	r->over = succeeded;
	helper_close(h);
}

void hang_ras_renew(struct hang_ras *r)
{
	r->over = false;
}

void hang_ras_start(struct hang_ras *r, uv_loop_t *loop, const struct worker *workers,
	unsigned count, unsigned ranks, char **argv)
{
	if (r->over || count == 0 || r->helper.state != HELPER_NONE)
		return;
	free(r->workers);
	r->workers = calloc(count, sizeof *r->workers);
	if (!r->workers)
		return;
	for (unsigned i = 0; i < count; i++)
		r->workers[i] = (struct ras_worker){
			.pid = worker_is_alive(&workers[i]) ? workers[i].outcome.pid : 0,
			.rank = workers[i].outcome.rank,
		};
	r->count = count;
	r->ranks = ranks;
	r->room = ((size_t)ranks + 1) * LINE_BYTES;
	r->taken = 0;
	r->stale = true;
	r->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = r,
		.name = "hang-ras",
		.argv = argv,
		.group = true,
		.lasting = true,
	};
	(void)helper_start(&r->helper, loop, sizeof(struct ras_heard) + 2 * r->room, 0);
}

void hang_ras_take(struct hang_ras *r, struct text *out)
{
	const struct rounds *h = r->helper.state == HELPER_RUNNING ? &heard_of(r)->rounds : NULL;

	if (h && rounds_take(h, r->room, &r->taken, out)) {
		r->stale = false;
	} else if (!r->stale && (!h || now_ms() - atomic_load(&h->at_ms) > STALE_MS)) {
		text_add(out, "ops ras 0\n");
		r->stale = true;
	}
}

void hang_ras_stop(struct hang_ras *r)
{
	helper_close(&r->helper);
	free(r->workers);
	r->workers = NULL;
}
