/* peers.c - see peers.h */
#include "daemon/os/peers.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

int peer_make(const struct sockaddr *addr, struct peer *ret)
{
	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;

		memcpy(ret->at, mapped, sizeof mapped);
		memcpy(ret->at + sizeof mapped, &in->sin_addr, 4);
		return 0;
	}
	if (addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)addr;

		memcpy(ret->at, &in->sin6_addr, sizeof ret->at);
		return 0;
	}
	return -EAFNOSUPPORT;
}

bool peer_is_loopback(const struct peer *p)
{
	static const struct peer six = { { [15] = 1 } };

	if (memcmp(p->at, mapped, sizeof mapped) == 0)
		return p->at[12] == 127;
	return memcmp(p->at, six.at, sizeof six.at) == 0;
}

static bool holds(const struct peer *list, size_t count, const struct peer *one)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(list[i].at, one->at, sizeof one->at) == 0)
			return true;
	return false;
}

int peers_allow(struct peers *p, const struct sockaddr *addr)
{
	struct peer one;
	int rc = peer_make(addr, &one);

	if (rc < 0 || holds(p->allowed, p->count, &one))
		return rc;
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 16;
		struct peer *now = realloc(p->allowed, room * sizeof *now);

		if (!now)
			return -ENOMEM;
		p->allowed = now;
		p->room = room;
	}
	p->allowed[p->count++] = one;
	return 0;
}

bool peers_may(const struct peers *p, const struct sockaddr *from, const struct sockaddr *to)
{
	struct peer source, here;

	if (peer_make(from, &source) < 0 || peer_make(to, &here) < 0)
		return false;
	if (memcmp(source.at, here.at, sizeof here.at) == 0)
		return true; /* no packet from outside has our own address */
	if (p->loopback && peer_is_loopback(&source))
		return true;
	return holds(p->allowed, p->count, &source);
}

bool peers_is_news(struct peers *p, const struct sockaddr *from)
{
	struct peer one;

	if (peer_make(from, &one) < 0 || p->told_count == PEERS_TOLD_MAX ||
		holds(p->told, p->told_count, &one))
		return false;
	p->told[p->told_count++] = one;
	return true;
}

void peers_done(struct peers *p)
{
	free(p->allowed);
	*p = (struct peers){ 0 };
}
