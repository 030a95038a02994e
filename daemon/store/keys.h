/* keys.h - the keys of one attempt with their values and queues, and who waits for them or watches
 * them. Pure; all memory is of one budget.
 *
 * A key may be there without a value: it is only waited for, watched, or has a queue. Torch counts
 * and lists keys with a value only. */
#ifndef LAUNCHD_DAEMON_STORE_KEYS_H
#define LAUNCHD_DAEMON_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/siphash.h"
#include "daemon/store/budget.h"
#include "daemon/store/request.h"

struct wait;
struct watch;

struct blob {
	struct blob *next; /* in a queue */
	size_t len, room;
	uint8_t at[];
};

struct key {
	struct key *next;   /* in its bucket */
	struct blob *value; /* NULL: none */
	struct blob *queue_first, *queue_last;
	uint64_t queued;
	struct wait *wait_first, *wait_last; /* the oldest first */
	struct watch *watches;
	uint64_t hash;
	size_t len;
	uint8_t name[];
};

struct keys {
	struct budget *budget;
	uint8_t secret[SIPHASH_KEY_SIZE]; /* else somebody could make all keys fall into one bucket
					   */
	struct key **buckets;             /* NULL: none yet */
	size_t bucket_count, count;       /* count: of all keys */
	uint64_t with_value;
};

void keys_init(struct keys *k, struct budget *budget, const uint8_t secret[SIPHASH_KEY_SIZE]);

/* NULL: there is none. */
struct key *keys_find(const struct keys *k, struct span name);

/* Finds or makes it. NULL: out of memory. One that is left without anything must be settled. */
struct key *keys_need(struct keys *k, struct span name);

/* Takes a key away that has nothing: no value, no queue, nobody who waits or watches. */
void keys_settle(struct keys *k, struct key *key);

/* Takes all of them away; nobody may wait or watch any more. */
void keys_clear(struct keys *k);

/* Sets its value. -ENOMEM: it is as it was. */
int key_set(struct keys *k, struct key *key, struct span value);

/* Adds to the end of its value. -ENOMEM: it is as it was. */
int key_append(struct keys *k, struct key *key, struct span more);

/* Takes its value away; false: it had none. To be settled. */
bool key_unset(struct keys *k, struct key *key);

/* Its value; none is empty. Valid until the key is changed. */
struct span key_value(const struct key *key);

/* Adds to the end of its queue; -ENOMEM. Takes the first of it away, if there is one; to be
 * settled. */
int key_push(struct keys *k, struct key *key, struct span value);
void key_pop(struct keys *k, struct key *key);

/* What waits for it has it: a value, or something in its queue. */
bool key_is_there(const struct key *key);

/* Calls see() for each key with a value, in no order, until it returns an error, which is returned.
 */
int keys_each(const struct keys *k, int (*see)(const struct key *key, void *to), void *to);

#endif
