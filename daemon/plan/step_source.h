/* step_source.h - --progress: what counts as a step of the job, and how its number is read. Pure.
 *
 * A step's number says how far the job has come, over all attempts: one that starts again from a
 * checkpoint does some of them again, and those are no progress. */
#ifndef LAUNCHD_DAEMON_PLAN_STEP_SOURCE_H
#define LAUNCHD_DAEMON_PLAN_STEP_SOURCE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;

/* Workers get it with --progress notify: a datagram socket. */
#define PROGRESS_SOCKET_VARIABLE "LAUNCHD_PROGRESS_SOCKET"

enum progress_by {
	PROGRESS_NONE,
	PROGRESS_LINES,  /* lines of workers' output */
	PROGRESS_FILE,   /* a file that changes */
	PROGRESS_NOTIFY, /* what workers send to a socket */
};

struct progress_plan {
	enum progress_by by;
	const char *what; /* LINES: the expression; FILE: the path. Borrowed. */
};

/* Reads the setting's text. where names it in errors. -EINVAL: an expression that is none, or has
 * not one group. */
int progress_parse(
	const char *text, const char *where, struct progress_plan *ret, struct failure *why);

/* An extended expression of POSIX's, in which \d and \D mean digits as in Python's. For regfree().
 * -EINVAL, -ENOMEM. */
int progress_compile(const char *expression, const char *where, regex_t *ret, struct failure *why);

/* The number that the expression's group has in a line. False: it doesn't match, or that is none.
 */
bool progress_in_line(const regex_t *expression, const char *line, uint64_t *ret);

/* The first number of a short file: "1000\n", "global_step1000". False: there is none. */
bool progress_in_file(const char *at, size_t len, uint64_t *ret);

enum progress_news {
	PROGRESS_NO_NEWS,
	PROGRESS_ALIVE, /* WATCHDOG=1 */
	PROGRESS_STEP,  /* STEP=N */
};

/* What a datagram says, in the form of sd_notify(3): lines NAME=VALUE, of which others are skipped.
 */
enum progress_news progress_in_datagram(const char *at, size_t len, uint64_t *ret_step);

#endif
