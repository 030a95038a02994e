/* tree.c - see tree.h */
#include "daemon/workers/tree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "daemon/job/ending.h"
#include "daemon/os/helper.h"
#include "daemon/os/kernel.h"
#include "daemon/os/procfs.h"

enum {
	DEPTH_MAX = 256, /* of ancestors that are asked */
	STUCK_MS =
		100, /* of TREE_PATIENCE_MS, before what is below that process is not waited for */
	DENIED_MS = 200, /* where none may be killed */
};

int tree_adopt_orphans(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* One thread; it is too much for a stack, and memory may be out. */
static struct pids children;

void tree_children(struct pids *ret)
{
	size_t kept = 0;

	ret->count = 0;
	(void)process_children(getpid(), ret); /* it can be seen in any case */
	for (size_t i = 0; i < ret->count; i++)
		if (!helper_is_lasting(ret->at[i]))
			ret->at[kept++] = ret->at[i];
	ret->count = kept;
}

int tree_spare(struct spared *ret)
{
	siginfo_t si = { 0 };

	*ret = (struct spared){ 0 };
	/* nearly always: no child at all, and /proc need not be asked */
	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return errno == ECHILD ? 0 : -errno;
	tree_children(&children);
	if (children.count > SPARED_MAX)
		return -E2BIG;
	for (size_t i = 0; i < children.count; i++) {
		ret->child[i] = children.at[i];
		ret->session[i] = getsid(children.at[i]);
	}
	ret->count = (unsigned)children.count;
	return 0;
}

void tree_spare_child(struct spared *s, pid_t child)
{
	if (s->count < SPARED_MAX)
		s->child[s->count++] = child; /* with no session: its own is nobody else's */
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

pid_t tree_branch(pid_t root, pid_t pid)
{
	struct process p;

	for (int i = 0; i < DEPTH_MAX && pid > 1 && process_read(pid, &p) == 0; i++) {
		if (p.parent == root)
			return pid;
		pid = p.parent;
	}
	return 0;
}

/* Opened first, asked then: whoever has the number when its ancestors are asked is the one that
 * was opened, or that one has ended and a signal reaches nobody. */
int tree_open(pid_t pid, struct descendant *ret)
{
	autoclose fd = kernel_pidfd_open(pid);
	int rc;

	if (fd < 0 && !kernel_refuses(-fd))
		return fd;
	rc = process_read(pid, &ret->is);
	if (rc == 0 && !leads_here(ret->is.parent))
		rc = -ESRCH;
	if (rc < 0)
		return rc;
	ret->pid = pid;
	ret->fd = fd < 0 ? -1 : fd_take(&fd);
	return 0;
}

bool tree_tell(const struct descendant *d, int signal)
{
	struct process now;

	if (d->fd >= 0 && syscall(SYS_pidfd_send_signal, d->fd, signal, NULL, 0u) == 0)
		return true;
	if (d->fd >= 0 && !kernel_refuses(errno))
		return false;
	/* without /proc it is a child, whose number is its own */
	return process_read(d->pid, &now) == 0 && now.started == d->is.started &&
		kill(d->pid, signal) == 0;
}

void tree_close(struct descendant *d)
{
	fd_closep(&d->fd);
}

/* A zombie takes a signal, too, but does not count. */
static bool signal_one(pid_t pid, int signal)
{
	struct descendant d;
	bool reached;

	if (tree_open(pid, &d) < 0)
		return false;
	reached = tree_tell(&d, signal) && d.is.state != 'Z';
	tree_close(&d);
	return reached;
}

void tree_list(pid_t root, struct pids *ret)
{
	ret->at[0] = root;
	ret->count = 1;
	for (size_t i = 0; i < ret->count; i++)
		(void)process_children(ret->at[i], ret); /* what can't be seen can't be listed */
}

unsigned tree_signal(pid_t root, int signal)
{
	static struct pids tree; /* like `children`, of which root may be one */
	unsigned reached = 0;

	tree_list(root, &tree);
	for (size_t i = 0; i < tree.count; i++)
		reached += signal_one(tree.at[i], signal);
	return reached;
}

void tree_kill_child(pid_t child, struct killed_groups *done)
{
	enum { GROUPS = sizeof done->groups / sizeof *done->groups };
	pid_t group = getpgid(child), session = getsid(child);
	pid_t *last = &done->groups[group > 0 ? group % GROUPS : 0];

	/* the kernel goes through all of the group: for each of its members that is a square */
	if (group > 1 && *last != group && session > 0 && session != getsid(0)) {
		(void)kill(-group, SIGKILL);
		*last = group;
	}
	(void)kill(child, SIGKILL);
}

struct round {
	const struct spared *spared;
	unsigned found, denied;
	bool stuck; /* nothing has ended for a while: what is below those that stay goes, too */
	struct killed_groups killed;
	struct survivor *survivors;
};

static void kill_round(struct round *r)
{
	tree_children(&children);
	for (size_t i = 0; i < children.count; i++) {
		pid_t child = children.at[i];

		if (is_spared(r->spared, child))
			continue;
		if (kill(child, 0) < 0 && errno == EPERM)
			r->denied++;
		tree_kill_child(child, &r->killed);
		if (r->stuck)
			(void)tree_signal(child, SIGKILL);
		r->found++;
	}
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
	tree_children(&children);
	for (size_t i = 0; i < children.count; i++) {
		if (is_spared(r->spared, children.at[i]))
			continue;
		(void)process_children(children.at[i], &children);
		name_one(children.at[i], r);
	}
}

/* waitid(2) tells that there is a child, and not whose. */
static bool only_lasting_left(void)
{
	enum { LOOKS = 3 }; /* a list that changes while it is read may look empty once */

	if (!helper_any_lasting())
		return false;
	for (int i = 0; i < LOOKS; i++) {
		tree_children(&children);
		if (children.count > 0)
			return false;
	}
	return true;
}

bool tree_reap(const struct reap_hook *hook)
{
	for (;;) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
			return errno != ECHILD;
		if (si.si_pid == 0)
			return !only_lasting_left();
		if (helper_reap_lasting(si.si_pid))
			continue;
		if (!hook->on_reaped(hook->owner, &si))
			return true;
		(void)waitpid(si.si_pid, NULL, WNOHANG | __WALL); /* it has ended and is ours */
	}
}

void tree_forget(struct spared *s, pid_t child)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->child[i] == child)
			s->child[i] = 0;
}

