/* signals.h - the signals that the launcher takes, as events of the loop.
 *
 * They are blocked and read from a signalfd, so none is lost between two states and each comes with
 * its sender. A signal that was ignored when the launcher started (nohup's HUP, a background job's
 * INT) stays ignored. */
#ifndef LAUNCHD_DAEMON_WORKERS_SIGNALS_H
#define LAUNCHD_DAEMON_WORKERS_SIGNALS_H

#include <signal.h>
#include <uv.h>

struct failure;

enum signal_action {
	SIGNAL_NONE,
	SIGNAL_END,     /* forwarded to every worker, and ends the job */
	SIGNAL_FORWARD, /* forwarded, and the job lives */
};

struct signals {
	int fd;
	uv_poll_t poll;
	void (*on_signal)(struct signals *s, int signal, enum signal_action action, pid_t sender);
	void *owner;
};

/* What is done with a signal. */
enum signal_action signal_action(int signal);

/* Blocks the signals of the table, but for those in `ignored`, and calls on_signal from the loop
 * for each that comes, also one that came between the two. TERM is taken even if it was ignored. */
int signals_start(struct signals *s, uv_loop_t *loop, const sigset_t *ignored, struct failure *why);

/* Stops listening; the loop must run on until the handle is closed. The signals stay blocked. */
void signals_stop(struct signals *s);

/* Forgets the signals that have come meanwhile and unblocks them: nothing is left to protect, and a
 * launcher that can't get rid of its report (a pipe that nobody reads) can be ended. */
void signals_release(void);

#endif
