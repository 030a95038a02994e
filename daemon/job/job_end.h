/* job_end.h - how a job ended, as far as one node knows. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_JOB_END_H
#define LAUNCHD_DAEMON_JOB_JOB_END_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/goodput.h"
#include "daemon/job/history.h"
#include "daemon/job/verdict.h"

struct job_end {
	struct verdict verdict;
	const struct result *result; /* the whole job's; NULL: this node has not heard it all */
	/* Node rank 0 was lost: nobody else tells how this node's workers ended. */
	bool alone;
	const struct evidence *evidence; /* of result->culprit; NULL: none */
	unsigned restarts;
	unsigned asked_restarts; /* before this one those that somebody asked for; see job.h */
	bool restart_asked;      /* another attempt follows because of that */
	const char *why_not;     /* why no more restarts; "" */
	struct history past;     /* the attempts that are over, this one last; none: not known */
	struct goodput goodput;  /* of these; no attempts: not known here */
	const char *bundle;      /* what is kept of the failure: its directory; NULL: nothing is */
	const unsigned *waiting; /* ranks that had not joined the store when they were looked for */
	size_t waiting_count;
};

/* The same, with what this node knows by itself. */
struct run_end {
	struct result own; /* of the last attempt on this node; no outcomes: none was started */
	struct job_end job;
	struct result whole;         /* what job.result points to */
	struct evidence own_culprit; /* what own.culprit says; no record: nothing */
	struct arena memory;         /* of the two; see run_end_done() */
};

#endif
