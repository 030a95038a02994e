/* peers.c - see peers.h */
#include "daemon/os/peers.h"

#include <errno.h>
#include <stdlib.h>

static bool holds(const struct address *list, size_t count, const struct address *one)
{
	for (size_t i = 0; i < count; i++)
		if (address_same_host(&list[i], one))
			return true;
	return false;
}

int peers_allow(struct peers *p, const struct address *a)
{
	if (address_size(a) == 0)
		return -EAFNOSUPPORT;
	if (holds(p->allowed, p->count, a))
		return 0;
	if (p->count == p->room) {
		size_t room = p->room ? 2 * p->room : 16;
		struct address *now = realloc(p->allowed, room * sizeof *now);

		if (!now)
			return -ENOMEM;
		p->allowed = now;
		p->room = room;
	}
	p->allowed[p->count++] = *a;
	return 0;
}

bool peers_may(const struct peers *p, const struct address *from, const struct address *to)
{
	if (address_same_host(from, to))
		return true; /* no packet from outside has our own address */
	if (p->loopback && address_is_loopback(from))
		return true;
	return holds(p->allowed, p->count, from);
}

bool peers_is_news(struct peers *p, const struct address *from)
{
	if (address_size(from) == 0 || p->told_count == PEERS_TOLD_MAX ||
		holds(p->told, p->told_count, from))
		return false;
	p->told[p->told_count++] = *from;
	return true;
}

void peers_done(struct peers *p)
{
	free(p->allowed);
	*p = (struct peers){ 0 };
}
