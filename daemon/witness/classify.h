/* classify.h - what kind of hang looks at all workers show, if they show one. Pure.
 *
 * What tells most is who talks to whom. In a collective over TCP (gloo, NCCL's sockets) every rank
 * that has entered it has sent something since the last one, so between two ranks the end that is
 * waited for has heard the other since it has last sent, and the other end waits. The outsider is
 * the one that others wait for and that has sent nothing to anybody since: whatever it does, a lock
 * or a sleep, and however many threads of it tick. Where all have entered and still wait, they have
 * entered different collectives (desync), or their packets are not acknowledged (the network). */
#ifndef LAUNCHD_DAEMON_WITNESS_CLASSIFY_H
#define LAUNCHD_DAEMON_WITNESS_CLASSIFY_H

#include "daemon/witness/ras_counts.h"
#include "daemon/witness/sample.h"

enum hang_class {
	HANG_NONE,
	HANG_STOPPED, /* a worker, or what it has started, is stopped or stuck in the kernel */
	HANG_OUTSIDE, /* some are not in what all others wait in */
	HANG_ALL_WAIT,
	HANG_DESYNC, /* all wait, but not in the same */
	HANG_SPINNING,
	HANG_CLASSES,
};

/* "all_wait" */
const char *hang_class_word(enum hang_class c);

enum acting {
	ACTING_UNSEEN, /* there were no two looks at it yet */
	ACTING_IDLE,
	ACTING_TALK, /* it only sends or hears */
	ACTING_SPIN, /* it uses CPU time, and touches next to no memory */
	ACTING_WORK,
};

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
	unsigned looks;                   /* so far, up to 2 */
	bool judged;                      /* both looks were */
	struct standing standing;         /* by ranks_connect() */
	char awaits[STORE_KEY_SHOWN + 1]; /* a key of the store; "": it waits for none */
	bool late;           /* its monitor of NCCL asks the store no more, as those of others do */
	struct rank_ops ops; /* by NCCL */
};

enum { FINDING_RANKS = 16 };

struct hang_finding {
	enum hang_class class;
	unsigned ranks[FINDING_RANKS]; /* that it is about; none: all are alike */
	unsigned count;                /* may be larger than FINDING_RANKS */
	char why[160];                 /* "it sleeps, and has sent nothing for 12 s" */
	bool third_party;              /* STOPPED: by SIGSTOP, of neither launchd nor a terminal */
	bool may_return;               /* STOPPED: in the kernel; a file server may answer again */
};

/* What it did between the two looks. */
enum acting rank_acting(const struct rank_sight *r);

/* One end of a connection: room for the next function. */
struct talk_end {
	uint64_t id;
	unsigned rank, index;
};

/* Finds out who talks to whom. room: TALKS_MAX for each of them. */
void ranks_connect(struct rank_sight *all, unsigned count, struct talk_end *room);

enum at_work {
	NOBODY_WORKS,
	SOCKETS_WORK, /* only that: what NCCL's RAS keeps alive, or workers */
	SOMEBODY_WORKS,
};

/* Whether anybody did something that a hung job does not do. */
enum at_work anybody_works(const struct rank_sight *all, unsigned count);

/* Of a job in which nobody works; after ranks_connect(), as the one before. HANG_NONE: that looks
 * like no hang, or nobody can tell. */
void hang_classify(const struct rank_sight *all, unsigned count, struct hang_finding *ret);

/* Adds "rank 3 is outside what all others wait in: it sleeps". */
void finding_describe(const struct hang_finding *f, struct text *out);

bool finding_is_same(const struct hang_finding *a, const struct hang_finding *b);

#endif
