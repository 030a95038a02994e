/* attempt.h - one attempt on this node, from its first worker to what the job hears of its end. */
#ifndef LAUNCHD_DAEMON_RUN_ATTEMPT_H
#define LAUNCHD_DAEMON_RUN_ATTEMPT_H

struct failure;
struct run;
struct stop;

void attempt_init(struct run *r);
void attempt_close(struct run *r);

/* Opens its log files, then starts its workers; that they can't be started is its end. */
void attempt_start(struct run *r, unsigned number, unsigned master_port);

/* The check of the nodes is over and has left nothing: starts the workers, unless the attempt is to
 * end. */
void attempt_checked(struct run *r);

/* Ends it on this node. A stop that isn't more urgent than the one before cuts the grace, where its
 * own is shorter, and changes nothing else. */
void attempt_stop(struct run *r, const struct stop *s);

/* The guard was killed, and this node's part has ended: whoever did that may be gone before the
 * other nodes have told how theirs did. Else nothing. */
void attempt_tell_killed(const struct run *r);

/* The output thread's answers (struct output_events): its log files are open; all that its workers
 * wrote is read. */
void attempt_prepared(void *run, const struct failure *why);
void attempt_drained(void *run);

/* What can be kept of its end is kept: see black_box_finish(). */
void attempt_kept(void *run);

#endif
