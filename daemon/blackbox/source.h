/* source.h - the things that can be asked about a failure while workers still live: each a row of
 * one table, asked in a process of its own with a limit (daemon/check/task.h). One that hangs costs
 * that process, and a finding that says so. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_SOURCE_H
#define LAUNCHD_DAEMON_BLACKBOX_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct task_answer;
struct xids;

/* What torch's flight recorder adds rank, and ".pipe", to. NULL: nobody has named them. */
struct recorder_files {
	const char *dumps, *pipes;
};

struct source_worker {
	pid_t pid; /* it lived when the sources began */
	unsigned rank, local_rank;
};

struct source_input {
	const char *run_dir;     /* as struct attempt has it */
	const char *dir;         /* of this node's part of the bundle, absolute: files go there */
	const struct xids *xids; /* that were seen since the job began; NULL: nobody watched */
	const char *visible;     /* the job's CUDA_VISIBLE_DEVICES; NULL: all GPUs are its own */
	int stack_signal;        /* of --stack-signal; 0: none */
	struct recorder_files recorder;
	int64_t since_ms;           /* CLOCK_REALTIME, when the attempt's workers were started */
	unsigned first_rank, ranks; /* of this node's workers, also those that have ended */
	const struct source_worker *workers; /* that live */
	size_t count;
};

struct blackbox_source {
	const char *name; /* of its findings: "nvml" */
	unsigned limit_ms;
	/* Whether there is anything to ask here. NULL: always. Does not wait. */
	bool (*is_wanted)(const struct source_input *in);
	/* Asks, and adds findings to the answer: findings_add(&a->findings, ...), a line each; more
	 * than a line goes to a file in dir, which is theirs by its name. Of the node, or called
	 * once for each worker that lives; the other one is NULL. */
	void (*of_node)(const struct source_input *in, struct task_answer *a);
	void (*of_worker)(const struct source_input *in, const struct source_worker *w,
		struct task_answer *a);
};

/* The table; ends with a row without a name. */
extern const struct blackbox_source blackbox_sources[];

#endif
