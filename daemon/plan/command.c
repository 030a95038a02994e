/* command.c - a worker's argv; see plan.h */
#include "daemon/plan/plan.h"

#include <string.h>

#include "common/arena.h"
#include "common/template.h"
#include "common/text.h"
#include "config/ranks.h"

/* torchrun hands every argument to string.Template(...).safe_substitute(local_rank=N). */
static const char *expand(struct arena *a, const char *arg, const char *local_rank)
{
	const struct template_value value = { "local_rank", local_rank };
	struct text out = { 0 };
	const char *expanded;

	if (!strchr(arg, '$'))
		return arg;
	template_expand(arg, &value, 1, &out);
	a->failed = a->failed || out.failed;
	expanded = arena_strndup(a, text_string(&out), out.len);
	text_done(&out);
	return expanded;
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

void plan_command(const struct plan *p, unsigned local_rank, struct arena *arena, struct vec *ret)
{
	unsigned shown = p->virtual_local_rank ? 0 : local_rank;
	const char *number = arena_printf(arena, "%u", local_rank); /* as torchrun: the real one */
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
		vec_add(arena, ret,
			p->expand_args ? expand(arena, p->args->at[i], number) : p->args->at[i]);
}