/* Who is spared, whom to tell of each that is reaped, and how many there were. */
struct reaping {
	struct spared *spared;
	const struct reap_hook *hook;
	unsigned reaped;
	int64_t patience_ms;
};

static bool on_reaped(void *owner, const siginfo_t *si)
{
	struct reaping *b = owner;

	if (b->hook)
		(void)b->hook->on_reaped(b->hook->owner, si);
	if (b->spared)
		tree_forget(b->spared, si->si_pid);
	b->reaped++;
	return true;
}

static bool reap(struct reaping *b)
{
	const struct reap_hook hook = { on_reaped, b };

	return tree_reap(&hook);
}

void tree_go_first(void)
{
	const struct sched_param least = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) < 0)
		(void)setpriority(PRIO_PROCESS, 0, -20);
}

/* Until so many are reaped, as long as one ends every few milliseconds. False: no child is left. */
static bool await_deaths(struct reaping *b, unsigned goal)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	unsigned before;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (!reap(b))
		return false;
	do {
		before = b->reaped;
		if (before >= goal)
			return true;
		(void)sigtimedwait(&chld, NULL, &pause);
		if (!reap(b))
			return false;
	} while (b->reaped > before);
	return true;
}

/* Kills in rounds. True: nobody is left but the spared; false: SIGKILL does not help. */
static bool end_in_rounds(struct reaping *b)
{
	enum {
		QUIET_ROUNDS = 3, /* a list that changes while it is read may look empty once */
		SLOW_ROUNDS = 10, /* those below fork as fast as we kill */
	};
	int64_t progress_ms = monotonic_ms();
	unsigned quiet = 0, rounds = 0;

	while (reap(b)) {
		struct round r = { .spared = b->spared,
			.stuck = monotonic_ms() - progress_ms > STUCK_MS };
		unsigned before = b->reaped;

		if (++rounds == SLOW_ROUNDS)
			tree_go_first();
		kill_round(&r);
		quiet = r.found == 0 ? quiet + 1 : 0;
		if (b->spared && b->spared->count > 0 && quiet == QUIET_ROUNDS)
			return true;
		/* a crowd that has SIGKILL need not get it again while it ends */
		if (!await_deaths(b, before + 1 + r.found / 2))
			return true;
		if (b->reaped > before)
			progress_ms = monotonic_ms();
		else if (monotonic_ms() - progress_ms >
			(r.denied == r.found ? DENIED_MS : b->patience_ms))
			return false;
	}
	return true;
}

static unsigned end_within(struct spared *spared, const struct reap_hook *hook, int64_t patience_ms,
	struct survivor *ret, unsigned *ret_count)
{
	struct round left = { .spared = spared, .survivors = ret };
	struct reaping b = { .spared = spared, .hook = hook, .patience_ms = patience_ms };

	if (!end_in_rounds(&b))
		name_all(&left);
	*ret_count = left.found;
	return b.reaped;
}

unsigned tree_end_all(struct spared *spared, const struct reap_hook *hook, struct survivor *ret,
	unsigned *ret_count)
{
	return end_within(spared, hook, TREE_PATIENCE_MS, ret, ret_count);
}

unsigned tree_end_soon(uint64_t patience_ms)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count = 0;

	(void)end_within(NULL, NULL,
		patience_ms < TREE_PATIENCE_MS ? (int64_t)patience_ms : TREE_PATIENCE_MS, left,
		&count);
	return count;
}
