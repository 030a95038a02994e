/* quick_input.h - what the quick check is to look at, and what it holds it against. */
#ifndef LAUNCHD_DAEMON_CHECK_QUICK_INPUT_H
#define LAUNCHD_DAEMON_CHECK_QUICK_INPUT_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct failure;
struct settings;
struct xids;

enum {
	DRIVER_LIMIT_MS = 30000, /* to begin, and to wake all GPUs; then unknown */
	GPU_LIMIT_MS = 5000,     /* of the facts of one, which is awake then */
	NODE_LIMIT_MS = 5000,    /* of every other fact */
};

struct quick_input {
	const struct settings *settings; /* the limits of [check] */
	unsigned gpus;                   /* there have to be; where gpus_given */
	bool gpus_given;
	const char *gpu_uuids; /* "UUID,UUID", each may be cut; NULL: any */
	const char *visible;   /* as CUDA_VISIBLE_DEVICES; NULL: all. The others aren't looked at */
	const char *log_dir, *tmp_dir, *work_dir; /* NULL: not looked at; none has to exist */
	const char *sys_root;                     /* "" but in tests: before /sys */
	const char *kmsg;                         /* the kernel's log; NULL: it isn't looked at */
	const struct xids *xids; /* which a child keeps, see xid.h; NULL: none does */
	bool restart;            /* what is held on the GPUs isn't looked at: it is the job's own */
	const char *const *command; /* of --check-command; NULL: none. Its first word is a path */
	uint64_t command_limit_ms;
};

/* What settings and environment say, of which all is borrowed. `restart`: before a restart of a
 * job, when --check-command counts by --check-when; `alone`: for --check-node, when it counts in
 * any case. -EINVAL, -ENOENT, -EACCES: it can't be split, found or executed; for the user, exit
 * code 2. */
int quick_input_make(const struct settings *s, const char *const *env, bool restart, bool alone,
	struct arena *arena, struct quick_input *ret, struct failure *why);

#endif
