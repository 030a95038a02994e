/* question.h - a question to a library or a program that may hang or crash, before there is an
 * event loop: a child asks it, and is killed when its time is over. See helper.h for those that
 * come later.
 */
#ifndef LAUNCHD_DAEMON_OS_QUESTION_H
#define LAUNCHD_DAEMON_OS_QUESTION_H

#include <stddef.h>
#include <stdint.h>

struct failure;

enum { QUESTION_KEPT = 4 };

struct question {
	/* In the child: fills in the answer, which is all zeros. */
	void (*work)(const void *how, void *answer);
	const void *how;
	int kept; /* the only descriptor that it needs, which is QUESTION_KEPT there; 0: none */
	const char *whom; /* "NVML", for sentences */
	const char *hint; /* what it may be if there is no answer; "": not known */
	uint64_t limit_ms;
};

/* Waits for the whole answer. -ETIMEDOUT: it has not come in time; -EIO: the child has died;
 * others: there is none. A signal that would end this process (SIGTERM and its like) does so once
 * the child is reaped. */
int question_ask(const struct question *q, void *answer, size_t size, struct failure *why);

/* Runs a program, and returns what it writes to its stdout until it closes that or exits: at most
 * size - 1 bytes, ended with a NUL. Its stdin and stderr are /dev/null. Afterwards the processes of
 * its process group are killed. -ETIMEDOUT: it took too long; -EIO: it failed; others: it couldn't
 * be run.
 */
int question_run(const char *const *argv, const char *const *env, uint64_t limit_ms, char *ret,
	size_t size, struct failure *why);

#endif
