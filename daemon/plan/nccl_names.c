/* nccl_names.c - see nccl_names.h
 *
 * The pipe is in the run's directory, which is local: torch makes it (mkfifo(3)), and a file system
 * that has none would end the worker. With --wrap nothing says that the directory is there for the
 * worker, as it isn't in a container, so there is no pipe then; a dump that can't be written only
 * warns. */
#include "daemon/plan/nccl_names.h"

#include <stdlib.h>

#include "common/arena.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/torch_version.h"
#include "daemon/plan/plan.h"

static const char dumps_now[] = "TORCH_FR_DUMP_TEMP_FILE";
static const char dumps_before[] = "TORCH_NCCL_DEBUG_INFO_TEMP_FILE";

/* From 2.9 on torch warns of the older name; the newer one says nothing to those before. */
static const char *dumps_variable(const char *torch_version)
{
	return torch_version_since(torch_version, 2, 9) ? dumps_now : dumps_before;
}

/* NCCL's own port is the same for all jobs, and the processes of one user share it: an answer could
 * be another job's. The store's port is no other job's of this host; those made of it lie below the
 * ports that Linux gives away (32768), and where one is taken after all NCCL only does without. */
static const char *ras_address(const char *master_port, struct arena *arena)
{
	enum { FIRST = 28029, COUNT = 4000 };
	char *end;
	unsigned long port = strtoul(master_port, &end, 10);

	if (end == master_port)
		return "localhost:<a port of this attempt>";
	return arena_printf(arena, "localhost:%lu", FIRST + port % COUNT);
}

static const char *file_name(const struct attempt *attempt, const char *name, struct arena *arena)
{
	if (!attempt->run_dir)
		return NULL;
	return arena_printf(
		arena, "%s/attempt_%u_%s_rank_", attempt->run_dir, attempt->number, name);
}

void nccl_names_choose(const struct plan *p, const struct attempt *attempt, struct arena *arena,
	struct nccl_names *ret)
{
	const char *now = env_given(p->user_env, p->env, dumps_now);
	const char *before = env_given(p->user_env, p->env, dumps_before);
	bool is_old = torch_version_since(p->torch_version, 1, 0) && /* it has no newer name */
		!torch_version_since(p->torch_version, 2, 8);
	const char *trace_now = env_given(p->user_env, p->env, NCCL_TRACE_NOW);

	*ret = (struct nccl_names){
		.dumps_variable = dumps_variable(p->torch_version),
		.dumps = now && !(is_old && before) ? now : before,
		.set_dumps = is_old && !before && p->blackbox_dir ? now : NULL,
		.pipes = env_given(p->user_env, p->env, NCCL_PIPES),
	};
	if ((p->blackbox_dir || (p->on_hang != ON_HANG_OFF && !p->hang_modest)) &&
		!env_given(p->user_env, p->env, NCCL_RAS))
		ret->set_ras = ras_address(attempt->master_port, arena);
	if (!p->blackbox_dir)
		return;
	if (!env_given(p->user_env, p->env, NCCL_TRACE)) /* else as torch itself from 2.11 on */
		ret->set_trace = trace_now && *trace_now ? trace_now : "2000";
	if (!ret->dumps)
		ret->dumps = ret->set_dumps = file_name(attempt, "nccl_trace", arena);
	if (!ret->pipes && p->wrap.count == 0)
		ret->pipes = ret->set_pipes = file_name(attempt, "nccl_dump", arena);
}
