/* tree.h - the processes below this one: signalled and ended, and never anything else.
 *
 * What makes that sure: a child that this process has not reaped keeps its number; a process
 * further down is opened (pidfd) before it is asked whether its ancestors lead here. Where there
 * are no pidfds its start time is compared instead, right before the signal. */
#ifndef LAUNCHD_DAEMON_WORKERS_TREE_H
#define LAUNCHD_DAEMON_WORKERS_TREE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/os/procfs.h"

struct pids;
struct survivor;

/* Children that were there before anything was started (a shell's background jobs, when the shell
 * then executed launchd), and their sessions. */
enum { SPARED_MAX = 64 };

struct spared {
	pid_t child[SPARED_MAX], session[SPARED_MAX];
	unsigned count;
};

/* This process becomes the one that orphans below it go to. 0 or negative errno. */
int tree_adopt_orphans(void);

/* Remembers the present children. -E2BIG: there are too many to spare; -EINVAL: waitid(2) does not
 * know __WALL, of Linux 4.7. */
int tree_spare(struct spared *ret);

/* Remembers one more; where there is no room it isn't spared. */
void tree_spare_child(struct spared *s, pid_t child);

/* One of them was reaped: its number may become anyone's. */
void tree_forget(struct spared *s, pid_t child);

/* One that was below this process when it was opened. */
struct descendant {
	pid_t pid;
	int fd; /* its pidfd; -1: this kernel, or a sandbox, gives none */
	struct process is;
};

/* The child of `root` that this process is, or descends from. 0: it does not, or has gone. */
pid_t tree_branch(pid_t root, pid_t pid);

/* Opens a process that is below this one at this moment. Negative errno: it is not, or not any more
 * (-ESRCH), or there is no descriptor left. */
int tree_open(pid_t pid, struct descendant *ret);

/* Sends it a signal, and nobody else; without a pidfd, after a last look at the start time, as sure
 * as that. False: it has ended, or is another user's. */
bool tree_tell(const struct descendant *d, int signal);
void tree_close(struct descendant *d);

/* Lists the children of this process, without lasting helpers' (daemon/os/helper.h). */
void tree_children(struct pids *ret);

/* Lists a process and all below it, itself first. */
void tree_list(pid_t root, struct pids *ret);

/* Sends a signal to a child, or one further down, and to all below it. Returns how many that live
 * got it, of PIDS_MAX (daemon/os/procfs.h) at most. */
unsigned tree_signal(pid_t root, int signal);

/* Groups that SIGKILL was sent to: some of many. { 0 } for each list of children. */
struct killed_groups {
	pid_t groups[64];
};

/* Sends SIGKILL to a child of this process, and to its process group, which holds descendants of
 * this process only: without that, a chain of processes that fork and exit could outrun us. Once to
 * a group of thousands: *done. */
void tree_kill_child(pid_t child, struct killed_groups *done);

/* Called for each process before it is reaped, while its number and its session's are still its
 * own. False: it is somebody else's to reap, which only tree_reap() heeds. */
struct reap_hook {
	bool (*on_reaped)(void *owner, const siginfo_t *si);
	void *owner;
};

/* Reaps the children that have ended, up to one that is not to be. False: no child is left at all,
 * or only lasting helpers'. */
bool tree_reap(const struct reap_hook *hook);

/* This process runs before all ordinary ones from now on, where that is allowed: for one that does
 * nothing any more but end others. */
void tree_go_first(void);

enum {
	/* for a process that SIGKILL has not ended yet: it may be freeing GPUs */
	TREE_PATIENCE_MS = 5000,
};

/* Ends every child of this process and what they leave, in rounds, until there is none but
 * `spared` (NULL: none) and lasting helpers'. Blocks; SIGCHLD must be blocked. What can't be ended
 * (in the kernel for longer than 5 s, or another user's) is left: *ret_count of them, the first
 * SURVIVORS_MAX in ret. Returns how many it has reaped, of which it tells `hook` (NULL: nobody). */
unsigned tree_end_all(struct spared *spared, const struct reap_hook *hook, struct survivor *ret,
	unsigned *ret_count);

/* The same for a node that has no more time than that: returns how many are left. */
unsigned tree_end_soon(uint64_t patience_ms);

#endif
