/* history.h - what became of a job's attempts, and what their failures have in common. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_HISTORY_H
#define LAUNCHD_DAEMON_JOB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/ending.h"

struct arena;
struct evidence;
struct text;

enum {
	CRASH_SITE_SIZE = 192,
	REASON_SIZE = 160,
	PAST_KEPT = 64, /* attempts that are kept whole: the last ones */
};

/* Where an exception came from, as far as a worker's own words tell. */
struct crash_site {
	char text[CRASH_SITE_SIZE]; /* "ValueError at train.py:42 in step"; "": not known */
	/* It tells of the GPU or of NCCL: such an exception comes from the same line whatever the
	 * program does, and says nothing against it. */
	bool device;
	bool hardware; /* in words that speak of broken hardware, and not of what the program did */
};

/* Of an error file, else of the last lines. */
void crash_site_find(const struct evidence *said, struct crash_site *ret);

/* An attempt that is over. Times are on the clock of node rank 0. */
struct past_attempt {
	unsigned attempt;
	enum cause_kind cause;
	bool has_culprit;
	unsigned rank, local_rank, node; /* the culprit's; else node is the cause's */
	struct crash_site site;
	uint64_t started_ns, ended_ns;
	bool has_step;
	uint64_t step;            /* the newest of this attempt */
	bool progressed;          /* that is beyond all attempts before */
	bool restarts;            /* another attempt follows */
	char reason[REASON_SIZE]; /* of that: "restart 1 of at most 3", "the limit is reached" */
};

/* How many attempts failed first in one place and in one way. Of a job's thousand attempts these
 * are few. */
struct place_tally {
	unsigned node, local_rank;
	struct crash_site site;
	unsigned times;
};

/* Begins as { 0 }; memory is the job's arena's. */
struct history {
	struct past_attempt *at;    /* a ring: see history_nth() */
	unsigned room;              /* there, PAST_KEPT at most */
	unsigned total;             /* that were ever added */
	struct place_tally *places; /* of all of them */
	unsigned place_count, place_room;
	bool any_step;
	uint64_t best_step;
	unsigned idle; /* failed attempts in a row, up to now, that have not progressed */
	/* --restart-window: when restarts that count were decided, the oldest first */
	uint64_t *decided_ns;
	unsigned decided, decided_room;
};

/* The n-th of those that are remembered, from the oldest, and how many there are. */
const struct past_attempt *history_nth(const struct history *h, unsigned n);
unsigned history_count(const struct history *h);

/* Adds an attempt that is not decided on yet. NULL: there is no memory. */
struct past_attempt *history_add(
	struct history *h, const struct past_attempt *past, struct arena *arena);

/* The restart that was decided last does not come to be. */
void history_withdraw(struct history *h, const char *why);

/* A restart that counts was decided; those of before `since_ns` are forgotten. */
void history_note_restart(
	struct history *h, uint64_t now_ns, uint64_t since_ns, struct arena *arena);

/* How many of them were since then. */
unsigned history_restarts_since(const struct history *h, uint64_t since_ns);

/* Whether the last attempt failed as the one before did: with the same exception from the same
 * line, which tells of no device. */
bool history_repeats(const struct history *h);

/* How often the place where the last attempt failed first was the first to fail, the last time
 * included: its node, or on one node its local rank. The same exception from the same line is the
 * program's own: the times that it accounts for don't count, but where it tells of a device.
 * ret_gpu: it was the same local rank each time. 0: there is no such place, or it is the first
 * time.
 */
unsigned history_place(const struct history *h, unsigned nnodes, size_t workers, bool *ret_gpu);

/* Whether the last attempt and another one failed first on the same node, both in words that speak
 * of hardware. */
bool history_blames_hardware(const struct history *h);

/* Adds that in words: "node 1 (gpu07) was the first to fail in 2 of 3 attempts, local rank 3 each
 * time". nodes: by node rank. False, and nothing is added: there is no such place. */
bool history_place_add(const struct history *h, const struct node *nodes, unsigned nnodes,
	size_t workers, struct text *out);

#endif
