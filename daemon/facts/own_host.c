/* own_host.c - see own_host.h */
#include "daemon/facts/own_host.h"

#include <string.h>
#include <strings.h>

#include "common/address.h"
#include "common/vec.h"
#include "config/hosts.h"

void own_host_add(struct own_hosts *o, size_t index)
{
	if (o->count < OWN_HOST_SHOWN)
		o->at[o->count] = index;
	o->count++;
}

bool own_host_has(const struct vec *addresses, const struct address *a)
{
	return address_is_loopback(a) || address_find_host(addresses, a);
}

enum own_name own_host_is(const char *listed, const char *hostname)
{
	size_t label = strcspn(hostname, ".");

	if (strcasecmp(listed, hostname) == 0 || strcasecmp(listed, "localhost") == 0)
		return OWN_NAME_WHOLE;
	if (label == 0 || strncasecmp(listed, hostname, label) != 0)
		return OWN_NAME_NOT;
	return (listed[label] == '.' && !hostname[label]) || !listed[label] ? OWN_NAME_LABEL :
									      OWN_NAME_NOT;
}

void own_host_find(const struct hosts *hosts, const char *hostname, const struct vec *addresses,
	struct own_hosts *ret)
{
	struct own_hosts found = { 0 };

	for (size_t i = 0; i < hosts->count; i++) {
		const struct host *h = &hosts->at[i];
		struct address a;
		bool own_address = h->is_address && address_parse(h->name, 0, &a) == 0 &&
			own_host_has(addresses, &a);
		enum own_name name = h->is_address ? OWN_NAME_NOT : own_host_is(h->name, hostname);

		if (own_address || name != OWN_NAME_NOT)
			own_host_add(&found, i);
		found.certain = found.certain || own_address || name == OWN_NAME_WHOLE;
	}
	*ret = found;
}
