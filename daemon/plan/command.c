/* command.c - a worker's argv, and the values in it; see plan.h */
#include "daemon/plan/plan.h"

#include <string.h>

#include "common/arena.h"
#include "common/template.h"
#include "common/text.h"

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
