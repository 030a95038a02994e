/* pool.h - all workers of one attempt on this node: started together, ended together. */
#ifndef LAUNCHD_DAEMON_WORKERS_POOL_H
#define LAUNCHD_DAEMON_WORKERS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct attempt;
struct failure;
struct heritage;
struct plan;
struct worker;

enum pool_state {
	POOL_STARTING,
	POOL_RUNNING,
	POOL_STOPPING, /* every worker was asked to stop; one grace runs for all */
	POOL_KILLING,  /* the grace is over: SIGKILL is sent */
	POOL_ENDED,    /* no worker is left */
	POOL_STATES,
};

struct pool {
	enum pool_state state;
	const struct plan *plan;
	uv_loop_t *loop;
	struct worker *workers; /* plan->nproc of them; the pool's */
	size_t alive;
	int deaths;      /* an epoll of all pidfds, which keeps the order of death; -1: none */
	uv_poll_t watch; /* of it */
	struct worker *first_failure; /* NULL: none so far; what we ended ourselves is none */
	int ended_by;                 /* the signal that ended the job; 0: none */
	unsigned signals;             /* how many that end the job have come */
	uv_timer_t grace;
	unsigned handles;                 /* of the two above, not closed yet */
	void (*on_ended)(struct pool *p); /* called once: no worker and no handle is left */
	void *owner;
};

/* Whether the table of states has this edge. */
bool pool_may_go(enum pool_state from, enum pool_state to);

/* Makes the workers of an attempt, unstarted. -ENOMEM. pool_done() in either case. */
int pool_init(struct pool *p, uv_loop_t *loop, const struct plan *plan,
	const struct attempt *attempt, struct failure *why);

/* Starts them all. If one can't be started, the others are ended in order and it is the first
 * failure. on_ended follows from the loop in every case, unless this fails outright: -ENOMEM, and
 * no worker was started. */
int pool_start(struct pool *p, const struct attempt *attempt, const struct heritage *heritage,
	struct failure *why);

/* A signal that ends the job: forwarded, and the grace begins. The third one ends the grace. */
void pool_end(struct pool *p, int signal);

/* A signal that is only passed on. */
void pool_forward(struct pool *p, int signal);

/* Frees; the loop must have closed the handles. */
void pool_done(struct pool *p);

#endif
