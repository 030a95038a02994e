/* failure.h - one failure, told once. Pure; no library function of ours prints. */
#ifndef LAUNCHD_COMMON_FAILURE_H
#define LAUNCHD_COMMON_FAILURE_H

#include <stdbool.h>

#include "common/vec.h"

struct arena;

/* What a failure makes the launcher exit with where it kept workers from starting. That is not
 * errno's to say: the EACCES of a port below 1024 is not that of a program without its x bit. */
enum failure_class {
	FAILURE_OTHER,          /* 1 */
	FAILURE_USAGE,          /* 2: what the user wrote */
	FAILURE_NOT_EXECUTABLE, /* 126, as in a shell: a program that can't be executed */
	FAILURE_NOT_FOUND,      /* 127, as in a shell: a program that isn't there */
};

/* Failures that did not end what failed, as the caller wants them all: see failure_go_on(). */
enum { FAILURES_MAX = 99 };
struct failures {
	struct arena *arena; /* owns the texts */
	struct vec texts;    /* in order, each once */
};

struct failure {
	int code; /* negative errno; 0: nothing failed */
	enum failure_class class;
	char text[768];       /* one sentence for the user, no newline; "" when code is 0 */
	struct failures *all; /* NULL: the first failure is the last */
};

/* Records a failure unless one is recorded already: the first cause wins, as what follows it is
 * mostly its consequence. A sentence that is too long is cut at the end. Returns code. *why begins
 * as { 0 }, or as { .all = ... }. */
__attribute__((format(printf, 3, 4))) int failure_set(
	struct failure *why, int code, const char *fmt, ...);

/* The same for what the user wrote. Returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int failure_usage(struct failure *why, const char *fmt, ...);

/* The same for a program that isn't there (-ENOENT) or can't be executed (anything else). */
__attribute__((format(printf, 3, 4))) int failure_program(
	struct failure *why, int code, const char *fmt, ...);

/* The same for "out of memory". Returns -ENOMEM. */
int failure_oom(struct failure *why);

/* The same for a process or thread that can't be started, which `what` names ("a process"): with
 * the limits that -EAGAIN comes from. Returns code. */
int failure_not_started(struct failure *why, int code, const char *what);

/* The same for a failure that was recorded elsewhere, and is not among why->all. Returns its code.
 */
int failure_copy(struct failure *why, const struct failure *from);

/* Between steps that need nothing of one another: whether the next one is to be taken after one
 * that returned rc. Where all failures are wanted, one of the user's making, which is any but
 * FAILURE_OTHER, moves from *why to why->all, up to FAILURES_MAX of them. So a stage may return 0
 * although there were some; what it made is not for use then. Without why->all: rc >= 0. */
bool failure_go_on(int rc, struct failure *why);

/* The launcher's exit code; 0 where nothing failed. */
int failure_exit_code(const struct failure *why);

#endif
