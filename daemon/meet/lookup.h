/* lookup.h - a question to the resolver, in a thread of its own: one that hangs in it for half a
 * minute is left behind, and delays neither the loop nor the process's end (libuv's own threads
 * delay both). glibc reads resolv.conf and hosts again where they have changed. */
#ifndef LAUNCHD_DAEMON_MEET_LOOKUP_H
#define LAUNCHD_DAEMON_MEET_LOOKUP_H

#include <netdb.h>
#include <uv.h>

struct lookup;

/* Asks for the addresses of a name, for TCP. on_answer comes once, from the loop: `why` is NULL, or
 * says in words that there are none; the list is borrowed. 0 or negative errno, and then nothing
 * was begun. */
int lookup_start(uv_loop_t *loop, const char *name, const char *port,
	void (*on_answer)(void *owner, const struct addrinfo *list, const char *why), void *owner,
	struct lookup **ret);

/* Before the answer: on_answer does not come any more. Nothing is to be waited for, but the loop
 * has to run once more. */
void lookup_abandon(struct lookup *l);

#endif
