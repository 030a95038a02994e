/* plan.c - what a plan says of one worker; see plan.h */
#include "daemon/plan/plan.h"

#include <string.h>

#include "common/arena.h"
#include "common/template.h"
#include "common/text.h"
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
	return arena_printf(arena, "%s/attempt_%u_local_rank_%u_error.json", attempt->run_dir,
		attempt->number, local_rank);
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
	struct stream_plan ret = {
		.way = STREAM_PIPE,
		.file = redirected || (o->tree && o->log_all),
		.console = (teed || !redirected) && shown,
		.filtered = teed && shown && filters->count > 0,
	};

	if (ret.console && !is_journal) /* the journal has fields for that */
		ret.prefix = prefix_of(o, teed);
	if (ret.console && !ret.file && !ret.prefix && !is_journal && o->terminal[fd])
		ret.way = STREAM_INHERIT;
	if (ret.file && !ret.console && o->max_size_bytes == 0 && !o->timestamps && !o->reopen)
		ret.way = STREAM_DIRECT;
	return ret;
}

/* The values that arguments may name; none where they name none. */
struct values {
	struct template_value *at;
	size_t count;
};

static const char *lower(struct arena *a, const char *name)
{
	char *copy = arena_strdup(a, name);

	for (char *p = copy; p && *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	return copy;
}

static bool names_any(const struct plan *p)
{
	for (size_t i = 0; i < p->args->count; i++)
		if (strchr(p->args->at[i], '$'))
			return true;
	return false;
}

/* torchrun's $local_rank is the real one, whatever LOCAL_RANK says, and comes first. */
static struct values values_of(const struct plan *p, unsigned local_rank,
	const struct attempt *attempt, struct arena *arena)
{
	struct values v = { 0 };
	struct env_edits edits = { 0 };

	if (p->expand_args == EXPAND_NOTHING || !names_any(p))
		return v;
	if (p->expand_args == EXPAND_ALL)
		plan_environment(p, local_rank, attempt, arena, &edits);
	v.at = arena_alloc(arena, (1 + 2 * edits.count) * sizeof *v.at);
	if (!v.at)
		return v;
	v.at[v.count++] =
		(struct template_value){ "local_rank", arena_printf(arena, "%u", local_rank) };
	for (size_t i = 0; i < edits.count; i++) {
		const struct env_edit *e = &edits.at[i];

		if (!e->value)
			continue;
		v.at[v.count++] = (struct template_value){ e->name, e->value };
		v.at[v.count++] = (struct template_value){ lower(arena, e->name), e->value };
	}
	return v;
}

/* torchrun hands every argument to string.Template(...).safe_substitute(local_rank=N). */
static const char *expand(struct arena *a, const char *arg, const struct values *v)
{
	struct text out = { 0 };
	const char *expanded;

	if (v->count == 0 || a->failed || !strchr(arg, '$'))
		return arg;
	template_expand(arg, v->at, v->count, &out);
	a->failed = a->failed || out.failed;
	expanded = arena_strndup(a, text_string(&out), out.len);
	text_done(&out);
	return expanded;
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

bool plan_is_wrapped(const struct plan *p, unsigned local_rank)
{
	return p->wrap.count > 0 &&
		(!p->wrap_ranks || ranks_contain(p->wrap_ranks, p->first_rank + local_rank));
}

const char *plan_program(const struct plan *p, unsigned local_rank)
{
	return plan_is_wrapped(p, local_rank) ? p->wrapper : p->program;
}

void plan_command(const struct plan *p, unsigned local_rank, const struct attempt *attempt,
	struct arena *arena, struct vec *ret)
{
	unsigned shown = p->virtual_local_rank ? 0 : local_rank;
	const struct values values = values_of(p, local_rank, attempt, arena);
	bool wrapped = plan_is_wrapped(p, local_rank);

	if (wrapped)
		vec_add_all(arena, ret, p->wrap.at);
	if (p->python) {
		vec_add(arena, ret, p->program);
		vec_add(arena, ret, "-u");
		if (p->module)
			vec_add(arena, ret, "-m");
	}
	/* a wrapper looks for the program anew: it gets the path that we have found */
	vec_add(arena, ret, wrapped && !p->python ? p->program : p->script);
	if (!p->use_env)
		vec_add(arena, ret, arena_printf(arena, "%s=%u", p->local_rank_arg, shown));
	for (size_t i = 0; i < p->args->count; i++)
		vec_add(arena, ret, expand(arena, p->args->at[i], &values));
}
