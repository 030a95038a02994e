/* hang_look.h - a child that looks at this node's workers: once a second while the job is quiet.
 * While it moves, what they do is their habit: for that a minute of such looks will do, and then
 * two of them now and then.
 *
 * The supervisor does not wait for it. While a look does not finish, all workers of this node are
 * unknown; the child is killed and replaced. Each one in a row that gets stuck soon has twice the
 * time of the one before, up to half a minute. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_LOOK_H
#define LAUNCHD_DAEMON_RUN_HANG_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"
#include "daemon/witness/talks.h"

struct hang_gpus;
struct text;
struct worker;

/* Begins as { 0 }. */
struct hang_look {
	/* the owner's */
	const struct hang_gpus *gpus; /* NULL: there are none */
	bool modest; /* it is started in a quiet, looks every 10 s, and leaves workers' memory alone
		      */

	struct helper helper; /* private, as is the rest */
	struct looked *workers;
	struct talks talks;
	unsigned count;
	size_t room;     /* for the text of one round */
	unsigned taken;  /* the last round that was */
	bool quiet;      /* the job is */
	unsigned silent; /* calls of hang_look_take() without a new one, in a quiet */
	unsigned looked; /* rounds of this child */
	unsigned failed; /* children in a row that got stuck, each after a few looks at most */
};

/* Starts the child, if none runs. workers: of this node, `count` of them; argv as struct helper has
 * it. If that fails, or /proc is missing or another namespace's, the workers are never seen. */
void hang_look_start(struct hang_look *l, uv_loop_t *loop, const struct worker *workers,
	unsigned count, unsigned store_port, unsigned node, char **argv);

/* Whether the job is quiet: it is not at first. */
void hang_look_quiet(struct hang_look *l, bool quiet);

/* As often as it looks, after hang_look_start(): adds what the child has seen since the last call,
 * as sample.h has it, or that these workers are unknown. now_ms: on this node's clock.
 */
void hang_look_take(struct hang_look *l, uint64_t now_ms, struct text *out);

/* Several in a row got stuck. */
bool hang_look_is_blind(const struct hang_look *l);

/* Ends the child; the loop runs on until it has. */
void hang_look_stop(struct hang_look *l);

#endif
