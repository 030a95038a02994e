/* signals.h - the signals that launchd takes: blocked, so that none is lost, and read where they
 * are awaited.
 *
 * The guard waits for them and relays each with its sender through a pipe to the supervisor. The
 * supervisor hears those that end the job itself, too: a batch system may signal every process of
 * a job. The two ways are told apart, as one request that comes by both is still one. */
#ifndef LAUNCHD_DAEMON_WORKERS_SIGNALS_H
#define LAUNCHD_DAEMON_WORKERS_SIGNALS_H

#include <signal.h>
#include <sys/types.h>
#include <uv.h>

struct failure;
struct reactions;

/* A signal on its way from the guard to the supervisor: below PIPE_BUF, so whole or not at all. */
struct relayed {
	int signal;
	int code; /* si_code */
	pid_t pid;
	uid_t uid;
	/* Of the sender, looked up at once, before it ends: its session, and the child
	 * of the supervisor's that it is or descends from. 0: not known, or none. */
	pid_t session, branch;
};

enum signal_way {
	WAY_GUARD,
	WAY_DIRECT,
	WAY_CONTROL, /* no signal: launchctl stop asks for what one does */
	WAYS
};

struct signals {
	int fd;    /* of signalfd(2) */
	int relay; /* the pipe's end */
	uv_poll_t direct_poll, relay_poll;
	unsigned handles;
	void (*on_signal)(struct signals *s, const struct relayed *got, enum signal_way way);
	/* SIGCHLD: what deaths_first() says of it */
	void (*on_child)(struct signals *s, pid_t first);
	void (*on_guard_gone)(struct signals *s); /* the pipe's other end is closed */
	void *owner;
};

/* Makes one of what the kernel tells. */
struct relayed signals_relayed(int signal, int code, pid_t pid, uid_t uid, pid_t supervisor);

/* Those with a reaction, but for what was ignored on entry and is not named by --on-signal; TERM
 * in any case, and CHLD. */
void signals_taken(const struct reactions *r, const sigset_t *ignored, sigset_t *ret);

/* Those of them that end the job. */
void signals_ending(const struct reactions *r, const sigset_t *ignored, sigset_t *ret);

/* Takes: TERM and its like that end the job, CHLD, what the guard relays, and what --on-signal
 * names, which a worker may send to its parent. They must be blocked.
 * Takes the pipe's end over. On failure nothing is left open but the pipe. */
int signals_start(struct signals *s, uv_loop_t *loop, const struct reactions *r,
	const sigset_t *ignored, int relay, struct failure *why);

/* Stops listening; the loop must run on until the handles are closed. The signals stay blocked. */
void signals_stop(struct signals *s);

/* Forgets the signals that have come meanwhile and unblocks them: nothing is left to protect, and a
 * launcher that can't get rid of its report (a pipe that nobody reads) can be ended. */
void signals_release(const sigset_t *taken);

#endif
