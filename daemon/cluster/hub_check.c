/* hub_check.c - how the nodes are checked; see hub_parts.h */
#include "daemon/cluster/hub_parts.h"

#include "common/address.h"

/* The address that all nodes have dialed, if it is the same, else this host's own. */
static struct address find_address(const struct hub *h)
{
	struct address all = { 0 };
	bool first = true;

	for (const struct caller *p = h->all; p; p = p->next) {
		struct address one = party_own_address(&p->link);

		if (!p->joined)
			continue;
		if (first)
			all = one;
		else if (!address_same_host(&all, &one))
			all = (struct address){ 0 };
		first = false;
	}
	if (address_is_any(&all))
		(void)address_parse("127.0.0.1", 0, &all);
	return all;
}

void hub_check_call(const struct hub *h, const struct message_start *start)
{
	struct check_call c = {
		.phases = start->checks, .gate_ms = start->gate_ms, .together = h->joined > 1
	};

	c.own = c.hub = find_address(h);
	if (h->party->on->check)
		h->party->on->check(h->party->owner, &c);
}

void hub_hear_check(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;

	if (m->check.attempt == p->hub->job.attempt && party->on->check_word)
		party->on->check_word(party->owner, p->node, &m->check);
}
