/* sight.c - see sight.h */
#include "daemon/cluster/sight.h"

#include <string.h>

#include "daemon/cluster/member.h"
#include "daemon/store/store.h"

static void add_trip(struct sight *s, unsigned node, const struct link *l)
{
	if (l->state == LINK_OPEN && l->clock.known && s->trip_count < s->room)
		s->trips[s->trip_count++] = (struct trip){ node, l->clock.trip_ns };
}

static void look_from_hub(const struct hub *h, struct sight *s)
{
	if (h->state == HUB_CLOSED || !h->job.nodes || !h->peers)
		return;
	s->nodes_known = true;
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		s->nodes[h->job.nodes[i].state]++;
		if (h->peers[i])
			add_trip(s, i, &h->peers[i]->link);
	}
	s->has_store = h->store != NULL;
	if (!s->has_store)
		return;
	s->store_clients = store_clients(h->store);
	s->store_keys = store_keys(h->store);
}

void sight_take(const struct member *m, struct sight *s)
{
	*s = (struct sight){ .trips = s->trips, .room = s->room };
	if (m->role == MEMBER_HUB)
		look_from_hub(&m->hub, s);
	if (m->role == MEMBER_SPOKE && m->spoke.linked)
		add_trip(s, 0, m->spoke.link);
}

/* NULL: this is not node rank 0, or it has none yet, or no more. */
static const struct job *job_of(const struct member *m)
{
	const struct hub *h = &m->hub;

	return m->role == MEMBER_HUB && h->state != HUB_CLOSED && h->job.nodes ? &h->job : NULL;
}

size_t sight_awaited(const struct member *m, unsigned *ret, size_t room)
{
	const struct job *j = job_of(m);
	size_t count = 0;

	for (unsigned i = 0; j && i < j->nnodes && count < room; i++)
		if (j->nodes[i].state == NODE_AWAITED)
			ret[count++] = i;
	return count;
}

bool sight_clock(
	const struct member *m, unsigned node, int64_t *ret_offset_ns, uint64_t *ret_error_ns)
{
	const struct job *j = job_of(m);
	const struct link *l =
		j && node < j->nnodes && m->hub.peers[node] ? &m->hub.peers[node]->link : NULL;

	if (!l || !l->clock.known)
		return false;
	*ret_offset_ns = clock_offset_ns(&l->clock);
	*ret_error_ns = clock_error_ns(&l->clock, uv_hrtime());
	return true;
}

struct address sight_address(const struct member *m, unsigned node)
{
	const struct job *j = job_of(m);

	return j && node < j->nnodes && m->hub.peers[node] ? m->hub.peers[node]->link.peer_address :
							     (struct address){ 0 };
}

size_t sight_nodes(const struct member *m, struct node_sight *ret, size_t room)
{
	const struct job *j = job_of(m);
	size_t count = 0;

	for (; j && count < j->nnodes && count < room; count++)
		ret[count] =
			(struct node_sight){ j->nodes[count].state, j->nodes[count].about.name };
	return count;
}

const struct job_steps *sight_steps(const struct member *m)
{
	const struct job *j = job_of(m);

	return j ? &j->steps : NULL;
}

static const struct store *store_of(const struct member *m)
{
	return job_of(m) ? m->hub.store : NULL;
}

uint64_t sight_store_changes(const struct member *m)
{
	const struct store *s = store_of(m);

	return s ? s->space.changes : 0;
}

void sight_store_waits(const struct member *m,
	void (*see)(void *to, const struct address *client, struct span key), void *to)
{
	const struct store *s = store_of(m);

	if (s)
		store_waits(s, see, to);
}

void sight_store_polls(const struct member *m,
	void (*see)(void *to, const struct address *client, unsigned polls), void *to)
{
	const struct store *s = store_of(m);

	if (s)
		store_polls(s, see, to);
}
