/* finder.h - the hub's address as the settings have it, looked up without waiting: names of nodes
 * that boot later come to be known later. */
#ifndef LAUNCHD_DAEMON_CLUSTER_FINDER_H
#define LAUNCHD_DAEMON_CLUSTER_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

enum { FINDER_ADDRESSES = 16 };

struct finder {
	/* the owner's, before finder_start(); the rest is { 0 } */
	void (*on_found)(struct finder *f);                      /* once: addresses are there */
	void (*on_searching)(struct finder *f, const char *why); /* after 10 s, then each minute */
	void (*on_failed)(struct finder *f, const char *why);    /* once: the time is over */
	void (*on_closed)(struct finder *f); /* the memory is the owner's again */
	void *owner;

	/* to be read */
	struct sockaddr_storage addresses[FINDER_ADDRESSES];
	unsigned count;
	bool numeric; /* the name is an address */

	/* private */
	const char *name;
	char port[8];
	uv_loop_t *loop;
	uv_getaddrinfo_t request;
	uv_timer_t retry;
	uint64_t deadline_ms, note_ms;
	char why[256]; /* the last failure */
	bool asking, over, closing;
};

/* Looks the name up, again and again until within_ms have passed. An address is found at once, that
 * is in the next turn of the loop. The name is borrowed. */
void finder_start(
	struct finder *f, uv_loop_t *loop, const char *name, unsigned port, uint64_t within_ms);

/* Ends it; on_closed follows when the resolver has answered, which can take its own time-out. */
void finder_close(struct finder *f);

#endif
