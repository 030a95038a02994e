/* log_tree.h - the directories of log files, laid out as torchrun's are:
 * DIR/ID_XXXXXXXX/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,error.json}. Waits for the disk. */
#ifndef LAUNCHD_DAEMON_OUTPUT_LOG_TREE_H
#define LAUNCHD_DAEMON_OUTPUT_LOG_TREE_H

#include "daemon/os/tmp_dir.h"

struct arena;
struct failure;

/* The directory of a run. */
struct log_tree {
	const char *run_dir; /* absolute; NULL: not made, or none */
	struct tmp_dir *own; /* launchd has made it, as there is no log_dir, and keeps its lock: */
	int lock;            /* else -1 */
};

/* Makes log_dir, and what is missing above it. -EINVAL: it can't be. */
int tree_make_base(const char *log_dir, const char *where, struct failure *why);

/* Makes the directory of a run below log_dir, which is made, too, where it is not there; NULL:
 * below a new one in a temporary place, mode 700, and why is also set on success where TMPDIR can't
 * be used. Memory is the arena's. ret->lock is -1, or the one before, which is closed. */
int tree_make_run(const char *log_dir, const char *run_id, const char *const *env,
	struct arena *arena, struct log_tree *ret, struct failure *why);

/* Whether it is there, and nobody else's. */
bool tree_is_there(const struct log_tree *t);

/* Makes an attempt's directory in it, with those of the local ranks first to first + count - 1. */
int tree_make_attempt(const char *run_dir, unsigned attempt, unsigned first, unsigned count,
	struct arena *arena, const char **ret, struct failure *why);

/* The log file of a worker's stdout (1) or stderr (2) in an attempt's directory; the arena's. */
const char *tree_log_path(const char *dir, unsigned local_rank, int fd, struct arena *arena);

#endif
