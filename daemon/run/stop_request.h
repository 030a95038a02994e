/* stop_request.h - whatever ends the job before its workers have: a signal, the time limit, another
 * node's order, the death of the guard or of what started launchd. One decision for all. */
#ifndef LAUNCHD_DAEMON_RUN_STOP_REQUEST_H
#define LAUNCHD_DAEMON_RUN_STOP_REQUEST_H

#include <stdbool.h>

#include "daemon/job/job.h"

struct relayed;
struct run;

/* Ends the attempt here, as urgently as the stop says, and asks the other nodes for the same with
 * an urgency of its own: NONE where they know. When the job is over, it only cuts the farewells. */
void run_request(struct run *r, const struct stop *s, enum urgency elsewhere);

/* Ends the job as the signal that somebody asks for does when it comes to launchd, whatever
 * --on-signal says; now: without a grace. */
void run_stop(struct run *r, const struct sender *sender, bool now);

/* Asks node rank 0 for another attempt in place of this one, on all nodes; --max-restarts does not
 * count it. Nothing where the job ends, or none runs. sender: who wants that. */
void run_restart(struct run *r, const struct sender *sender);

/* A signal that is only passed on: to this node's workers. */
void run_forward(struct run *r, int signal);

/* --preempt-watch from now on, the job's first start; it ends as request_stop_watching() is called.
 */
void request_watch_preemption(struct run *r);

void request_init(struct run *r);

/* Listens to signals and to what started launchd. On failure why is set, and some of it may be
 * open: both of the stops follow in either case. Signals are heard longer: while the others are
 * told of the job's end. */
int request_listen(struct run *r);
void request_stop_watching(struct run *r);
void request_stop_listening(struct run *r);

/* --max-runtime counts from now on. */
void request_limit_runtime(struct run *r);

#endif
