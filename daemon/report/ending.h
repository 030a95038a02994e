/* ending.h - how a worker ended, in words and numbers. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_ENDING_H
#define LAUNCHD_DAEMON_REPORT_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text;

enum how { ENDED_EXIT, ENDED_SIGNAL, ENDED_UNSTARTED };

/* One meaning for each field: never a raw wait status. */
struct ending {
	enum how how;
	int value; /* exit code | signal | errno */
	bool core; /* ENDED_SIGNAL: a core was dumped */
};

/* What launchd did before a worker ended. */
enum asked { ASKED_NOTHING, ASKED_TO_STOP, ASKED_KILLED };

/* One worker's whole story, as the report tells it. */
struct outcome {
	unsigned rank, local_rank, attempt;
	pid_t pid; /* 0: never started */
	struct ending end;
	enum asked asked;                        /* by launchd, before it ended */
	int asked_signal;                        /* the first one that asked it to stop */
	uint64_t started_ns, ended_ns, asked_ns; /* CLOCK_MONOTONIC; 0: never */
};

/* What came of a run on this node. */
struct result {
	const struct outcome *outcomes; /* one for each worker, by local rank; borrowed */
	size_t count;
	const struct outcome *first_failure; /* one of them; NULL: none */
	int ended_by;                        /* the signal that ended the job; 0: none */
};

bool ending_is_success(const struct ending *e);

/* 0..255 as a shell says it: the code, 128 + signal, 127 for a program that is not there, 126 for
 * one that can't be executed. */
int ending_exit_code(const struct ending *e);

/* The job's exit code: the first failure's own, 128 + the signal that ended the job, and 0 only if
 * every worker ended with 0. */
int result_exit_code(const struct result *r);

/* "SIGTERM", "SIGRTMIN+3"; "signal 99" for what has no name. Valid until the next call. */
const char *signal_name(int signal);

/* "exit code 1", "killed by SIGSEGV (core dumped)", "could not be started" */
void ending_describe(const struct ending *e, struct text *out);

#endif
