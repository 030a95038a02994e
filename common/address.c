/* address.c - see address.h */
#include "common/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/vec.h"

enum { V4_BYTES = 4, V6_BYTES = 16 };

struct address address_of(const struct sockaddr *a)
{
	struct address ret = { .v6.sin6_family = a->sa_family };

	memcpy(&ret, a, address_size(&ret));
	return address_size(&ret) > 0 ? ret : (struct address){ 0 };
}

int address_parse(const char *text, uint16_t port, struct address *ret)
{
	struct address a = { 0 };

	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
		a.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1)
		a.any.sa_family = AF_INET6;
	else
		return -EINVAL;
	address_set_port(&a, port);
	*ret = a;
	return 0;
}

/* The host's bytes; of IPv4 in IPv6 those of IPv4. Returns how many; 0: there is no address. */
static size_t host_of(const struct address *a, const unsigned char **ret)
{
	const struct in6_addr *v6 = &a->v6.sin6_addr;

	*ret = NULL;
	if (a->any.sa_family == AF_INET) {
		*ret = (const unsigned char *)&a->v4.sin_addr;
		return V4_BYTES;
	}
	if (a->any.sa_family != AF_INET6)
		return 0;
	*ret = v6->s6_addr + (IN6_IS_ADDR_V4MAPPED(v6) ? V6_BYTES - V4_BYTES : 0);
	return IN6_IS_ADDR_V4MAPPED(v6) ? V4_BYTES : V6_BYTES;
}

struct address address_unmapped(const struct address *a)
{
	struct address ret = { .v4 = { .sin_family = AF_INET } };
	const unsigned char *host;

	if (host_of(a, &host) != V4_BYTES)
		return *a;
	memcpy(&ret.v4.sin_addr, host, V4_BYTES);
	address_set_port(&ret, address_port(a));
	return ret;
}

void address_host_text(const struct address *a, char ret[ADDRESS_TEXT])
{
	const unsigned char *host;
	size_t len = host_of(a, &host);

	*ret = '\0';
	if (len > 0)
		(void)inet_ntop(len == V4_BYTES ? AF_INET : AF_INET6, host, ret, ADDRESS_TEXT);
}

void address_text(const struct address *a, char ret[ADDRESS_TEXT])
{
	char host[ADDRESS_TEXT], scope[16] = "";
	const unsigned char *bytes;
	size_t len = host_of(a, &bytes);

	address_host_text(a, host);
	if (len == V6_BYTES && a->v6.sin6_scope_id != 0)
		(void)snprintf(scope, sizeof scope, "%%%u", a->v6.sin6_scope_id);
	if (len == V6_BYTES)
		(void)snprintf(ret, ADDRESS_TEXT, "[%.39s%.11s]:%u", host, scope, address_port(a));
	else if (len == V4_BYTES)
		(void)snprintf(ret, ADDRESS_TEXT, "%.15s:%u", host, address_port(a));
	else
		(void)snprintf(ret, ADDRESS_TEXT, "an unknown address");
}

bool address_same_host(const struct address *a, const struct address *b)
{
	const unsigned char *x, *y;
	size_t len = host_of(a, &x);

	if (len == 0 || host_of(b, &y) != len || memcmp(x, y, len) != 0)
		return false;
	return len == V4_BYTES || a->v6.sin6_scope_id == 0 || b->v6.sin6_scope_id == 0 ||
		a->v6.sin6_scope_id == b->v6.sin6_scope_id;
}

bool address_same(const struct address *a, const struct address *b)
{
	return address_same_host(a, b) && address_port(a) == address_port(b);
}

const char *address_find_host(const struct vec *texts, const struct address *a)
{
	struct address one;

	for (size_t i = 0; i < texts->count; i++)
		if (address_parse(texts->at[i], 0, &one) == 0 && address_same_host(a, &one))
			return texts->at[i];
	return NULL;
}

bool address_is_loopback(const struct address *a)
{
	const unsigned char *host;
	size_t len = host_of(a, &host);

	return len == V4_BYTES ? *host == IN_LOOPBACKNET :
				 len == V6_BYTES && IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

bool address_is_link_local(const struct address *a)
{
	const unsigned char *host;
	size_t len = host_of(a, &host);

	return len == V4_BYTES ? host[0] == 169 && host[1] == 254 :
				 len == V6_BYTES && IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr);
}

bool address_is_any(const struct address *a)
{
	static const unsigned char zeros[V6_BYTES];
	const unsigned char *host;
	size_t len = host_of(a, &host);

	return len == 0 || memcmp(host, zeros, len) == 0;
}

socklen_t address_size(const struct address *a)
{
	if (a->any.sa_family == AF_INET)
		return sizeof a->v4;
	return a->any.sa_family == AF_INET6 ? sizeof a->v6 : 0;
}

uint16_t address_port(const struct address *a)
{
	return ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void address_set_port(struct address *a, uint16_t port)
{
	if (a->any.sa_family == AF_INET)
		a->v4.sin_port = htons(port);
	else if (a->any.sa_family == AF_INET6)
		a->v6.sin6_port = htons(port);
}

bool addresses_have(const struct addresses *list, const struct address *a)
{
	for (unsigned i = 0; i < list->count; i++)
		if (address_same(&list->at[i], a))
			return true;
	return false;
}

void addresses_add(struct addresses *list, const struct address *a)
{
	if (address_size(a) > 0 && list->count < ADDRESSES_MAX && !addresses_have(list, a))
		list->at[list->count++] = *a;
}
