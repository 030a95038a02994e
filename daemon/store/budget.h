/* budget.h - memory that has a limit in total, and bytes that grow within it. Pure. */
#ifndef LAUNCHD_DAEMON_STORE_BUDGET_H
#define LAUNCHD_DAEMON_STORE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was allocated, with the allocator's own overhead. */
struct budget {
	uint64_t max, used;
};

/* As realloc(3), within the budget; `was` is the size it has (at NULL: 0). NULL: out of memory or
 * over the limit, and nothing is changed. Sizes are never 0. */
void *budget_resize(struct budget *b, void *at, size_t was, size_t size);

void *budget_alloc(struct budget *b, size_t size);

/* at may be NULL. */
void budget_free(struct budget *b, void *at, size_t size);

/* Bytes that grow; { 0 } has none. All of their room counts in the budget. */
struct bytes {
	uint8_t *at;
	size_t len, room;
};

/* Makes room to append `more` bytes. -ENOMEM. */
int bytes_reserve(struct bytes *to, struct budget *b, size_t more);

/* Appends. -ENOMEM: nothing is changed. */
int bytes_add(struct bytes *to, struct budget *b, const void *more, size_t len);

/* Removes `len` bytes from the front. */
void bytes_drop(struct bytes *from, size_t len);

/* Frees the memory; it has no bytes afterwards. */
void bytes_done(struct bytes *of, struct budget *b);

/* The same if it has more room than `keep`; else it only becomes empty. */
void bytes_trim(struct bytes *of, struct budget *b, size_t keep);

#endif
