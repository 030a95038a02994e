/* answer.h - what the store does for a request, and how it replies. Pure.
 *
 * Each query means what it means to torch's own server, except where no client can rely on that:
 *   - a client that sends another request while it waits has given up waiting (torch before 2.1
 *     cannot say so): no late reply is sent that it would take for the answer to that request;
 *   - a client that waits for a queue and for another key needs no second push when that key comes;
 *   - COMPARE_SET wakes those who wait only if it stores something. */
#ifndef LAUNCHD_DAEMON_STORE_ANSWER_H
#define LAUNCHD_DAEMON_STORE_ANSWER_H

#include "daemon/store/keys.h"
#include "daemon/store/request.h"

struct failure;

/* The keys of one attempt, and how to send to its clients. */
struct space {
	struct keys keys;
	struct budget *budget;
	uint64_t changes;  /* of keys' values and queues; one that is set to what it was has none */
	struct bytes push; /* what those who watch a key are told of its change */
	/* Sends bytes to a guest other than the one being answered. It must change neither keys
	 * nor guests: a guest that can't be reached leaves later. */
	void (*tell)(struct guest *to, const void *bytes, size_t len);
	/* Sends a large value to the guest being answered, after the reply so far, which it
	 * empties: the guest holds what its socket does not accept at once, and nothing is copied.
	 * It must change neither keys nor guests. NULL: large values become part of the reply. */
	void (*tell_large)(struct guest *to, struct bytes *reply, struct blob *value);
};

/* Does what a request asks for and appends the answer, if it has one, to reply. On failure the
 * caller closes the client: -ENOMEM, or -EPROTO where it can't be done (GET of a missing key by a
 * client older than torch 2.2, ADD to a value that is not a number). Nothing is changed then,
 * except by MULTI_SET, which may have set some of its keys. */
int answer(struct space *s, struct guest *who, const struct request *r, struct bytes *reply,
	struct failure *why);

/* Frees all keys; every guest must have left. */
void space_clear(struct space *s);

#endif
