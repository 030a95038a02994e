/* address.c - see address.h */
#include "common/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* An address in memory of its own type. IPv4 in IPv6 becomes IPv4. */
union any {
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage storage;
};

static union any plain(const struct sockaddr *a)
{
	union any u = { 0 };

	memcpy(&u, a, address_size(a));
	if (u.storage.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&u.v6.sin6_addr)) {
		struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = u.v6.sin6_port };

		memcpy(&v4.sin_addr, u.v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
		u.v4 = v4;
	}
	return u;
}

void address_text(const struct sockaddr *a, char ret[ADDRESS_TEXT])
{
	union any u = plain(a);
	char host[INET6_ADDRSTRLEN] = "", scope[16] = "";

	(void)snprintf(ret, ADDRESS_TEXT, "an unknown address");
	if (u.storage.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &u.v4.sin_addr, host, sizeof host);
		(void)snprintf(ret, ADDRESS_TEXT, "%.15s:%u", host, ntohs(u.v4.sin_port));
	} else if (u.storage.ss_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &u.v6.sin6_addr, host, sizeof host);
		if (u.v6.sin6_scope_id != 0)
			(void)snprintf(scope, sizeof scope, "%%%u", u.v6.sin6_scope_id);
		(void)snprintf(
			ret, ADDRESS_TEXT, "[%s%.11s]:%u", host, scope, ntohs(u.v6.sin6_port));
	}
}

bool address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	union any x = plain(a), y = plain(b);

	if (x.storage.ss_family != y.storage.ss_family)
		return false;
	if (x.storage.ss_family == AF_INET)
		return x.v4.sin_addr.s_addr == y.v4.sin_addr.s_addr;
	return x.storage.ss_family == AF_INET6 && x.v6.sin6_scope_id == y.v6.sin6_scope_id &&
		IN6_ARE_ADDR_EQUAL(&x.v6.sin6_addr, &y.v6.sin6_addr);
}

int address_parse(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	union any u = { 0 };

	if (inet_pton(AF_INET, text, &u.v4.sin_addr) == 1)
		u.v4.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &u.v6.sin6_addr) == 1)
		u.v6.sin6_family = AF_INET6;
	else
		return -EINVAL;
	address_set_port((struct sockaddr *)&u.storage, port);
	*ret = u.storage;
	return 0;
}

void address_host_text(const struct sockaddr *a, char ret[ADDRESS_TEXT])
{
	union any u = plain(a);

	*ret = '\0';
	if (u.storage.ss_family == AF_INET)
		(void)inet_ntop(AF_INET, &u.v4.sin_addr, ret, ADDRESS_TEXT);
	else if (u.storage.ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &u.v6.sin6_addr, ret, ADDRESS_TEXT);
}

bool address_is_loopback(const struct sockaddr *a)
{
	union any u = plain(a);

	if (u.storage.ss_family == AF_INET)
		return ntohl(u.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return u.storage.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&u.v6.sin6_addr);
}

socklen_t address_size(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

uint16_t address_port(const struct sockaddr *a)
{
	union any u = plain(a);

	return ntohs(u.storage.ss_family == AF_INET6 ? u.v6.sin6_port : u.v4.sin_port);
}

void address_set_port(struct sockaddr *a, uint16_t port)
{
	in_port_t p = htons(port); /* by bytes: a may point to memory of any type of address */

	if (a->sa_family == AF_INET)
		memcpy((char *)a + offsetof(struct sockaddr_in, sin_port), &p, sizeof p);
	else if (a->sa_family == AF_INET6)
		memcpy((char *)a + offsetof(struct sockaddr_in6, sin6_port), &p, sizeof p);
}
