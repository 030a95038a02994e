/* endpoint.c - torchrun's HOST:PORT; see topology.h */
#include "daemon/plan/topology.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/arena.h"

static bool is_ipv6(const char *text)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET6, text, bytes) == 1;
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
