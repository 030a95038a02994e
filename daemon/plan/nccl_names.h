/* nccl_names.h - with --blackbox, where torch's flight recorder and NCCL's RAS are found after a
 * failure, with --on-hang where RAS is found before one: named for the workers as they start,
 * unless the user has named them. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_NCCL_NAMES_H
#define LAUNCHD_DAEMON_PLAN_NCCL_NAMES_H

struct arena;
struct attempt;
struct plan;

#define NCCL_PIPES "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
#define NCCL_RAS   "NCCL_RAS_ADDR"

/* How many operations torch's flight recorder keeps. From torch 2.3 on all versions read the first
 * name, which alone turns the pipe on, and newer ones the second as well; up to 2.10 the recorder
 * is off without either. */
#define NCCL_TRACE     "TORCH_NCCL_TRACE_BUFFER_SIZE"
#define NCCL_TRACE_NOW "TORCH_FR_BUFFER_SIZE"

struct nccl_names {
	const char *dumps_variable; /* as this version of torch has it */
	/* what torch adds its rank to, by whomever it is named; NULL: nobody has */
	const char *dumps, *pipes;
	/* for the workers' environment; NULL: the user's stays, or nobody asks */
	const char *set_dumps, *set_pipes, *set_ras, *set_trace;
};

/* Memory is the arena's, and the plan's. */
void nccl_names_choose(const struct plan *p, const struct attempt *attempt, struct arena *arena,
	struct nccl_names *ret);

#endif
