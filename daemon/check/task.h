/* task.h - things that may hang, done side by side: each in a child process of its own, with a
 * limit.
 *
 * A child writes what it finds into memory that its parent shares, so that all which it had found
 * stands there whatever becomes of it. One that SIGKILL doesn't end, as its driver or its file
 * server holds it, is left behind and named. */
#ifndef LAUNCHD_DAEMON_CHECK_TASK_H
#define LAUNCHD_DAEMON_CHECK_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/check/finding.h"

struct sm;
struct tasks;

enum {
	TASKS_MAX = 192,
	TASK_KILL_MS = 1000, /* from SIGKILL on; longer only for what hangs in the kernel */
};

/* Shared; all zeros at first. */
struct task_answer {
	volatile bool done;  /* the work has returned */
	volatile bool ready; /* task_ready() */
	char step[64];       /* what it is at: "nvmlInit" */
	uint64_t more[384];  /* the work's own */
	struct findings findings;
};

enum task_state { TASK_NEW, TASK_RUNNING, TASK_KILLED, TASK_ENDED, TASK_STATES };

extern const struct sm task_life;

struct task {
	/* the owner's */
	void (*work)(const struct task *t, struct task_answer *a); /* in the child */
	/* In the parent, however it has ended, or when it is ready; may add tasks. NULL: nothing.
	 */
	void (*then)(struct tasks *all, const struct task *t);
	const void *owner;
	unsigned number, count;
	bool mixed;        /* its GPUs are of several models */
	const char *check; /* of the finding where it doesn't end by itself */
	char subject[64];
	uint64_t limit_ms;
	/* Whether something answers is what it is to find, so that none in time is bad. If its
	 * process got no CPU meanwhile, nothing is known even then. */
	bool asks;

	/* private */
	enum task_state state;
	bool stays; /* it was ready */
	pid_t child;
	uint64_t since_ns, deadline_ns;
	enum health overdue;
	char late[160]; /* what is said where it was overdue */
	struct task_answer *answer;
};

struct tasks {
	struct task at[TASKS_MAX];
	size_t count;
	struct task_answer *answers;
	unsigned left_out; /* things for which there is no task */
};

/* *t begins as { 0 }. Negative errno: there is no memory to share. */
int tasks_init(struct tasks *t);

/* Adds a copy of one that is to be done. Where there is no room, the findings will say so. */
void tasks_add(struct tasks *t, const struct task *task);

/* Does them all, and adds what they found in their order. Blocks SIGCHLD meanwhile, which must not
 * be ignored, and reaps no other children. Takes as long as the longest limit, with what then()
 * adds, and TASK_KILL_MS. */
void tasks_run(struct tasks *all, struct findings *ret);

void tasks_done(struct tasks *t);

/* In a child: the work is done, and its limit counts no longer, but it holds something open while
 * the other tasks run. It is killed when they have ended. */
_Noreturn void task_ready(struct task_answer *a);

/* In a child: what it is at. */
__attribute__((format(printf, 2, 3))) void task_step(struct task_answer *a, const char *fmt, ...);

#endif
