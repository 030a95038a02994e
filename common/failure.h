/* failure.h - one failure, told once. Pure; no library function of ours prints. */
#ifndef LAUNCHD_COMMON_FAILURE_H
#define LAUNCHD_COMMON_FAILURE_H

struct failure {
	int code;       /* negative errno; 0: nothing failed */
	char text[768]; /* one sentence for the user, no newline; "" when code is 0 */
};

/* Records a failure unless one is recorded already: the first cause wins, as what follows it is
 * mostly its consequence. A sentence that is too long is cut at the end. Returns code. */
__attribute__((format(printf, 3, 4))) int failure_set(
	struct failure *why, int code, const char *fmt, ...);

/* The same for "out of memory". Returns -ENOMEM. */
int failure_oom(struct failure *why);

/* The same for a process or thread that can't be started, which `what` names ("a process"): with
 * the limits that -EAGAIN comes from. Returns code. */
int failure_not_started(struct failure *why, int code, const char *what);

/* What the launcher ends with when this failure kept it from starting workers:
 * 2 for what the user wrote (-EINVAL), 127 for a program that is not there (-ENOENT), 126 for one
 * that can't be executed (-EACCES, -ENOEXEC), as a shell has it; 1 for everything else. */
int failure_exit_code(const struct failure *why);

#endif
