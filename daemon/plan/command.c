/* command.c - a worker's argv; see plan.h */
#include "daemon/plan/plan.h"

#include <string.h>

#include "common/arena.h"
#include "config/value.h"

/* Length of the name that follows a '$', braces and all, as Python's string.Template has it
 * ([_a-z][_a-z0-9]*, no matter the case); 0: none. */
static size_t placeholder(const char *s, const char **ret_name, size_t *ret_len)
{
	bool braced = *s == '{';
	size_t len;

	s += braced;
	if (*s >= '0' && *s <= '9')
		return 0;
	len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	if (len == 0 || (braced && s[len] != '}'))
		return 0;
	*ret_name = s;
	*ret_len = len;
	return len + 2 * braced;
}

/* torchrun hands every argument to string.Template(...).safe_substitute(local_rank=N): what is no
 * placeholder, or another one, stays as it is. */
static const char *expand(struct arena *a, const char *arg, const char *local_rank)
{
	static const char name_wanted[] = "local_rank";
	const char *out = "";

	if (!strchr(arg, '$'))
		return arg;
	while (*arg) {
		size_t plain = strcspn(arg, "$"), len, skip;
		const char *name;

		out = arena_printf(a, "%s%.*s", out, (int)plain, arg);
		arg += plain;
		if (!*arg)
			break;
		skip = placeholder(arg + 1, &name, &len);
		if (arg[1] == '$') {
			out = arena_printf(a, "%s$", out);
			arg += 2;
		} else if (skip && len == sizeof name_wanted - 1 &&
			strncmp(name, name_wanted, len) == 0) {
			out = arena_printf(a, "%s%s", out, local_rank);
			arg += 1 + skip;
		} else {
			out = arena_printf(a, "%s$", out);
			arg++;
		}
	}
	return out;
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
