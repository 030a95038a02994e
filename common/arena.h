/* arena.h - memory that lives as long as the run (or until a mark), freed in one go.
 *
 * Failure is sticky: a string function never returns NULL, it returns "" and remembers; a stage
 * checks arena_failed() once at its end instead of after each of a hundred strings. */
#ifndef LAUNCHD_COMMON_ARENA_H
#define LAUNCHD_COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *last; /* NULL: nothing allocated yet; { 0 } is an empty arena */
	bool failed;
};

/* A place to go back to; see arena_rewind(). */
struct arena_mark {
	struct arena_block *last;
	size_t used;
};

/* Zeroed memory, aligned for any type. NULL (and the arena is failed) when there is none. */
void *arena_alloc(struct arena *a, size_t size_bytes);

/* Copies. "" when out of memory. The result is the arena's. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *a, const char *fmt, ...);

bool arena_failed(const struct arena *a);

/* Everything allocated after the mark is given back by arena_rewind(). */
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark to);

/* Frees all. The arena is empty again. */
void arena_done(struct arena *a);

#endif
