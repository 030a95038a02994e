/* interfaces.c - see interfaces.h */
#include "daemon/facts/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"

int interfaces_read(struct arena *arena, struct interfaces *ret, struct failure *why)
{
	char text[ADDRESS_TEXT];
	struct ifaddrs *list;
	struct interface *all;
	size_t count = 0, most = 0;

	if (getifaddrs(&list) < 0)
		return failure_set(why, -EIO, "getifaddrs: %s", strerror(errno));
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		most++;
	all = arena_alloc(arena, (most + 1) * sizeof *all);
	for (const struct ifaddrs *i = list; all && i; i = i->ifa_next) {
		struct address a = i->ifa_addr ? address_of(i->ifa_addr) : (struct address){ 0 };

		if (address_size(&a) == 0)
			continue; /* none, or one of another kind (AF_PACKET) */
		address_host_text(&a, text);
		all[count++] = (struct interface){
			.name = arena_strdup(arena, i->ifa_name),
			.address = arena_strdup(arena, text),
			.up = (i->ifa_flags & IFF_UP) && (i->ifa_flags & IFF_RUNNING),
			.loopback = i->ifa_flags & IFF_LOOPBACK,
		};
	}
	freeifaddrs(list);
	if (arena_failed(arena))
		return failure_oom(why);
	ret->at = all;
	ret->count = count;
	return 0;
}
