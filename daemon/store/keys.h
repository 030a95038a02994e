/* keys.h - the keys of one attempt with their values and queues, and who waits for them or watches
 * them. Pure; all memory is of one budget.
 *
 * A key may exist without a value, because somebody waits for it or watches it, or it has a queue.
 * Torch counts and lists only keys with a value.
 *
 * A client sends no request before it has read the answer to the last one, so it waits at most
 * once, for any number of keys. Each wait is linked into its key's list and into its client's
 * array, so that whoever leaves is unlinked at once, however many others wait. */
#ifndef LAUNCHD_DAEMON_STORE_KEYS_H
#define LAUNCHD_DAEMON_STORE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/siphash.h"
#include "daemon/store/budget.h"
#include "daemon/store/request.h"

struct guest;
struct key;

struct key {
	struct key *next;   /* in its bucket */
	struct blob *value; /* NULL: none */
	struct blob *queue_first, *queue_last;
	uint64_t queued;
	TAILQ_HEAD(, wait) waits; /* the oldest first */
	LIST_HEAD(, watch) watches;
	uint64_t hash;
	size_t len;
	uint8_t name[];
};

/* One client waits for one key. */
struct wait {
	struct guest *guest;
	struct key *key; /* NULL: it has come */
	TAILQ_ENTRY(wait) of_key;
};

/* One client watches one key: it is told of every change. */
struct watch {
	struct guest *guest;
	struct key *key;
	LIST_ENTRY(watch) of_key;
	SLIST_ENTRY(watch) of_guest;
};

/* A client as the keys see it; { 0 } neither waits nor watches. */
struct guest {
	struct wait one,
		*waits;      /* waits: `one`, where it is for one key only; NULL: it doesn't wait */
	size_t room, filled; /* of waits */
	size_t awaited;      /* those of them whose keys have not come */
	unsigned polls;      /* of exception_dump, see store_polls() */
	SLIST_HEAD(, watch) watches;
};

struct keys {
	struct budget *budget;
	/* without it, a client could choose keys that all fall into one bucket */
	uint8_t secret[SIPHASH_KEY_SIZE];
	struct key **buckets;       /* NULL: none yet */
	size_t bucket_count, count; /* count: of all keys */
	uint64_t with_value;
};

void keys_init(struct keys *k, struct budget *budget, const uint8_t secret[SIPHASH_KEY_SIZE]);

/* NULL: there is none. */
struct key *keys_find(const struct keys *k, struct span name);

/* Finds or creates it; NULL: out of memory. The caller passes a key that stays empty to
 * keys_settle(). */
struct key *keys_need(struct keys *k, struct span name);

/* Removes a key if it is empty: no value, no queue, nobody who waits for it or watches it. */
void keys_settle(struct keys *k, struct key *key);

/* Removes all keys; nobody may wait or watch any more. */
void keys_clear(struct keys *k);

/* Sets its value. -ENOMEM: it is as it was. */
int key_set(struct keys *k, struct key *key, struct span value);

/* Appends to its value. -ENOMEM: it is as it was. */
int key_append(struct keys *k, struct key *key, struct span more);

/* Removes its value, if it has one; keys_settle() follows. */
void key_unset(struct keys *k, struct key *key);

/* Its value; that of none, or of NULL, is empty. Valid until the key is changed. */
struct span key_value(const struct key *key);

/* Appends to its queue; -ENOMEM. Removes the first of the queue, if there is one; keys_settle()
 * follows. */
int key_push(struct keys *k, struct key *key, struct span value);
void key_pop(struct keys *k, struct key *key);

/* Whether those who wait for it may go on: it has a value, or something in its queue. */
bool key_is_there(const struct key *key);

/* Calls see() for each key with a value, in no order, until it returns an error, which is returned.
 */
int keys_each(const struct keys *k, int (*see)(const struct key *key, void *to), void *to);

/* Starts to wait for up to `room` keys, each added by wait_for(). -ENOMEM: it does not wait. A
 * guest waits only once at a time. */
int wait_begin(struct keys *k, struct guest *g, size_t room);
void wait_for(struct guest *g, struct key *key);

/* Stops waiting, if it waits. Keys that nobody needs any more are removed. */
void wait_end(struct keys *k, struct guest *g);

/* A key has come: ends the waits for it, the oldest first, and calls ready() for each guest that
 * waits for nothing else; with `one`, stops at the first such guest. The caller settles the key;
 * ready() changes neither keys nor waits. */
void wait_wake(struct keys *k, struct key *key, bool one, void (*ready)(struct guest *g, void *to),
	void *to);

/* Starts to watch; -ENOMEM. */
int watch_add(struct keys *k, struct guest *g, struct key *key);

/* It has gone: ends what it waits for and watches. */
void guest_leave(struct keys *k, struct guest *g);

#endif
