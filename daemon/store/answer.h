/* answer.h - what the store does for a request, and what it says to it. Pure.
 *
 * The meaning of each query is that of torch's own server, but for what its clients can't want:
 *   - a client that asks anew while it waits has given up waiting (torch before 2.1 cannot say so):
 *     no late word comes to be taken for the answer to something else;
 *   - who waits for a queue and another key needs no further push when the queue has something;
 *   - COMPARE_SET wakes whoever waits only where it stores something. */
#ifndef LAUNCHD_DAEMON_STORE_ANSWER_H
#define LAUNCHD_DAEMON_STORE_ANSWER_H

#include "daemon/store/keys.h"
#include "daemon/store/request.h"

struct failure;

/* The keys of an attempt, and how its clients are spoken to. */
struct space {
	struct keys keys;
	struct budget *budget;
	struct bytes push; /* what those who watch a key are told of its change */
	/* Sends bytes to a guest that is not the one being answered. It must change neither keys
	 * nor guests: who can't be sent to leaves later. */
	void (*tell)(struct guest *to, const void *bytes, size_t len);
	/* Sends a large value to the guest being answered, behind the reply so far, which it
	 * empties: what the socket takes at once is copied by the kernel alone. It must change
	 * neither keys nor guests. NULL: large values become part of the reply. */
	void (*tell_large)(struct guest *to, struct bytes *reply, const void *bytes, size_t len);
};

/* Does what a request asks for and adds the answer, if it has one, to reply. -ENOMEM: the memory is
 * not there, -EPROTO: it can't be done (GET of a key that is not there, by a client older than 2.2;
 * ADD to what is no number), with a sentence; the client then has nothing to hope for and is to be
 * closed. Except for MULTI_SET, which may have come half way, nothing is changed on failure. */
int answer(struct space *s, struct guest *who, const struct request *r, struct bytes *reply,
	struct failure *why);

/* Frees all keys; every guest must have left. */
void space_clear(struct space *s);

#endif
