/* vec.c - see vec.h */
#include "common/vec.h"

#include <string.h>

#include "common/arena.h"

void vec_add(struct arena *a, struct vec *v, const char *s)
{
	if (v->count + 2 > v->room) {
		size_t room = v->room ? v->room * 2 : 16;
		const char **at = arena_alloc(a, room * sizeof *at);

		if (!at)
			return;
		if (v->count)
			memcpy(at, v->at, v->count * sizeof *at);
		v->at = at;
		v->room = room;
	}
	v->at[v->count++] = s;
	v->at[v->count] = NULL;
}

void vec_add_all(struct arena *a, struct vec *v, const char *const *list)
{
	for (; list && *list; list++)
		vec_add(a, v, *list);
}

char *const *vec_argv(const struct vec *v)
{
	static char *const none[] = { NULL };

	/* execve(2) takes char *const * for historical reasons and writes to none of it */
	return v->at ? (char *const *)(void *)v->at : none;
}

const char *env_get(const char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (**env == *name && strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

const char *env_value(const char *const *env, const char *name)
{
	const char *value = env_get(env, name);

	return value && *value ? value : NULL;
}

bool env_is_service_link(const char *value)
{
	static const char *const schemes[] = { "tcp://", "udp://", "sctp://" };

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
		if (strncmp(value, schemes[i], strlen(schemes[i])) == 0)
			return true;
	return false;
}

bool env_has_prefix(const char *const *env, const char *prefix)
{
	size_t len = strlen(prefix);

	for (; env && *env; env++)
		if (strncmp(*env, prefix, len) == 0)
			return true;
	return false;
}

size_t env_name_length(const char *entry)
{
	return strcspn(entry, "=");
}
