/* rlimits.h - resource limits as --rlimit has them: "nofile=65536,memlock=unlimited,core=0:1G".
 * Pure.
 *
 * Names are those of setrlimit(2) without RLIMIT_, in small or capital letters, with or without
 * RLIMIT_. One value is both limits, as for ulimit and Docker; SOFT:HARD are two. Sizes are bytes,
 * and may have K, M, G or T. */
#ifndef LAUNCHD_CONFIG_RLIMITS_H
#define LAUNCHD_CONFIG_RLIMITS_H

#include <stddef.h>
#include <sys/resource.h>

struct arena;
struct failure;
struct text;

struct rlimit_asked {
	unsigned resource; /* RLIMIT_NOFILE */
	const char *name;  /* "nofile" */
	struct rlimit value;
};

struct rlimits {
	struct rlimit_asked *at; /* one a resource; the arena's */
	size_t count;
};

/* -EINVAL: text is no such list; the sentence begins with `where`. -ENOMEM. *ret is untouched then.
 */
int rlimits_parse(const char *text, const char *where, struct arena *arena, struct rlimits *ret,
	struct failure *why);

/* Adds a limit's value: "65536", "unlimited". */
void rlimits_add_value(rlim_t value, struct text *out);

/* Adds one: "nofile=1024:65536", "core=unlimited". */
void rlimits_add(const struct rlimit_asked *l, struct text *out);

#endif
