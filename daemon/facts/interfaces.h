/* interfaces.h - this host's network interfaces and their addresses, as the kernel lists them. */
#ifndef LAUNCHD_DAEMON_FACTS_INTERFACES_H
#define LAUNCHD_DAEMON_FACTS_INTERFACES_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct failure;

/* One address; an interface with several is there several times, one without any is not. */
struct interface {
	const char *name;
	const char *address; /* IPv4 or IPv6, as text, without a scope */
	bool up;             /* and running: it has a carrier */
	bool loopback;
};

struct interfaces {
	const struct interface *at;
	size_t count;
};

/* Asks the kernel; the result is the arena's. -EIO: it does not answer. */
int interfaces_read(struct arena *arena, struct interfaces *ret, struct failure *why);

#endif
