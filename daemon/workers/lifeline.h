/* lifeline.h - under mpirun and srun: who started this rank must live, and somebody must read its
 * output.
 *
 * Three things are watched. The launcher's process on this node (mpirun, orted, hydra_pmi_proxy,
 * slurmstepd): its end is the job's. The shell around launchd, if there is one, and the readers of
 * stdout and stderr: that they have gone tells the same, for where the launcher's process is out of
 * sight (a container's pid namespace), but not when a signal has come in the same moment: mpirun
 * and scancel signal whole process groups, TERM ends the shells and the tees in them at once, and
 * workers have their grace all the same. */
#ifndef LAUNCHD_DAEMON_WORKERS_LIFELINE_H
#define LAUNCHD_DAEMON_WORKERS_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/job/ending.h"

struct failure;

struct lifeline {
	int epoll; /* of the descriptors below: libuv would make stdout and stderr non-blocking, for
		    * everyone who shares them */
	int launcher, shell;                 /* pidfds; -1: none that can be seen */
	pid_t launcher_pid;                  /* 0: none that can be seen */
	bool parent_unseen, parent_launches; /* no pidfd of the parent; it is the launcher */
	uv_poll_t poll;
	uv_timer_t doubt; /* runs while something is lost and a signal may explain it */
	unsigned handles; /* of the two above, not closed yet */
	enum cause_kind lost;
	uint64_t lost_ns, signal_ns;                               /* 0: never */
	void (*on_lost)(struct lifeline *l, enum cause_kind kind); /* once */
	void *owner;
};

/* Watches. `parent` started launchd (0 or 1: nobody in particular); from there on upwards, whoever
 * was executed with the variable `mark` as it stands in `env` belongs to this rank, and the first
 * one who was not is the launcher's process. On failure nothing is left open. */
int lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, const char *mark,
	const char *const *env, struct failure *why);

/* What started launchd has ended, as the guard has seen. Counts where there are no pidfds: then a
 * launcher above a shell is not seen. */
void lifeline_parent_gone(struct lifeline *l);

/* Whether a signal's sender is the launcher's process; one that can't be seen has the pid 0. */
bool lifeline_is_launcher(const struct lifeline *l, pid_t sender);

/* A signal has come. Those count that end whoever does not catch them. Also where nothing was
 * started ({ 0 }). */
void lifeline_signalled(struct lifeline *l, int signal);

/* Stops watching, also where nothing was started ({ 0 }); the loop must run on until the handles
 * are closed. */
void lifeline_stop(struct lifeline *l);

#endif
