/* hub_waiting.c - which ranks the others wait for in the store: a job that hangs at its start says
 * so; see hub.h */
#include "daemon/cluster/hub.h"

#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/hub_store.h"
#include "daemon/cluster/member.h"
#include "daemon/job/phrases.h"

static unsigned first_rank(const struct hub *h, unsigned node)
{
	unsigned first = 0;

	for (unsigned i = 0; i < node; i++)
		first += h->nproc[i];
	return first;
}

/* A wrapper's connections are not the worker's own, and some join after they were looked for. */
static bool all_joined(const struct hub *h)
{
	return hub_store_clients(h) >= first_rank(h, h->member->config->nnodes);
}

static void say_waiting(struct hub *h, unsigned node, const unsigned *ranks, size_t count)
{
	const struct node *about = &h->job.nodes[node].about;
	struct text t = { 0 };

	text_add(&t, "waiting for ");
	numbers_add(&t, "rank", ranks, count);
	text_printf(&t, " (node %u, ", node);
	text_add_shown(&t, about->name, strlen(about->name));
	text_printf(&t, ") to join the store, %.0f s after the start",
		(double)(uv_hrtime() - h->job.started_ns) / 1e9);
	member_say(h->member, false, text_string(&t));
	text_done(&t);
}

void hub_waiting(
	struct hub *h, unsigned node, unsigned attempt, const unsigned *ranks, size_t count)
{
	unsigned first = first_rank(h, node), nproc = h->nproc[node];

	if (all_joined(h))
		count = 0;
	if (h->over || attempt != h->job.attempt || count > nproc)
		return;
	for (size_t i = 0; i < count; i++)
		if (ranks[i] < first || ranks[i] >= first + nproc)
			return;
	if (!h->unjoined)
		h->unjoined = arena_alloc(h->member->memory,
			first_rank(h, h->member->config->nnodes) * sizeof *h->unjoined);
	if (!h->unjoined)
		return;
	memset(h->unjoined + first, 0, nproc * sizeof *h->unjoined);
	for (size_t i = 0; i < count; i++)
		h->unjoined[ranks[i]] = true;
	if (count > 0)
		say_waiting(h, node, ranks, count);
}

const unsigned *hub_all_waiting(const struct hub *h, size_t *ret_count)
{
	unsigned world = first_rank(h, h->member->config->nnodes), *list;
	size_t count = 0;

	*ret_count = 0;
	list = h->unjoined && !all_joined(h) ?
		arena_alloc(h->member->memory, world * sizeof *list) :
		NULL;
	for (unsigned i = 0; list && i < world; i++)
		if (h->unjoined[i])
			list[count++] = i;
	*ret_count = count;
	return list;
}
