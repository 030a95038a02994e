/* own_host.h - which of the listed hosts this machine is, as far as its own name and addresses
 * tell. Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_OWN_HOST_H
#define LAUNCHD_DAEMON_FACTS_OWN_HOST_H

#include <stdbool.h>
#include <stddef.h>

struct address;
struct hosts;
struct vec;

enum { OWN_HOST_SHOWN = 2 };

/* Hosts of a list that are this machine. */
struct own_hosts {
	size_t at[OWN_HOST_SHOWN]; /* the first of them */
	size_t count;              /* of all */
	bool certain; /* at least one by its whole name or an address: not just by what stands
		       * before the first dot */
};

/* One more. */
void own_host_add(struct own_hosts *o, size_t index);

/* Whether an address is one of this machine's, which are texts; loopback is everyone's. */
bool own_host_has(const struct vec *addresses, const struct address *a);

/* How a listed name is this machine's: its whole host name, whatever the case; or the same up to
 * the first dot, where one of the two has no domain ("n0" and "n0.cluster"). */
enum own_name { OWN_NAME_NOT, OWN_NAME_LABEL, OWN_NAME_WHOLE };
enum own_name own_host_is(const char *listed, const char *hostname);

/* Looks through the list; nothing is resolved. */
void own_host_find(const struct hosts *hosts, const char *hostname, const struct vec *addresses,
	struct own_hosts *ret);

#endif
