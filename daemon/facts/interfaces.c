/* interfaces.c - see interfaces.h */
#include "daemon/facts/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"

/* The address as text; NULL for one of another kind (AF_PACKET), or none. */
static const char *address_of(const struct ifaddrs *i, char *ret, socklen_t room)
{
	const void *at = NULL;

	if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
		at = &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
	else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6)
		at = &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
	return at ? inet_ntop(i->ifa_addr->sa_family, at, ret, room) : NULL;
}

int interfaces_read(struct arena *arena, struct interfaces *ret, struct failure *why)
{
	char text[INET6_ADDRSTRLEN];
	struct ifaddrs *list;
	struct interface *all;
	size_t count = 0, most = 0;

	if (getifaddrs(&list) < 0)
		return failure_set(why, -EIO, "getifaddrs: %s", strerror(errno));
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		most++;
	all = arena_alloc(arena, (most + 1) * sizeof *all);
	for (const struct ifaddrs *i = list; all && i; i = i->ifa_next)
		if (address_of(i, text, sizeof text))
			all[count++] = (struct interface){
				.name = arena_strdup(arena, i->ifa_name),
				.address = arena_strdup(arena, text),
				.up = (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING),
				.loopback = i->ifa_flags & IFF_LOOPBACK,
			};
	freeifaddrs(list);
	if (arena_failed(arena))
		return failure_oom(why);
	ret->at = all;
	ret->count = count;
	return 0;
}
