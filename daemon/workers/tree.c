/* tree.c - see tree.h */
#include "daemon/workers/tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "common/fd.h"
#include "daemon/report/ending.h"
#include "daemon/workers/procfs.h"

enum {
	DEPTH_MAX = 256, /* of ancestors that are asked */
	PATIENCE_MS =
		5000,    /* for a process that SIGKILL has not ended yet: it may be freeing GPUs */
	STUCK_MS = 100,  /* of it, before what is below that process is not waited for */
	DENIED_MS = 200, /* where none may be killed */
};

int tree_adopt_orphans(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

static void spare_one(pid_t child, void *to)
{
	struct spared *s = to;

	if (s->count < SPARED_MAX) {
		s->child[s->count] = child;
		s->session[s->count] = getsid(child);
	}
	s->count++;
}

int tree_spare(struct spared *ret)
{
	siginfo_t si = { 0 };

	*ret = (struct spared){ 0 };
	/* nearly always: no child at all, and /proc need not be asked */
	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
		return 0;
	(void)process_children(getpid(), spare_one, ret);
	if (ret->count <= SPARED_MAX)
		return 0;
	ret->count = 0;
	return -E2BIG;
}

static bool is_spared(const struct spared *s, pid_t child)
{
	pid_t session = getsid(child);

	if (!s)
		return false;
	if (s->count > 0 && session == getsid(0)) /* whatever we start has a session of its own */
		return true;
	for (unsigned i = 0; i < s->count; i++)
		if (s->child[i] == child || (session > 0 && s->session[i] == session))
			return true;
	return false;
}

/* Whether this process is among the ancestors, of which `parent` is the first. */
static bool leads_here(pid_t parent)
{
	struct process p;

	for (int i = 0; i < DEPTH_MAX && parent > 1; i++) {
		if (parent == getpid())
			return true;
		if (process_read(parent, &p) < 0)
			return false;
		parent = p.parent;
	}
	return parent == getpid(); /* we may be 1 ourselves */
}

bool tree_has(pid_t pid)
{
	struct process p;

	return process_read(pid, &p) == 0 && leads_here(p.parent);
}

/* Opened first, asked then: whoever has the number when its ancestors are asked is the one that
 * was opened, or that one has ended and the signal reaches nobody. A zombie takes a signal, too,
 * but does not count. */
static bool signal_one(pid_t pid, int signal)
{
	autoclose fd = (int)syscall(SYS_pidfd_open, pid, 0u);
	struct process p;

	return fd >= 0 && process_read(pid, &p) == 0 && leads_here(p.parent) &&
		syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0u) == 0 && p.state != 'Z';
}

unsigned tree_signal(pid_t root, int signal)
{
	/* one thread; 16 KB is too much for a stack, and memory may be out */
	static struct pids f;
	unsigned reached = 0;

	f.at[0] = root;
	f.count = 1;
	for (size_t i = 0; i < f.count; i++)
		process_list_children(f.at[i], &f);
	for (size_t i = 0; i < f.count; i++)
		reached += signal_one(f.at[i], signal);
	return reached;
}

void tree_kill_child(pid_t child)
{
	pid_t group = getpgid(child), session = getsid(child);

	if (group > 1 && session > 0 && session != getsid(0))
		(void)kill(-group, SIGKILL);
	(void)kill(child, SIGKILL);
}

struct round {
	const struct spared *spared;
	unsigned found, denied;
	bool stuck; /* nothing has ended for a while: what is below those that stay goes, too */
	struct survivor *survivors;
};

static void kill_one(pid_t child, void *to)
{
	struct round *r = to;

	if (is_spared(r->spared, child))
		return;
	if (kill(child, 0) < 0 && errno == EPERM)
		r->denied++;
	tree_kill_child(child);
	if (r->stuck)
		(void)tree_signal(child, SIGKILL);
	r->found++;
}

static void name_one(pid_t pid, struct round *r)
{
	struct process p;

	if (process_read(pid, &p) < 0 || p.state == 'Z')
		return;
	if (r->found < SURVIVORS_MAX) {
		r->survivors[r->found] =
			(struct survivor){ .pid = pid, .uid = p.uid, .state = p.state };
		memcpy(r->survivors[r->found].command, p.command, sizeof p.command);
	}
	r->found++;
}

/* All that lives below this process, but for the spared and theirs. */
static void name_all(struct round *r)
{
	static struct pids all; /* one thread */

	all.count = 0;
	process_list_children(getpid(), &all);
	for (size_t i = 0; i < all.count; i++) {
		if (is_spared(r->spared, all.at[i]))
			continue;
		process_list_children(all.at[i], &all);
		name_one(all.at[i], r);
	}
}

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

void tree_forget(struct spared *s, pid_t child)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->child[i] == child)
			s->child[i] = 0;
}

/* Reaps what has ended. False: no child is left at all. */
static bool reap(struct spared *spared, unsigned *reaped)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) {
		if (spared)
			tree_forget(spared, pid);
		++*reaped;
	}
	return pid == 0 || errno != ECHILD;
}

void tree_go_first(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) < 0)
		(void)setpriority(PRIO_PROCESS, 0, -20);
}

/* Kills in rounds. True: nobody is left but the spared; false: SIGKILL does not help. */
static bool end_in_rounds(struct spared *spared, unsigned *reaped)
{
	enum {
		QUIET_ROUNDS = 3, /* a list that changes while it is read may look empty once */
		SLOW_ROUNDS = 10, /* those below fork as fast as we kill */
	};
	const struct timespec pause = { .tv_nsec = 5000000 };
	uint64_t progress_ms = now_ms();
	unsigned quiet = 0, rounds = 0;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	while (reap(spared, reaped)) {
		struct round r = { .spared = spared, .stuck = now_ms() - progress_ms > STUCK_MS };
		unsigned before = *reaped;

		if (++rounds == SLOW_ROUNDS)
			tree_go_first();

		(void)process_children(getpid(), kill_one, &r);
		quiet = r.found == 0 ? quiet + 1 : 0;
		if (spared && spared->count > 0 && quiet == QUIET_ROUNDS)
			return true;
		if (!reap(spared, reaped))
			return true;
		if (*reaped > before) {
			progress_ms = now_ms();
			continue;
		}
		if (now_ms() - progress_ms > (r.denied == r.found ? DENIED_MS : PATIENCE_MS))
			return false;
		(void)sigtimedwait(&chld, NULL, &pause); /* until one has ended, or may have */
	}
	return true;
}

unsigned tree_end_all(struct spared *spared, struct survivor *ret, unsigned *ret_count)
{
	struct round left = { .spared = spared, .survivors = ret };
	unsigned reaped = 0;

	if (!end_in_rounds(spared, &reaped))
		name_all(&left);
	*ret_count = left.found;
	return reaped;
}
