/* worker.c - see worker.h */
#include "daemon/workers/worker.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "daemon/workers/spawn.h"

#define TO(s) (1u << (s))

/* Every edge; worker_goto() alone writes a state. */
static const unsigned next_states[WORKER_STATES] = {
	[WORKER_PLANNED] = TO(WORKER_RUNNING) | TO(WORKER_ENDED), /* ENDED: exec failed */
	[WORKER_RUNNING] = TO(WORKER_STOPPING) | TO(WORKER_KILLING) | TO(WORKER_ENDED),
	[WORKER_STOPPING] = TO(WORKER_KILLING) | TO(WORKER_ENDED),
	[WORKER_KILLING] = TO(WORKER_ENDED),
	[WORKER_ENDED] = 0,
};

bool worker_may_go(enum worker_state from, enum worker_state to)
{
	return (next_states[from] & TO(to)) != 0;
}

static void worker_goto(struct worker *w, enum worker_state next)
{
	assert(worker_may_go(w->state, next));
	w->state = next;
}

bool worker_is_alive(const struct worker *w)
{
	return w->state != WORKER_PLANNED && w->state != WORKER_ENDED;
}

void worker_init(struct worker *w)
{
	*w = (struct worker){ .pidfd = -1 };
}

static void on_watch_closed(uv_handle_t *h)
{
	struct worker *w = h->data;

	if (w->pidfd >= 0)
		(void)close(w->pidfd);
	w->pidfd = -1;
}

/* The pidfd is readable: the process is dead and its number still its own. epoll hands pidfds over
 * in the order in which they became ready, so the callbacks run in the order of death. */
static void on_pidfd(uv_poll_t *h, int status, int events)
{
	struct worker *w = h->data;
	siginfo_t si = { 0 };
	const idtype_t by_pidfd = (idtype_t)3; /* P_PIDFD, Linux 5.4; older headers lack it */

	(void)events;
	if (status == 0 && waitid(by_pidfd, (id_t)w->pidfd, &si, WEXITED | WNOHANG) == 0 &&
		si.si_pid != w->outcome.pid)
		return; /* not yet */
	w->outcome.ended_ns = uv_hrtime();
	w->outcome.end = (struct ending){
		.how = si.si_code == CLD_EXITED ? ENDED_EXIT : ENDED_SIGNAL,
		.value = si.si_status,
		.core = si.si_code == CLD_DUMPED,
	};
	uv_close((uv_handle_t *)h, on_watch_closed);
	worker_goto(w, WORKER_ENDED);
	w->on_ended(w);
}

/* Watches the process. Can only fail for lack of memory or descriptors. */
static int watch(struct worker *w, uv_loop_t *loop, struct failure *why)
{
	int rc = uv_poll_init(loop, &w->ended, w->pidfd);

	if (rc < 0) {
		(void)close(w->pidfd);
		w->pidfd = -1;
		return failure_set(why, rc, "can't watch a worker: %s", uv_strerror(rc));
	}
	w->ended.data = w;
	rc = uv_poll_start(&w->ended, UV_READABLE, on_pidfd);
	if (rc == 0)
		return 0;
	uv_close((uv_handle_t *)&w->ended, on_watch_closed);
	return failure_set(why, rc, "can't watch a worker: %s", uv_strerror(rc));
}

int worker_start(struct worker *w, uv_loop_t *loop, const struct spawn *how, struct failure *why)
{
	struct spawned p;
	int rc;

	w->outcome.started_ns = uv_hrtime();
	rc = spawn_process(how, &p, why);
	if (rc < 0) {
		w->outcome.end = (struct ending){ ENDED_UNSTARTED, -rc, false };
		w->outcome.ended_ns = uv_hrtime();
		worker_goto(w, WORKER_ENDED);
		return rc;
	}
	w->outcome.pid = p.pid;
	w->pidfd = p.pidfd;
	worker_goto(w, WORKER_RUNNING);
	rc = watch(w, loop, why);
	if (rc < 0) {
		worker_kill(w);
		while (waitpid(p.pid, NULL, 0) < 0 && errno == EINTR)
			;
		w->outcome.end = (struct ending){ ENDED_UNSTARTED, -rc, false };
		w->outcome.ended_ns = uv_hrtime();
		worker_goto(w, WORKER_ENDED);
	}
	return rc;
}

void worker_signal(struct worker *w, int signal)
{
	/* ESRCH can't be: the process is not reaped; EPERM: it has become another user, and what
	 * that means shows at the end of the grace */
	if (worker_is_alive(w))
		(void)kill(w->outcome.pid, signal);
}

void worker_stop(struct worker *w, int signal)
{
	if (!worker_is_alive(w))
		return;
	if (w->state == WORKER_RUNNING) {
		w->outcome.asked = ASKED_TO_STOP;
		w->outcome.asked_signal = signal;
		w->outcome.asked_ns = uv_hrtime();
		worker_goto(w, WORKER_STOPPING);
	}
	worker_signal(w, signal);
	worker_signal(w, SIGCONT);
}

void worker_kill(struct worker *w)
{
	if (!worker_is_alive(w))
		return;
	if (w->state != WORKER_KILLING) {
		w->outcome.asked = ASKED_KILLED;
		if (!w->outcome.asked_ns)
			w->outcome.asked_ns = uv_hrtime();
		worker_goto(w, WORKER_KILLING);
	}
	/* its session's first group, whose number it holds until it is reaped */
	(void)kill(-w->outcome.pid, SIGKILL);
	(void)kill(w->outcome.pid, SIGKILL);
}
