/* deaths.h - who of the workers has died: in which order, and how long ago at most.
 *
 * An epoll(7) of pidfds hands them over in the order in which they became readable, which is the
 * order of death. (Asking for any child gives the order of the process table.) A worker adds its
 * own before it executes its program: one that dies at once may be dead, and others of it, before
 * this process runs again.
 *
 * Without pidfds (daemon/os/kernel.h) SIGCHLD tells: it names the first that has died since one was
 * read. It says nothing of those that died after that: if there is one, it is the second; the order
 * of several is unknown, and all of them get the same ended_ns, which no other worker has.
 *
 * A death is dated when it is seen, and it may be earlier by as long as this process was awake
 * without having looked, or waited for a CPU: what was asleep would have been woken by it. On one
 * node that does not matter, as the order is known; to compare times of several nodes it does. */
#ifndef LAUNCHD_DAEMON_WORKERS_DEATHS_H
#define LAUNCHD_DAEMON_WORKERS_DEATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct failure;
struct worker;

struct deaths {
	struct worker *workers; /* borrowed */
	unsigned count;
	bool by_signal;    /* there are workers without a pidfd; SIGCHLD is blocked */
	int epoll;         /* for worker_start(); -1: not open */
	uv_poll_t watch;   /* of it */
	uv_prepare_t turn; /* dated only: before the loop sleeps */
	bool dated;
	int schedstat;     /* proc(5)'s, of this thread; -1: this kernel does not tell */
	uint64_t awake_ns; /* for how long we had been awake when the turn before this one began */
	uint64_t next_ns;  /* the same of this turn */
	void (*on_readable)(void *owner); /* from the loop: deaths_note() has something to tell */
	void *owner;
};

/* Of these workers. Nothing is watched yet. */
void deaths_init(struct deaths *d, struct worker *workers, unsigned count);

/* Opens it, with handles whose data is the owner. dated: times will be compared with those of other
 * nodes. To be used by the loop's thread. On failure nothing is left open. */
int deaths_open(struct deaths *d, uv_loop_t *loop, bool dated, void (*on_readable)(void *owner),
	void *owner, struct failure *why);

/* Whose death a SIGCHLD with these si_code and si_pid tells of; -1: nobody's. It may be that a
 * child was stopped, and that others have died behind that. */
pid_t deaths_first(int code, pid_t pid);

/* Notes how workers ended that have died by now, and tells the owner of each, in their order.
 * `first`: what deaths_first() says of a SIGCHLD that was read just now; 0: none was, but one may
 * be waiting. Returns whether there was one. */
bool deaths_note(struct deaths *d, pid_t first, void (*tell)(void *owner, struct worker *w));

/* Closes its handles: returns how many times on_closed will be called. */
unsigned deaths_close(struct deaths *d, uv_close_cb on_closed);

/* Gives the epoll back, when the handles are closed. */
void deaths_done(struct deaths *d);

#endif
