/* address.h - at which addresses of this node the others may reach it. Pure. */
#ifndef LAUNCHD_DAEMON_CLUSTER_ADDRESS_H
#define LAUNCHD_DAEMON_CLUSTER_ADDRESS_H

#include <stdbool.h>

struct arena;
struct failure;
struct interfaces;
struct vec;

struct address_wish {
	const char *local_addr; /* --local-addr; NULL or "": not given */
	const char *interfaces; /* --interface: names with commas; NULL or "": not given */
	const char *where;      /* the setting that names the interfaces, for the user */
	bool one_host;          /* all nodes are on this host: loopback will do, if nothing else */
};

/* Finds them, best first; nothing is resolved or tried. The list is the arena's, the texts are
 * borrowed.
 *
 * --local-addr is the only one where it is given, as it stands: a name is for the caller to
 * resolve, and an address need not be this host's (a service's, a NAT's). Else --interface: what
 * these interfaces have, in the order of their names. Else every interface that is up: IPv4, then
 * IPv6, then those of bridges and tunnels for containers and virtual machines, which other hosts
 * have under the same address; loopback last. Link-local addresses are of no use to others.
 *
 * -EINVAL: --interface names none that is up and has an address. -EADDRNOTAVAIL: there is no
 * address that others may reach. Both sentences list what there is. */
int address_choose(const struct interfaces *all, const struct address_wish *wish,
	struct arena *arena, struct vec *ret, struct failure *why);

#endif
