/* preflight.h - the check of all nodes before an attempt's workers start (--preflight), phase by
 * phase: each node has a child measure, see daemon/check/checkup.h, and tells node rank 0 what it
 * found. Another child judges there, and no worker starts anywhere before its verdict. */
#ifndef LAUNCHD_DAEMON_RUN_PREFLIGHT_H
#define LAUNCHD_DAEMON_RUN_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "daemon/check/checkup.h"
#include "daemon/cluster/party.h"
#include "daemon/job/ending.h"
#include "daemon/os/helper.h"
#include "daemon/run/check_round.h"
#include "daemon/run/check_words.h"

struct message_check;
struct run;
struct sm;

enum preflight_state {
	PREFLIGHT_IDLE,    /* none is going on */
	PREFLIGHT_ASKING,  /* this node is measured */
	PREFLIGHT_WAITING, /* that was told, and others or node rank 0's word are awaited */
	PREFLIGHT_JUDGING, /* node rank 0's: all that was told */
	PREFLIGHT_ENDING,  /* it is over: nothing of it may be left before what follows */
	PREFLIGHT_STATES,
};

extern const struct sm preflight_life;

struct preflight {
	enum preflight_state state;
	/* The check is over, or was ended, and nothing of it runs any more. */
	void (*on_over)(struct run *r);

	/* to be read: of the attempt's check */
	bool bad; /* a node is, and --on-bad-node says stop */
	struct check_bad worst;

	/* private */
	struct check_call call; /* how the attempt that starts is checked */
	bool released; /* node rank 0 has said that workers may start, before this node was ready */
	unsigned phase;
	bool due, said, told; /* in this phase: not begun yet; and what this node has done */
	uint64_t began_ns, called_ms, phase_ms; /* the check; uv_now(): called, the phase began */
	struct phase_input input;
	struct helper measurer, judge;
	int talk[2]; /* with the measurer; -1: none */
	uv_poll_t heard;
	uv_timer_t clock, meeting; /* node rank 0's: for what nodes tell, and for what they say */
	unsigned handles;          /* of these, not closed yet */
	struct check_round round;
	bool *absent;                    /* by node */
	struct checkup_verdict *verdict; /* of the phases so far; NULL: not node rank 0 */
	bool gpus;                       /* a check has found some */
	pid_t left[SURVIVORS_MAX]; /* processes of the attempt before that could not be ended */
	unsigned left_count;
};

/* The attempt that starts next is checked so. */
void preflight_call(struct run *r, const struct check_call *c);

/* Whether the attempt must be checked still. */
bool preflight_is_due(const struct run *r);

/* Begins; on_over follows, now or later. */
void preflight_start(struct run *r);

/* The job's first attempt begins: what is free where it writes is read, where a later attempt's
 * check would ask for it. */
void preflight_begin(struct run *r);

/* The attempt's workers are about to start: from now on this node's GPUs are watched, where a later
 * attempt's check would ask what has become of them. */
void preflight_watch(struct run *r);

/* These processes of an attempt could not be ended: the next attempt's gate asks about them. */
void preflight_left(struct run *r, const struct survivor *left, unsigned count);

/* A word of the check has come, from node rank 0 or there from another node. */
void preflight_word(struct run *r, unsigned node, const struct message_check *m);

/* Another node than node rank 0: the workers may start. */
void preflight_release(struct run *r);

/* The job is over: gives back what is kept for a check that never began. */
void preflight_forget(struct run *r);

/* Ends it, as the attempt does; on_over follows from the loop, or there was none: false. */
bool preflight_end(struct run *r);

#endif
