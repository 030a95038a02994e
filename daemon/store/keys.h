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

struct guest;
struct key;

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

/* One client waits for one key. */
struct wait {
	struct guest *guest;
	struct key *key;            /* NULL: it has come */
	struct wait *before, *next; /* of the key */
};

/* One client watches one key: it is told of every change. */
struct watch {
	struct guest *guest;
	struct key *key;
	struct watch *before, *next; /* of the key */
	struct watch *of_guest;      /* the next one of the client */
};

/* A client as the keys see it; { 0 } neither waits nor watches. */
struct guest {
	struct wait one,
		*waits;      /* waits: `one`, where it is for one key only; NULL: it doesn't wait */
	size_t room, filled; /* of waits */
	size_t awaited;      /* those of them whose keys have not come */
	struct watch *watches;
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

/* Takes its value away, if it has one. To be settled. */
void key_unset(struct keys *k, struct key *key);

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

/* Begins to wait, for `room` keys at most, each named by wait_for(). -ENOMEM: it does not wait. A
 * guest that waits must not begin again. */
int wait_begin(struct keys *k, struct guest *g, size_t room);
void wait_for(struct guest *g, struct key *key);

/* It waits no more; nothing where it does not. Keys that nobody needs are taken away. */
void wait_end(struct keys *k, struct guest *g);

/* A key has come: takes its waits away, the oldest first, and calls ready() for each guest whose
 * last key it was, which waits no more; with `one` only as far as the first of these. The key must
 * be settled; ready() changes neither keys nor waits. */
void wait_wake(struct keys *k, struct key *key, bool one, void (*ready)(struct guest *g, void *to),
	void *to);

/* Begins to watch; -ENOMEM. */
int watch_add(struct keys *k, struct guest *g, struct key *key);

/* It has gone: it waits for nothing and watches nothing. */
void guest_leave(struct keys *k, struct guest *g);

#endif
