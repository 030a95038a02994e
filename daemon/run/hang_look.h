/* hang_look.h - a child that looks at this node's workers: once a second while the job is quiet.
 * While it moves, what they do is their habit: for that a minute of such looks will do, and then
 * two of them now and then. Nobody waits for it: where it hangs, as a file system under a worker
 * does, that is seen too. */
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
	const struct hang_gpus *gpus; /* the owner's; NULL: there are none */
	struct helper helper;         /* private, as is the rest */
	struct looked *workers;
	struct talks talks;
	unsigned count;
	size_t room;    /* for the text of one round */
	unsigned taken; /* the last round that was */
};

/* Starts the child, where none runs. workers: of this node, `count` of them; argv as struct helper
 * has it. Where that fails nothing is seen. */
void hang_look_start(struct hang_look *l, uv_loop_t *loop, const struct worker *workers,
	unsigned count, unsigned store_port, unsigned node, char **argv);

/* Whether the job is quiet: it is not at first. */
void hang_look_quiet(struct hang_look *l, bool quiet);

/* Adds what it has seen since the last call, as sample.h has it. False: it has seen nothing new. */
bool hang_look_take(struct hang_look *l, struct text *out);

/* The rank of the worker at which it looks now. False: there is no child. */
bool hang_look_at(const struct hang_look *l, unsigned *ret_rank);

/* Ends the child; the loop runs on until it has. */
void hang_look_stop(struct hang_look *l);

#endif
