/* metrics.h - what launchd counts of a job, and the text of it that Prometheus reads. Pure: times
 * and what others count are passed in. The names are listed in launchd(1), METRICS. */
#ifndef LAUNCHD_DAEMON_SERVICE_METRICS_H
#define LAUNCHD_DAEMON_SERVICE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/cluster/sight.h"
#include "daemon/job/goodput.h"
#include "daemon/output/tally.h"

struct arena;
struct event;
struct text;

/* What a worker of this node does in the present attempt. */
enum doing {
	DOING_PENDING,   /* is not started yet */
	DOING_RUNNING,   /* was */
	DOING_STOPPING,  /* launchd ends it */
	DOING_SUCCEEDED, /* ended by itself with 0 */
	DOING_FAILED,    /* ended by itself otherwise, or could not be started */
	DOING_STOPPED,   /* ended when launchd had asked it to, or was not started for that */
	DOING_COUNT,
};

/* Why an attempt ended. The first four are also how a worker fails. */
enum ended_by {
	ENDED_BY_EXIT,
	ENDED_BY_SIGNAL,
	ENDED_BY_OOM, /* a signal that the kernel's OOM killer sent, for sure or likely */
	ENDED_BY_START,
	ENDED_BY_WORKER, /* how many these are */
	ENDED_BY_SUCCESS = ENDED_BY_WORKER,
	ENDED_BY_REQUEST,
	ENDED_BY_MAX_RUNTIME,
	ENDED_BY_GUARD,
	ENDED_BY_LAUNCHER,
	ENDED_BY_HANGUP,
	ENDED_BY_NODE_LOST,
	ENDED_BY_RESTART,  /* somebody asked for it */
	ENDED_BY_BAD_NODE, /* none was started */
	ENDED_BY_HANG,
	ENDED_BY_PREEMPTION,
	ENDED_BY_TIMEOUT, /* workers timed out waiting for another one */
	ENDED_BY_UNKNOWN, /* the reason is another node's, and this one was not told */
	ENDED_BY_COUNT,
};

/* What this node's observer counts. { 0 } but for the first two before the first event. */
struct metrics {
	struct arena *arena;  /* borrowed */
	const char *job_name; /* borrowed */

	bool started;       /* the nodes have met: what follows is known */
	const char *run_id; /* the plan's */
	char host[NODE_NAME_SIZE];
	unsigned node_rank, nnodes, world_size, max_restarts;
	unsigned first, count; /* the ranks that are started here */
	unsigned char *doing;  /* enum doing of each of them; NULL: no memory */
	int64_t started_wall_ns, attempt_wall_ns, ended_wall_ns; /* CLOCK_REALTIME; 0: not yet */

	unsigned workers[DOING_COUNT];
	uint64_t attempts, restarts;
	uint64_t failures[ENDED_BY_WORKER]; /* of workers */
	uint64_t ends[ENDED_BY_COUNT];      /* of attempts */
	/* Of attempts that were followed by another one: from the start of each to its failure, and
	 * from that to the start of the next one. */
	uint64_t failed_ns, down_ns;
	bool hang_watched; /* --on-hang is given, on node rank 0 */
	bool hang_suspected;
	bool has_step; /* of this attempt, on node rank 0: --progress */
	uint64_t step;
	int64_t step_wall_ns;
	struct goodput goodput; /* of the attempts that have ended, on node rank 0 */
	bool has_code;
	int exit_code;

	/* of the present attempt; CLOCK_MONOTONIC, 0: not yet */
	uint64_t attempt_ns, failure_ns, last_end_ns;
	enum ended_by cause;
	bool stopping;
};

/* What others know at the moment of rendering. */
struct metrics_moment {
	struct output_counts output;
	const struct sight *sight; /* borrowed */
};

/* Counts an event that has its time. wall_ns: CLOCK_REALTIME at that time. Events that it does not
 * know change nothing. Plans are borrowed. */
void metrics_hear(struct metrics *m, const struct event *e, int64_t wall_ns);

/* Adds the whole page in Prometheus' text format, version 0.0.4. */
void metrics_render(const struct metrics *m, const struct metrics_moment *now, struct text *out);

#endif
