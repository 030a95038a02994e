/* worker.c - see worker.h */
#include "daemon/workers/worker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <uv.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/sm.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/tree.h"

static const struct sm_state states[WORKER_STATES] = {
	/* ended: exec failed */
	[WORKER_PLANNED] = { "planned", SM_TO(WORKER_RUNNING) | SM_TO(WORKER_ENDED) },
	[WORKER_RUNNING] = { "running",
		SM_TO(WORKER_STOPPING) | SM_TO(WORKER_KILLING) | SM_TO(WORKER_ENDED) },
	[WORKER_STOPPING] = { "stopping", SM_TO(WORKER_KILLING) | SM_TO(WORKER_ENDED) },
	[WORKER_KILLING] = { "killing", SM_TO(WORKER_ENDED) },
	[WORKER_ENDED] = { "ended", 0 },
};

const struct sm worker_life = { "worker", states, WORKER_STATES };

static void worker_goto(struct worker *w, enum worker_state next)
{
	w->state = sm_go(&worker_life, w->state, next);
}

bool worker_is_alive(const struct worker *w)
{
	return w->state != WORKER_PLANNED && w->state != WORKER_ENDED;
}

void worker_init(struct worker *w)
{
	*w = (struct worker){ .pidfd = -1, .pipe = { -1, -1, -1 } };
}

struct outcome worker_outcome(const struct worker *w)
{
	struct outcome o = w->outcome;

	if (w->sent == 0)
		return o;
	o.end = (struct ending){ .how = ENDED_SENT, .value = w->sent };
	o.ended_ns = w->sent_ns;
	o.asked = ASKED_NOTHING;
	o.asked_signal = 0;
	o.asked_ns = 0;
	return o;
}

/* Nothing more will come of it. */
static void finish(struct worker *w, struct ending end)
{
	w->outcome.end = end;
	w->outcome.ended_ns = uv_hrtime();
	w->outcome = worker_outcome(w);
	fd_closep(&w->pidfd); /* which takes it out of the epoll, too */
	worker_goto(w, WORKER_ENDED);
}

void worker_not_started(struct worker *w, enum how how, int error)
{
	finish(w, (struct ending){ how, error, false });
}

int worker_start(struct worker *w, const struct spawn *how, struct failure *why)
{
	struct epoll_event event = how->event;
	struct spawned p = { .refused = false };
	int rc;

	w->outcome.started_ns = uv_hrtime();
	rc = spawn_process(how, &p, why);
	if (rc < 0) {
		worker_not_started(w, p.refused ? ENDED_UNSTARTED : ENDED_UNMADE, -rc);
		return rc;
	}
	w->outcome.pid = p.pid;
	w->pidfd = p.pidfd;
	memcpy(w->pipe, p.pipe, sizeof w->pipe);
	worker_goto(w, WORKER_RUNNING);
	if (w->pidfd < 0 || p.watched ||
		epoll_ctl(how->epoll, EPOLL_CTL_ADD, w->pidfd, &event) == 0)
		return 0;
	if (errno == EPERM) { /* Linux 5.2: it can't be polled */
		fd_closep(&w->pidfd);
		return 0;
	}
	rc = failure_set(why, -errno, "can't watch a worker: %s", strerror(errno));
	worker_kill(w);
	for (int fd = 0; fd < 3; fd++)
		fd_closep(&w->pipe[fd]);
	process_undo(p.pid);
	worker_not_started(w, ENDED_UNMADE, -rc);
	return rc;
}

void worker_sent(struct worker *w, int signal)
{
	w->sent = signal;
	w->sent_ns = uv_hrtime();
	if (w->state == WORKER_ENDED)
		w->outcome = worker_outcome(w);
}

bool worker_reap(struct worker *w)
{
	siginfo_t si = { 0 };

	/* by number: it is the process's own until it is reaped, which is here */
	if (waitid(P_PID, (id_t)w->outcome.pid, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
		return false;
	finish(w,
		(struct ending){
			.how = si.si_code == CLD_EXITED ? ENDED_EXIT : ENDED_SIGNAL,
			.value = si.si_status,
			.core = si.si_code == CLD_DUMPED,
		});
	return true;
}

void worker_signal(struct worker *w, int signal, enum signal_scope scope)
{
	pid_t pid = w->outcome.pid;

	if (!worker_is_alive(w))
		return;
	/* ESRCH can't be: the process is not reaped; EPERM: it has become another user, and what
	 * that means shows at the end of the grace */
	if (scope == SCOPE_TREE && proc_look() != PROC_OURS)
		scope = SCOPE_GROUP; /* nobody tells who is below it */
	switch (scope) {
	case SCOPE_WORKER:
		(void)kill(pid, signal);
		break;
	case SCOPE_GROUP:
		(void)kill(-pid, signal);
		break;
	case SCOPE_TREE:
		if (tree_signal(pid, signal) == 0) /* no file is left to be opened */
			(void)kill(pid, signal);
		break;
	}
}

void worker_stop(struct worker *w, int signal, enum signal_scope scope)
{
	if (!worker_is_alive(w))
		return;
	if (w->state == WORKER_RUNNING) {
		w->outcome.asked = ASKED_TO_STOP;
		w->outcome.asked_signal = signal;
		w->outcome.asked_ns = uv_hrtime();
		worker_goto(w, WORKER_STOPPING);
	}
	worker_signal(w, signal, scope);
	worker_signal(w, SIGCONT, scope);
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
