/* pool.h - all workers of one attempt on this node: started together, ended together. */
#ifndef LAUNCHD_DAEMON_WORKERS_POOL_H
#define LAUNCHD_DAEMON_WORKERS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/job/ending.h"
#include "daemon/workers/cells.h"
#include "daemon/workers/deaths.h"
#include "daemon/workers/leftovers.h"

struct attempt;
struct failure;
struct inherited;
struct output;
struct plan;
struct sm;

enum { POOL_UNKILLED_MS = 10000 }; /* for workers that SIGKILL has not ended: GPUs are freed */

enum pool_state {
	POOL_STARTING,
	POOL_RUNNING,
	POOL_HOLDING,   /* they are to be ended, and are looked at before that: --blackbox-hold */
	POOL_STOPPING,  /* every worker was asked to stop; one grace runs for all */
	POOL_KILLING,   /* the grace is over: SIGKILL is sent */
	POOL_LINGERING, /* no worker is left, but some of what they started: it has a grace, too */
	POOL_ENDED,     /* nothing is left, or nothing that SIGKILL can end */
	POOL_STATES,
};

struct pool {
	enum pool_state state;
	const struct plan *plan;
	uv_loop_t *loop;
	struct worker *workers; /* plan->start_count of them; the pool's */
	size_t alive;
	struct deaths deaths;
	struct worker *culprit;   /* the first failure; NULL: none so far; what we ended is none */
	struct cause cause;       /* why the job ends; the first one counts */
	struct cgroup_leaf *leaf; /* the owner's, set before the start; may be none */
	struct oom_watch *oom;    /* likewise */
	struct output *output;    /* likewise; NULL: workers inherit stdout and stderr */
	struct cells cells;       /* in the leaf */
	struct leftovers left;
	bool seen; /* before_stop() was called */
	struct {
		int signal;
		uint64_t grace_ms;
	} held;         /* what is to follow, in POOL_HOLDING */
	bool suspended; /* the workers' groups are stopped, and a job that ends wakes them */
	uv_timer_t grace, look;
	unsigned handles; /* of these and of the deaths, that are closing */

	/* Called once, before the first signal goes out or, where all have ended by themselves and
	 * one of them failed, then: why the attempt ends stands in `cause`. Returns for how long
	 * the workers are to be left alone, unless pool_release() comes first; 0: not at all. May
	 * be NULL. */
	uint64_t (*before_stop)(struct pool *p);
	/* called when a worker was started, or could not be, as its outcome tells */
	void (*on_worker_started)(struct pool *p, const struct worker *w);
	/* called when the pool by itself has begun to end its workers, POOL_STOPPING, or to kill
	 * them, as the grace is over, POOL_KILLING */
	void (*on_stopping)(struct pool *p);
	/* called when a worker has ended, in the order of death */
	void (*on_worker_ended)(struct pool *p, const struct worker *w);
	/* called once, when the first worker has failed: p->culprit, by p->cause */
	void (*on_failed)(struct pool *p);
	/* called once: no worker and no handle is left */
	void (*on_ended)(struct pool *p);
	void *owner;
};

/* Of enum pool_state. */
extern const struct sm pool_life;

/* Makes the workers of an attempt, unstarted. -ENOMEM. pool_done() in either case. */
int pool_init(struct pool *p, uv_loop_t *loop, const struct plan *plan,
	const struct attempt *attempt, struct failure *why);

/* Starts them all. If one can't be started, the others are ended in order and it is the first
 * failure. on_ended follows from the loop in every case, unless this fails outright: then no worker
 * was started, and the loop holds nothing of it. */
int pool_start(struct pool *p, const struct attempt *attempt, const struct inherited *inherited,
	struct failure *why);

/* Ends the job: the signal goes to every worker, and SIGKILL follows when the grace is over. While
 * it ends already: a signal that launchd has got goes out again, and the shorter grace counts; any
 * other cause has no more to add than that. False, here and in the two below: there was nothing to
 * do. */
bool pool_stop(struct pool *p, const struct cause *cause, int signal, uint64_t grace_ms);

/* A worker, which may have ended, has sent launchd a signal that ends the job: its failure, unless
 * the attempt ends already. */
void pool_fail(struct pool *p, struct worker *w, int signal);

/* Whatever held up the end is over. */
void pool_release(struct pool *p);

/* Leaves what is stopping already that much of its grace, at most. */
void pool_cut(struct pool *p, uint64_t grace_ms);

/* Cuts what is left of the grace to a quarter of the whole, 5 s at most. */
bool pool_hurry(struct pool *p, uint64_t grace_ms);

/* What is left of the grace; 0: none. */
uint64_t pool_grace_left_ms(const struct pool *p);

/* Ends the job at once. */
bool pool_kill(struct pool *p, const struct cause *cause);

/* What each worker has come to so far, for those who outlive the pool: plan->start_count of them.
 */
void pool_outcomes(const struct pool *p, struct outcome *ret);

/* A signal that is only passed on. */
void pool_forward(struct pool *p, int signal);

/* Stops every worker's process group, or lets it go on. */
void pool_suspend(struct pool *p);
void pool_resume(struct pool *p);

/* SIGCHLD has come: orphans are reaped, and workers without a pidfd. `first`: what
 * deaths_first() says of it. */
void pool_on_child(struct pool *p, pid_t first);

/* Frees, and removes the cgroup of the attempt; the loop must have closed the handles. */
void pool_done(struct pool *p);

#endif
