/* preflight.h - the check of all nodes before an attempt's workers start (--preflight). Each node
 * forks one child, which is daemon/check's checkup; node rank 0 hears the verdict from its own, and
 * no worker starts anywhere before it has said so. */
#ifndef LAUNCHD_DAEMON_RUN_PREFLIGHT_H
#define LAUNCHD_DAEMON_RUN_PREFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/address.h"
#include "daemon/check/checkup.h"
#include "daemon/job/ending.h"
#include "daemon/os/helper.h"

struct check_call;
struct run;
struct sm;

enum preflight_state {
	PREFLIGHT_IDLE,    /* none is going on */
	PREFLIGHT_ASKING,  /* the child is at work */
	PREFLIGHT_WAITING, /* it has ended, and node rank 0's word is awaited */
	PREFLIGHT_ENDING,  /* it is over: nothing of it may be left before what follows */
	PREFLIGHT_STATES,
};

extern const struct sm preflight_life;

struct preflight {
	enum preflight_state state;
	/* The check is over, or was ended, and nothing of it runs any more. */
	void (*on_over)(struct run *r);

	/* to be read: of the attempt's check */
	bool bad;      /* a node is, and --on-bad-node says stop */
	unsigned node; /* the first one that is, its host, and what is bad of it */
	char host[NODE_NAME_SIZE];
	char reason[CAUSE_DETAIL_SIZE];
	const char *exclude; /* the hosts of all that are, "gpu07,gpu12"; the run's arena */

	/* private */
	unsigned wanted; /* phases of the attempt that starts; 0: none */
	bool released; /* node rank 0 has said that workers may start, before this node was ready */
	char address[ADDRESS_TEXT + 16];
	unsigned port;
	uint64_t began_ns;
	struct checkup_input input;
	struct helper helper;
	bool gpus;                 /* a check has found some */
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

/* Another node than node rank 0: the workers may start. */
void preflight_release(struct run *r);

/* Ends it, as the attempt does; on_over follows from the loop, or there was none: false. */
bool preflight_end(struct run *r);

#endif
