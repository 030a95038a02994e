/* reachable.h - at which addresses of this node the others may reach it. Pure. */
#ifndef LAUNCHD_DAEMON_MEET_REACHABLE_H
#define LAUNCHD_DAEMON_MEET_REACHABLE_H

#include <stdbool.h>

#include "common/vec.h"

struct arena;
struct failure;
struct interfaces;

struct reachable_wish {
	const char *local_addr;    /* --local-addr; NULL or "": not given */
	const char *local_where;   /* the setting that names it, for the user */
	const char *local_unknown; /* why that name can't be resolved; NULL: it can */
	struct vec meant;          /* else: itself, or the addresses of that name */
	const char *interfaces;    /* --interface: names with commas; NULL or "": not given */
	const char *where;         /* the setting that names the interfaces, for the user */
	bool one_host; /* all nodes are on this host: loopback will do, if nothing else */
};

/* Finds them, best first; nothing is resolved or tried. The list is the arena's, the texts are
 * borrowed.
 *
 * --local-addr is the only one where it is given: what it means of this node. A name may mean
 * nothing but loopback on its own host; then it chooses nothing. Else --interface: what these
 * interfaces have, in the order of their names. Else every interface that is up: IPv4, then IPv6,
 * then those of bridges and tunnels for containers and virtual machines, which other hosts have
 * under the same address; loopback last. Link-local addresses are useless to others.
 *
 * -EINVAL: --local-addr is not of this node, or --interface names none that is up and has an
 * address. -EADDRNOTAVAIL: no address that others may reach. Each sentence lists this node's
 * addresses. */
int reachable_choose(const struct interfaces *all, const struct reachable_wish *wish,
	struct arena *arena, struct vec *ret, struct failure *why);

#endif
