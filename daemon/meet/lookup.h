/* lookup.h - getaddrinfo(3) in a thread of its own: one that hangs for half a minute is left behind
 * and delays neither the loop nor the process's end (libuv's own threads delay both). glibc reads
 * resolv.conf and hosts again when they have changed. */
#ifndef LAUNCHD_DAEMON_MEET_LOOKUP_H
#define LAUNCHD_DAEMON_MEET_LOOKUP_H

#include <netdb.h>
#include <uv.h>

struct lookup;

/* Looks up the addresses of a name, for TCP. on_answer is called once, from the loop: `why` is
 * NULL, or the resolver's error; the list is borrowed. On failure (negative errno) nothing was
 * started. */
int lookup_start(uv_loop_t *loop, const char *name, const char *port,
	void (*on_answer)(void *owner, const struct addrinfo *list, const char *why), void *owner,
	struct lookup **ret);

/* Before the answer: on_answer will not be called. Nothing needs to be waited for, but the loop
 * must run once more. */
void lookup_abandon(struct lookup *l);

#endif
