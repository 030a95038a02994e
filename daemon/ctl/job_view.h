/* job_view.h - how a job is, for people: what "status" of launchd-control(7) answers, as text.
 * Pure. */
#ifndef LAUNCHD_DAEMON_CTL_JOB_VIEW_H
#define LAUNCHD_DAEMON_CTL_JOB_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/os/cjson.h"

struct arena;
struct columns;
struct text;

/* GPU memory that a worker holds, by its pid. */
struct gpu_bytes {
	pid_t worker;
	uint64_t bytes;
};

/* What the launcher does not say itself. */
struct view_frame {
	size_t width;                 /* lines have at most so many characters; 0: of any length */
	const struct gpu_bytes *gpus; /* NULL: there are no GPUs, or it is not known */
	size_t gpu_count;
};

/* The whole status. */
void job_view_status(const struct cjson *c, const cJSON *status, const struct view_frame *frame,
	struct arena *arena, struct text *out);

/* The same of all nodes, from the answer of node rank 0: the job as that one has it, all workers,
 * and why nothing is known of the other nodes. */
void job_view_nodes(const struct cjson *c, const cJSON *all, const struct view_frame *frame,
	struct arena *arena, struct text *out);

/* The pids of the workers that run, to ret, which has room for all. How many. */
size_t job_view_pids(const struct cjson *c, const cJSON *status, pid_t *ret, size_t room);

/* The cells of `launchctl list`: first the head, then a job's. Its guard and user are read from its
 * socket: its answer may be another user's lie. */
void job_view_head(struct columns *c);
void job_view_row(const struct cjson *c, const cJSON *status, pid_t guard, const char *user,
	struct columns *to);

#endif
