/* plan.c - what a plan says of one worker; see plan.h */
#include "daemon/plan/plan.h"

#include "common/arena.h"
#include "config/lists.h"

struct worker_rank plan_rank(const struct plan *p, unsigned local_rank)
{
	struct worker_rank r = {
		.rank = p->first_rank + local_rank,
		.local_rank = local_rank,
		.world_size = p->world_size,
		.local_world_size = p->nproc,
		.node_rank = p->node_rank,
		.nnodes = p->nnodes,
		.role_rank = p->in_role.first + (p->process.is ? 0 : local_rank),
		.role_world_size = p->in_role.count,
	};

	if (p->process.is) {
		r.node_rank = p->process.host;
		r.nnodes = p->process.hosts;
	}
	return r;
}

const char *plan_error_file(const struct attempt *attempt, unsigned local_rank, struct arena *arena)
{
	if (attempt->log_dir)
		return arena_printf(arena, "%s/%u/error.json", attempt->log_dir, local_rank);
	if (!attempt->run_dir)
		return NULL;
	return arena_printf(arena, "%s/attempt_%u_local_rank_%u_error.json", attempt->run_dir,
		attempt->number, local_rank);
}

const char *plan_progress_socket(const char *run_dir, struct arena *arena)
{
	return run_dir ? arena_printf(arena, "%s/progress", run_dir) : NULL;
}

bool output_is_redirected(const struct output_plan *o, unsigned local_rank, int fd)
{
	return ((streams_of(o->redirects, local_rank) | streams_of(o->tee, local_rank)) &
		       (unsigned)fd) != 0;
}

static const char *prefix_of(const struct output_plan *o, bool teed)
{
	if (o->prefix)
		return o->prefix;
	if (o->merge) /* local ranks of several nodes are the same */
		return "[${hostname}:${rank}]:";
	return teed ? "[${role_name}${local_rank}]:" /* torchrun's */ : NULL;
}

struct stream_plan plan_stream(const struct plan *p, unsigned local_rank, int fd)
{
	const struct output_plan *o = &p->output;
	bool shown = !o->ranks_filter || ranks_contain(o->ranks_filter, local_rank);
	bool redirected = o->tree && output_is_redirected(o, local_rank, fd);
	bool teed = redirected && (streams_of(o->tee, local_rank) & (unsigned)fd) != 0;
	const struct vec *filters = fd == 1 ? &o->out_filters : &o->err_filters;
	bool is_journal = o->journal == JOURNAL_ALL;
	bool wanted = p->progress.by == PROGRESS_LINES;
	struct stream_plan ret = {
		.way = STREAM_PIPE,
		.file = redirected || (o->tree && o->log_all),
		.console = (teed || !redirected) && shown,
		.filtered = teed && shown && filters->count > 0,
	};

	if (ret.console && !is_journal) /* the journal has fields for that */
		ret.prefix = prefix_of(o, teed);
	if (ret.console && !ret.file && !ret.prefix && !is_journal && !wanted && o->terminal[fd])
		ret.way = STREAM_INHERIT;
	if (ret.file && !ret.console && o->max_size_bytes == 0 && !o->timestamps && !o->reopen &&
		!wanted)
		ret.way = STREAM_DIRECT;
	return ret;
}

bool plan_is_wrapped(const struct plan *p, unsigned local_rank)
{
	return p->wrap.count > 0 &&
		(!p->wrap_ranks || ranks_contain(p->wrap_ranks, p->first_rank + local_rank));
}

const char *plan_program(const struct plan *p, unsigned local_rank)
{
	return plan_is_wrapped(p, local_rank) ? p->wrapper : p->program;
}

struct picture plan_picture(const struct plan *p)
{
	return (struct picture){
		.machine = p->machine,
		.placement = p->placement,
		.gpus_of = p->gpus_of,
		.per_worker = p->visible.per_worker,
		.first_rank = p->first_rank,
		.ranks_known = true,
		.start_first = p->start_first,
		.start_count = p->start_count,
	};
}

struct attempt plan_attempt(const struct plan *p, unsigned number, struct arena *arena)
{
	return (struct attempt){
		.number = number,
		.master_port = p->master_port ? arena_printf(arena, "%u", p->master_port) :
						"<a free port>",
		.run_dir = "<run directory>",
	};
}
