/* rank_sight.h - what is known of a worker by looks at it: what it does, and where it stands in who
 * talks to whom. Pure.
 *
 * In a collective over TCP (gloo, NCCL's sockets) every rank that has entered it has sent something
 * since the last one, so between two ranks the end that is waited for has heard the other since it
 * has last sent, and the other end waits. The outsider is the one that others wait for and that has
 * sent nothing to anybody since: whatever it does, a lock or a sleep, and however many threads of
 * it tick. */
#ifndef LAUNCHD_DAEMON_WITNESS_RANK_SIGHT_H
#define LAUNCHD_DAEMON_WITNESS_RANK_SIGHT_H

#include "daemon/witness/rank_work.h"
#include "daemon/witness/ras_counts.h"
#include "daemon/witness/sample.h"

enum { STORE_KEY_SHOWN = 48 };

/* What the connections of a worker with other workers say together. */
struct standing {
	unsigned waited_for, waits; /* connections */
	uint32_t heard_ms;          /* the oldest that came of those who wait for it */
	uint32_t sent_ms;           /* the youngest that it has sent to any worker */
	uint32_t gap_ms;            /* the longest silence that was broken by what it waits with */
	bool known;                 /* there are some */
	bool talks;                 /* since the last look */
	bool unacked, unacked_away; /* away: by who is not seen */
	bool behind; /* an outsider has heard of others since it last heard of this one */
};

/* What is known of a worker. */
struct rank_sight {
	struct worker_sample before, now;
	unsigned looks;                   /* since something has moved, up to 2 */
	bool fresh;                       /* there was no judgement since the latest */
	unsigned left_out;                /* of its habit, so many looks from now on */
	struct rank_work work;            /* by looks before and at that judgement */
	struct standing standing;         /* by ranks_connect() */
	char awaits[STORE_KEY_SHOWN + 1]; /* a key of the store; "": it waits for none */
	bool late;           /* its monitor of NCCL asks the store no more, as those of others do */
	struct rank_ops ops; /* by NCCL */
};

/* One end of a connection: room for the next function. */
struct talk_end {
	uint64_t id;
	unsigned rank, index;
};

/* Finds out who talks to whom. room: TALKS_MAX for each of them. */
void ranks_connect(struct rank_sight *all, unsigned count, struct talk_end *room);

/* What a hung job does not do. */
struct at_work {
	bool talk; /* workers, with one another */
	bool net;  /* somebody, with somebody else */
	bool cpu;  /* somebody, who perhaps spins */
	bool work;
	bool lasts; /* one of these but talk, in some looks in a row, by one worker */
};

/* Judges the new looks. */
struct at_work ranks_at_work(const struct rank_sight *all, unsigned count);

/* There are two looks at it. */
bool rank_is_seen(const struct rank_sight *r);

/* How many are not, as their node does not answer; *ret_first: the first of them, if there is one.
 */
unsigned ranks_unseen(const struct rank_sight *all, unsigned count, unsigned *ret_first);

/* The kernel's ticks can't order them. */
bool moments_are_close(uint32_t a_ms, uint32_t b_ms);

/* Others wait for it, and it has sent nothing since it heard of them. */
bool standing_is_outside(const struct standing *s);

#endif
