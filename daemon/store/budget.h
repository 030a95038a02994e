/* budget.h - memory that has a limit in total, and within it bytes that grow, and bytes that
 * several hold. Pure. */
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

/* A value. The key that has it holds it, and so does each client that it is still being sent to:
 * 300 readers cost no more than one. Its bytes change only while it has one holder. */
struct blob {
	struct blob *next; /* in a queue */
	size_t len, room;
	unsigned holders;
	uint8_t at[];
};

/* Makes these bytes the value of *at, whose holder the caller is; NULL: it has none yet. -ENOMEM:
 * nothing is changed. */
int blob_set(struct blob **at, struct budget *b, const void *bytes, size_t len);

/* Appends to it in the same way. */
int blob_add(struct blob **at, struct budget *b, const void *bytes, size_t len);

/* Adds a holder, and returns the blob. */
struct blob *blob_hold(struct blob *of);

/* Removes a holder; the last one frees it. NULL: nothing happens. */
void blob_drop(struct blob *of, struct budget *b);

#endif
