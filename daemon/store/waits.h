/* waits.h - who waits for keys, and who watches them. Pure.
 *
 * A client asks, and reads the answer before it asks again; so it waits at most once, for any
 * number of keys. Every wait is a link of its key's list and of its client's array: whoever goes is
 * taken out at once, however many others there are. */
#ifndef LAUNCHD_DAEMON_STORE_WAITS_H
#define LAUNCHD_DAEMON_STORE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key;
struct keys;
struct guest;

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
