/* worker.h - one worker of one attempt, from its start to its end. */
#ifndef LAUNCHD_DAEMON_WORKERS_WORKER_H
#define LAUNCHD_DAEMON_WORKERS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"

struct failure;
struct sm;
struct spawn;

enum worker_state {
	WORKER_PLANNED,
	WORKER_RUNNING,
	WORKER_STOPPING, /* asked by a signal */
	WORKER_KILLING,  /* SIGKILL is sent */
	WORKER_ENDED,    /* reaped, or never started */
	WORKER_STATES,
};

/* What it left behind when it ended, and what was done about that. */
struct leftover {
	uint64_t deadline_ns;   /* for SIGKILL; 0: nothing was found */
	bool killed;            /* SIGKILL is sent */
	unsigned count, forced; /* processes; of these, how many needed SIGKILL */
};

struct worker {
	enum worker_state state;
	struct outcome outcome;
	struct leftover left;
	/* The signal that it, or what it had started, sent launchd to end the job, and when that
	 * came; 0: none. */
	int sent;
	uint64_t sent_ns;
	int pidfd;   /* can be polled; -1: it has ended, or this kernel gives none */
	int pipe[3]; /* our ends of its STDIO_PIPE streams, to be taken over; -1: none */
};

/* Of enum worker_state. */
extern const struct sm worker_life;

/* An unstarted worker; rank, local_rank and attempt of w->outcome are the caller's to set. */
void worker_init(struct worker *w);

/* Starts its process, whose pidfd, if there is one, is in how->epoll, with the worker as data: it
 * becomes readable when the process has ended. On failure the worker is WORKER_ENDED with the
 * outcome "could not be started", and nothing is left of it. */
int worker_start(struct worker *w, const struct spawn *how, struct failure *why);

/* It can't be started: ENDED_UNSTARTED or ENDED_UNMADE, for an errno. */
void worker_not_started(struct worker *w, enum how how, int error);

/* It has sent launchd this signal: that is how it ends, whatever follows. */
void worker_sent(struct worker *w, int signal);

/* How it has ended, or that it runs. */
struct outcome worker_outcome(const struct worker *w);

/* Fetches how it ended. False: it has not ended, nothing is changed. */
bool worker_reap(struct worker *w);

/* Sends a signal to it, or also to more of what it has started; nothing where it has ended. */
void worker_signal(struct worker *w, int signal, enum signal_scope scope);

/* Asks it to stop: the signal, and CONT for one that is stopped and could not act on it. */
void worker_stop(struct worker *w, int signal, enum signal_scope scope);

/* Sends SIGKILL to it and its process group. */
void worker_kill(struct worker *w);

bool worker_is_alive(const struct worker *w);

#endif
