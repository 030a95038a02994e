/* bundle.h - what is kept of a failure: one node's part of it (bundle.json), and what node rank 0
 * knows of the whole job (index.json). Pure. Described in failures.md: a change here is one there.
 *
 * Both are plain data, so that a run writes them, --explain reads them, and the story is told of
 * the same thing in both places. All strings are somebody else's or the arena's, may hold any byte
 * but NUL, and are NULL where nothing is known. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_BUNDLE_H
#define LAUNCHD_DAEMON_BLACKBOX_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct cjson;
struct failure;
struct text;

enum {
	BUNDLE_VERSION = 1,
	BUNDLE_FILE_MAX = 4 << 20, /* of bundle.json and of index.json */
	BUNDLE_ITEMS_MAX = 65536,  /* that are read of one list */
};

#define BUNDLE_JSON  "bundle.json"
#define BUNDLE_STORY "story.txt"
#define BUNDLE_INDEX "index.json"

/* What became of a worker. */
enum bundle_fate {
	FATE_WELL,      /* exit code 0 */
	FATE_FIRST,     /* it failed first, in the whole job */
	FATE_FAILED,    /* by itself, after that or with it */
	FATE_ENDED,     /* launchd ended it */
	FATE_RUNS,      /* it still runs: the attempt goes on */
	FATE_UNSTARTED, /* it did not come to that */
	FATES,
};

/* "well", "first", ... */
const char *bundle_fate_word(enum bundle_fate f);

/* What /proc told of a worker before launchd ended anything. */
struct bundle_look {
	bool known;
	char state;       /* as proc(5) has it */
	const char *wait; /* where in the kernel: "futex_wait_queue" */
	const char *call; /* its system call: "futex" */
	uint64_t cpu_ms, io_bytes, threads;
	/* what it used from then on, while launchd let it run */
	uint64_t later_ms, later_cpu_ms; /* later_ms 0: not known */
};

struct bundle_worker {
	unsigned rank, local_rank;
	int64_t pid; /* 0: none */
	enum bundle_fate fate;
	const char *end;  /* "exit code 1" */
	int64_t after_ms; /* after the first failure; of the first itself, and where it isn't known,
			     0 */
	struct bundle_look look;
	const char *error; /* the exception of its error file */
	const char *lines; /* the last ones, few */
	const char *log;
};

/* What one source has found. */
struct bundle_finding {
	const char *source;  /* "nvml" */
	const char *subject; /* "rank 3"; "": the node */
	const char *health;  /* "good", "unknown" (it could not look), "bad" */
	const char *text;
};

/* The failure that came first, as far as is known. */
struct bundle_first {
	bool known;
	unsigned rank, node;
	const char *host, *text; /* "exit code 1" */
	const char *error;       /* its exception */
	const char *command;
};

struct bundle {
	const char *name; /* of the failure, on all nodes: see bundle_name.h */
	const char *job, *host, *launchd;
	unsigned attempt, node, nnodes, world_size;
	int64_t wall_ms;   /* CLOCK_REALTIME, when it began */
	const char *cause; /* as REPORT has it: "failure"; "look" where the attempt goes on */
	const char *kind;  /* "exception", "exit", "signal", "oom", "not_startable", "hang",
			    * "timeout",  "node_lost", "look" */
	const char *why;   /* a sentence */
	struct bundle_first first;
	bool held; /* --blackbox-hold: workers ran until all was seen */
	const struct bundle_worker *workers;
	size_t worker_count;
	const struct bundle_finding *findings;
	size_t finding_count;
};

/* A worker in the index: those that did not end with 0. */
struct bundle_rank {
	unsigned rank, node;
	enum bundle_fate fate;
	const char *end;
	int64_t after_ms;
	bool blames_peer; /* it says that another worker had gone, or did not come */
};

struct bundle_node {
	unsigned node;
	const char *host, *path, *text;
	bool lost;
};

struct bundle_index {
	const char *name, *job, *launchd;
	unsigned attempt, nnodes, world_size;
	int64_t wall_ms;
	const char *cause, *kind, *why;
	bool unsure;     /* others failed so close to it that nobody can tell */
	unsigned futile; /* attempts in a row without a new step, for which the job has ended */
	struct bundle_first first;
	const struct bundle_rank *ranks; /* the most telling first */
	size_t rank_count;
	uint64_t counts[FATES]; /* of all workers */
	const struct bundle_node *nodes;
	size_t node_count;
};

void bundle_json(const struct bundle *b, struct text *out);
void index_json(const struct bundle_index *x, struct text *out);

/* Reads what these have written, or what somebody else has: -EINVAL, and why says what is wrong
 * with it (where: the file, for that). What they return is the arena's. len + 1 bytes are there,
 * the last one NUL. */
int bundle_parse(const struct cjson *c, const char *where, const char *text, size_t len,
	struct arena *arena, struct bundle *ret, struct failure *why);
int index_parse(const struct cjson *c, const char *where, const char *text, size_t len,
	struct arena *arena, struct bundle_index *ret, struct failure *why);

#endif
