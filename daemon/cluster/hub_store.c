/* hub_store.c - see hub_store.h */
#include "daemon/cluster/hub_store.h"

#include "common/failure.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/hub.h"
#include "daemon/cluster/member.h"

enum { MEMORY_MAX = 1 << 30 };

static void on_note(void *owner, const char *text)
{
	struct hub *h = owner;

	h->member->on->say(h->member->owner, true, text);
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

	if (store_open(&h->store, h->member->loop, &config, why) < 0)
		return why->code;
	h->storing = true;
	h->handles++;
	h->master_port = store_port(&h->store);
	for (struct peer *p = h->all; p; p = p->next)
		if (p->joined)
			(void)store_allow(&h->store, (struct sockaddr *)&p->link.peer_address);
	return 0;
}

void hub_store_renew(struct hub *h)
{
	if (h->storing)
		store_next_attempt(&h->store);
}

static void on_closed(struct store *s)
{
	hub_handle_closed(s->config.owner);
}

void hub_store_close(struct hub *h)
{
	if (h->storing)
		store_close(&h->store, on_closed);
}
