/* endpoint.c - torchrun's HOST:PORT; see topology.h */
#include "daemon/plan/topology.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"

static bool is_ipv6(const char *text)
{
	struct address a;

	return address_parse(text, 0, &a) == 0 && a.any.sa_family == AF_INET6;
}

/* fe80::1%eth0: address_parse() knows no zones. */
static bool is_ipv6_of_a_zone(struct arena *arena, const char *text)
{
	size_t len = strcspn(text, "%");

	return text[len] && is_ipv6(arena_strndup(arena, text, len));
}

int endpoint_split(
	struct arena *arena, const char *text, const char **ret_host, const char **ret_port)
{
	const char *colon = strrchr(text, ':');
	const char *close = strchr(text, ']');

	*ret_port = NULL;
	if (*text == '[') {
		if (!close || close == text + 1 || (close[1] && close[1] != ':'))
			return -EINVAL;
		*ret_host = arena_strndup(arena, text + 1, (size_t)(close - text - 1));
		*ret_port = close[1] ? close + 2 : NULL;
		return 0;
	}
	if (!colon || is_ipv6(text)) {
		*ret_host = text;
		return *text ? 0 : -EINVAL;
	}
	*ret_host = arena_strndup(arena, text, (size_t)(colon - text));
	*ret_port = colon + 1;
	return colon == text || (strchr(*ret_host, ':') && !is_ipv6(*ret_host)) ? -EINVAL : 0;
}

int endpoint_check(const char *where, const char *text, struct failure *why)
{
	const char *host = strstr(text, "://");

	return host ? failure_usage(why, "%s: \"%s\" is a URL; leave out %.*s", where, text,
			      (int)(host + 3 - text), text) :
		      0;
}

int address_check(const char *where, const char *text, struct arena *arena, const char **ret,
	struct failure *why)
{
	size_t len = strlen(text);
	const char *host, *port;

	if (text[strcspn(text, " \t\n,")])
		return failure_usage(why,
			"%s: \"%s\" is not one address (the output of hostname -I has several)",
			where, text);
	if (endpoint_check(where, text, why) < 0)
		return why->code;
	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		*ret = arena_strndup(arena, text + 1, len - 2);
		return 0;
	}
	if (!strchr(text, ':') || is_ipv6(text) || is_ipv6_of_a_zone(arena, text)) {
		*ret = text;
		return 0;
	}
	if (endpoint_split(arena, text, &host, &port) < 0 || !port || !*port)
		return failure_usage(
			why, "%s: \"%s\" is not an address or the name of a host", where, text);
	return failure_usage(why,
		"%s: \"%s\" has a port; use --master_port %s, and give the host alone here: %s",
		where, text, port, host);
}
