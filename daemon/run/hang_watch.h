/* hang_watch.h - --on-hang: how quiet this node's workers are, and on node rank 0 what that means
 * for the job.
 *
 * A timer asks once a second for what is free to know: whether workers have written anything. A
 * node that is quiet says so to node rank 0, and when they all are, and looks show no workers that
 * talk, each node looks at its workers once a second, until something moves again; before that now
 * and then, for what they do while it moves. Node rank 0 judges what all have seen; see
 * witness/detector.h.
 *
 * Without --on-hang a job of several workers has the modest form: nothing happens before a minute
 * has passed, then every 10 s; a node is quiet after a minute; looks are taken while all are, and
 * leave the workers' memory alone; neither NVML nor RAS is asked; and node rank 0 speaks only of
 * what is certain. In both forms a worker that lives on below its traceback is named. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_WATCH_H
#define LAUNCHD_DAEMON_RUN_HANG_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/run/hang_gpus.h"
#include "daemon/run/hang_judge.h"
#include "daemon/run/hang_look.h"
#include "daemon/run/hang_ras.h"
#include "daemon/run/watch/traceback.h"

struct bus;
struct member;
struct message_hang;
struct output;
struct plan;
struct pool;
struct steps;
struct tails;

struct hang_watch {
	/* the owner's, before it enters; all are borrowed */
	const struct pool *pool;
	const struct bus *bus;
	struct output *output;
	const struct steps *steps; /* of --progress */
	struct member *member;
	char **argv; /* as struct helper has it */
	/* On node rank 0: the attempt is to end, and why. */
	void (*end)(void *owner, const char *why);
	/* On every node: what can be known is to be kept, and why. The job goes on. */
	void (*dump)(void *owner, const char *why);
	void *owner;
	const struct plan *plan; /* before it starts */

	/* private, but for the suspicion and the judge */
	unsigned attempt, store_port;
	uv_timer_t tick;
	bool open, works, looks;   /* looks: node rank 0 wants it */
	bool told, told_quiet;     /* what node rank 0 knows */
	uint64_t bytes;            /* that workers have written */
	uint64_t signs;            /* of life, by --progress */
	uint64_t moved_ms, now_ms; /* now: at the last tick */
	uint64_t due_ms;           /* that the next one is */
	uint64_t tick_ms, quiet_ms;
	bool said_blind;     /* that looks never finish */
	char suspicion[400]; /* what node rank 0 thinks; "": nothing */
	struct hang_look look;
	struct hang_gpus gpus;
	struct hang_ras ras; /* on node rank 0, as is the judge */
	struct hang_judge judge;
	struct traceback_watch traceback;
};

/* Into the loop; out of it, also where it never was in it. */
void hang_watch_enter(struct hang_watch *w, uv_loop_t *loop);
void hang_watch_leave(struct hang_watch *w);

/* The workers of an attempt run; they end. Nothing where --on-hang is off. */
void hang_watch_start(struct hang_watch *w, unsigned attempt, unsigned store_port);
void hang_watch_stop(struct hang_watch *w);

/* The workers' last lines: this or another one has asked for them. NULL: there is no memory. */
void hang_watch_hear(struct hang_watch *w, const struct tails *tails);

/* Node rank 0 has told. */
void hang_watch_told(struct hang_watch *w, const struct message_hang *told);

#endif
