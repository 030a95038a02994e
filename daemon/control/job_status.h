/* job_status.h - how a job is, for the control socket: "status" of launchd-control(7). Pure. */
#ifndef LAUNCHD_DAEMON_CONTROL_JOB_STATUS_H
#define LAUNCHD_DAEMON_CONTROL_JOB_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text;

/* Moments are CLOCK_REALTIME nanoseconds; 0: it has not come to that. Texts may be NULL. */
struct job_status {
	const char *name, *run_id, *state, *host;
	const char *stopping; /* why it ends; NULL: it doesn't */
	const char *hang;     /* what seems to hang; NULL: nothing */
	bool step_known;      /* this attempt has come to one: --progress */
	uint64_t step;
	int64_t step_at_ns;
	const char *log_dir;
	unsigned attempt, max_restarts;
	unsigned nnodes, nproc_per_node, world_size, node_rank;
	bool node_known; /* its number is */
	pid_t guard, supervisor;
	int64_t at_ns, started_ns, attempt_started_ns;
	const unsigned *awaited;       /* node ranks that have not come */
	const char *const *node_names; /* by node rank; NULL: not known */
	size_t awaited_count;
	const struct worker_status *workers;
	size_t worker_count;
	const char *placement; /* as JSON; NULL: nobody has asked for one */
};

struct worker_status {
	unsigned rank, local_rank;
	pid_t pid; /* 0: none yet, or never */
	const char *state;
	int64_t started_ns, ended_ns;
	int exit_code; /* -1: it has not ended so */
	int signal;    /* of which it died; 0: none */
	bool has_usage;
	uint64_t cpu_ms, memory_bytes;
	bool is_seen, joined; /* seen: whether it has joined the store is known */
	const char *last_line;
	const char *files[2]; /* of stdout and stderr */
};

void job_status_json(const struct job_status *s, struct text *out);

#endif
