/* bits.h - sets of small numbers, as the kernel takes them for CPUs and NUMA nodes; as text
 * "0-3,16-19". Pure. */
#ifndef LAUNCHD_COMMON_BITS_H
#define LAUNCHD_COMMON_BITS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct text;

/* Numbers above those of the set's room are not in it. { 0 } is an empty set. */
struct bits {
	unsigned long *at; /* bit n % 64 of word n / 64 is number n, the arena's */
	size_t words;
};

/* More than any kernel of today has CPUs (CONFIG_NR_CPUS is at most 8192). */
enum { BITS_MAX = 16384 };

/* An empty set with room for numbers below `room`. Out of memory: without any. */
struct bits bits_make(struct arena *arena, size_t room);

/* There is room for n, else nothing happens. */
void bits_add(struct bits *b, unsigned n);
bool bits_have(const struct bits *b, unsigned n);
bool bits_are_empty(const struct bits *b);
unsigned bits_count(const struct bits *b);

/* The lowest number from n on that is in it; -1: there is none. */
int bits_next(const struct bits *b, unsigned n);

/* Reads "0-3,16-19", the len bytes at text; numbers up to BITS_MAX - 1. -EINVAL: that isn't such a
 * list, or an empty one. */
int bits_parse(const char *text, size_t len, struct arena *arena, struct bits *ret);

/* Several of them, "0-3,16-19:4-7": how many there are; -EINVAL: text isn't such lists. */
int bits_lists(const char *text);

/* The n-th of them, which are well-formed; of fewer the last one. */
struct bits bits_nth(const char *text, unsigned n, struct arena *arena);

/* Whether they have a number in common. */
bool bits_meet(const struct bits *a, const struct bits *b);

/* The lowest number of b that is not in `all`; -1: all are. */
int bits_outside(const struct bits *b, const struct bits *all);

/* Adds "0-3,16-19"; "" for an empty one. */
void bits_add_text(const struct bits *b, struct text *out);
const char *bits_text(const struct bits *b, struct arena *arena);

#endif
