/* hub_store.c - see hub_store.h */
#include "daemon/cluster/hub_store.h"

#include <errno.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/member.h"
#include "daemon/store/store.h"

enum { MEMORY_MAX = 1 << 30 };

static void on_note(void *owner, const char *text)
{
	struct hub *h = owner;

	member_say(h->member, true, text);
}

/* Behind the address of a service, or one that is translated, a store of the workers may listen
 * on all addresses: ours does not. */
static int say_remedy(struct failure *why)
{
	struct failure without = *why;

	if (why->code != -EADDRNOTAVAIL)
		return why->code;
	*why = (struct failure){ 0 };
	return failure_set(why, without.code,
		"%s: give --local-addr an address of this node that the others reach, or "
		"--store rank0",
		without.text);
}

int hub_store_open(struct hub *h, struct failure *why)
{
	const struct member_config *c = h->member->config;
	const struct store_config config = {
		.addr = h->master_addr,
		.port = c->master_port,
		.old = c->store_dialect,
		.memory_max = MEMORY_MAX,
		.on_note = on_note,
		.owner = h,
	};

	struct store *store = arena_alloc(c->arena, sizeof *store);

	if (!store)
		return failure_oom(why);
	if (store_open(store, h->member->loop, &config, why) < 0)
		return say_remedy(why);
	h->store = store;
	h->handles++;
	h->master_port = store_port(store);
	for (struct caller *p = h->all; p; p = p->next)
		if (p->joined)
			(void)store_allow(store, (struct sockaddr *)&p->link.peer_address);
	return 0;
}

void hub_store_renew(struct hub *h)
{
	if (h->store)
		store_next_attempt(h->store);
}

unsigned hub_store_clients(const struct hub *h)
{
	return h->store ? store_clients(h->store) : 0;
}

static void on_closed(struct store *s)
{
	hub_handle_closed(s->config.owner);
}

void hub_store_close(struct hub *h)
{
	if (h->store)
		store_close(h->store, on_closed);
}
