/* report_input.h - all that a report is made from. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_INPUT_H
#define LAUNCHD_DAEMON_REPORT_REPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/job/evidence.h"

struct arena;
struct goodput;
struct history;
struct plan;
struct result;

struct report_input {
	const struct result *result;
	const struct plan *plan;
	const char *hostname;
	const struct error_record *record; /* the culprit's error file; NULL: none */
	struct last_words words;           /* the culprit's */
	const char
		*shown; /* what stands last on the console that gets the report; NULL: not known */
	bool is_local;  /* it is only this node's culprit: the job's root cause is another one */
	uid_t uid;      /* launchd's own */
	struct arena *arena; /* for what the report needs in between */
	/* the culprit's, quoted for a shell; NULL: the plan's, where that is ours */
	const char *command;
	unsigned attempt, max_restarts; /* the attempt's number, from 0; 0: none are wanted */
	unsigned asked_restarts;        /* as struct job_end has them */
	bool restart_asked;             /* likewise */
	const char *why_not; /* why no restart follows where some are left; NULL, "": no reason */
	const struct history *past;    /* the attempts that are over; NULL: not known here */
	const struct goodput *goodput; /* NULL, no attempts: not known here */
	const char *bundle;            /* as struct job_end has it */
	const unsigned *waiting;       /* ranks that had not joined the store, in order */
	size_t waiting_count;
	/* what the job came to in one line; NULL: on one node. With a result of one node of several
	 * the exit code is the job's. */
	const char *verdict;
	int verdict_code;
};

#endif
