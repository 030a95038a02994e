/* vec.h - a list of strings that always ends with NULL, so that it can be an argv or an envp.
 * The list and its growth are the arena's; the strings are borrowed. */
#ifndef LAUNCHD_COMMON_VEC_H
#define LAUNCHD_COMMON_VEC_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

struct vec {
	const char **at; /* at[count] is NULL; NULL while nothing was added: see vec_argv() */
	size_t count, room;
};

/* Adds a string. Out of memory: nothing is added and the arena is failed. */
void vec_add(struct arena *a, struct vec *v, const char *s);

/* Adds all strings of a NULL-terminated list; NULL is an empty one. */
void vec_add_all(struct arena *a, struct vec *v, const char *const *list);

/* The list as execve(2) wants it; never NULL. */
char *const *vec_argv(const struct vec *v);

/* Environment lists: entries are NAME=VALUE, names are compared exactly and whole. */

/* The value of name in an environment, borrowed from it; NULL: not set. */
const char *env_get(const char *const *env, const char *name);

/* The same; NULL where it is empty, too, which nearly all take for not set. */
const char *env_value(const char *const *env, const char *name);

/* Whether the value of a variable NAME_PORT is Kubernetes' word of a service called NAME, which no
 * user has set: "tcp://10.96.0.12:23456". */
bool env_is_service_link(const char *value);

/* Whether any variable's name begins so. */
bool env_has_prefix(const char *const *env, const char *prefix);

/* Length of the name in "NAME=VALUE"; the whole length where there is no '='. */
size_t env_name_length(const char *entry);

#endif
