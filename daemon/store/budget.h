/* budget.h - memory that has a limit in total, and bytes that grow within it. Pure. */
#ifndef LAUNCHD_DAEMON_STORE_BUDGET_H
#define LAUNCHD_DAEMON_STORE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was taken, with what the allocator needs beside it. */
struct budget {
	uint64_t max, used;
};

/* As realloc(3), within the budget; `was` is the size it has (at NULL: 0). NULL: out of memory or
 * over the limit, and nothing is changed. Sizes are never 0. */
void *budget_resize(struct budget *b, void *at, size_t was, size_t size);

void *budget_alloc(struct budget *b, size_t size);

/* at may be NULL. */
void budget_free(struct budget *b, void *at, size_t size);

/* Bytes that grow; { 0 } has none. What they have room for is part of the budget. */
struct bytes {
	uint8_t *at;
	size_t len, room;
};

/* Makes room for `more` bytes behind those there are. -ENOMEM: there is none. */
int bytes_reserve(struct bytes *to, struct budget *b, size_t more);

/* Adds them. -ENOMEM: nothing is changed. */
int bytes_add(struct bytes *to, struct budget *b, const void *more, size_t len);

/* Takes `len` bytes away from the front. */
void bytes_drop(struct bytes *from, size_t len);

/* Gives the memory back; it has no bytes afterwards. */
void bytes_done(struct bytes *of, struct budget *b);

/* The same where it is more than `keep`; else it only becomes empty. */
void bytes_trim(struct bytes *of, struct budget *b, size_t keep);

#endif
