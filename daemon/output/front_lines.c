/* front_lines.c - lines of several nodes on one console: the main thread's side; see front.h */
#include "daemon/output/post.h"

void output_send_lines(struct output *o)
{
	output_order(o, ORDER_SEND);
}

/* Which stream is next: the one whose line is taken, else the other one; 2: none has anything. */
static unsigned next_stream(const struct merge *m, bool wait)
{
	unsigned other = !m->turn;
	bool has = flow_left(&m->out[m->turn].flow) > 0;

	if (m->mid && (has || wait))
		return has ? m->turn : 2;
	if (flow_left(&m->out[other].flow) > 0)
		return other;
	return has ? m->turn : 2;
}

/* Whether the thread is to hear that something was taken of a stream. */
static bool wants_to_know(struct merge *m, unsigned i)
{
	size_t left = flow_left(&m->out[i].flow);
	bool has_room = m->full && left <= MERGE_FLOW / 2, is_empty = m->late[i] && left == 0;

	if (has_room)
		m->full = false;
	if (is_empty) {
		m->late[i] = false;
		m->caught[i] = true;
	}
	return has_room || is_empty;
}

size_t output_next_lines(struct output *o, bool wait, char *ret, size_t room, int *ret_stream)
{
	struct merge *m = &o->merge;
	bool wake = false;
	unsigned i;
	size_t n = 0;

	uv_mutex_lock(&o->lock);
	i = m->keeps ? 2 : next_stream(m, wait);
	if (i < 2) {
		n = flow_take(&m->out[i].flow, ret, room, &m->mid);
		m->turn = i;
		wake = wants_to_know(m, i);
		*ret_stream = (int)i + 1;
	}
	uv_mutex_unlock(&o->lock);
	if (wake)
		output_order(o, ORDER_HEAR);
	return n;
}

bool output_lines_wait(struct output *o)
{
	const struct merge *m = &o->merge;
	bool waits;

	uv_mutex_lock(&o->lock);
	waits = next_stream(m, true) == 2 && next_stream(m, false) != 2;
	uv_mutex_unlock(&o->lock);
	return waits;
}

void output_last_lines(struct output *o)
{
	uv_mutex_lock(&o->lock);
	o->merge.last = true;
	uv_mutex_unlock(&o->lock);
	output_order(o, ORDER_HEAR);
}

bool output_lines_over(struct output *o)
{
	const struct merge *m = &o->merge;
	bool over;

	uv_mutex_lock(&o->lock);
	over = m->over && flow_left(&m->out[0].flow) == 0 && flow_left(&m->out[1].flow) == 0;
	uv_mutex_unlock(&o->lock);
	return over;
}

void output_keep_lines(struct output *o)
{
	bool kept;

	uv_mutex_lock(&o->lock);
	kept = o->merge.keeps;
	o->merge.keeps = true;
	uv_mutex_unlock(&o->lock);
	if (!kept)
		output_order(o, ORDER_HEAR);
}

/* The thread is to look at this node's lines. */
static void come(struct output *o, struct merge_node *n)
{
	if (!n->has_come) {
		n->has_come = true;
		n->next_come = o->merge.come;
		o->merge.come = n;
	}
}

size_t output_hear(struct output *o, unsigned node, int stream, const char *at, size_t len)
{
	struct merge *m = &o->merge;
	size_t n = 0;

	uv_mutex_lock(&o->lock);
	if (node < m->count) {
		n = flow_add(&m->nodes[node].in[stream - 1].flow, at, len);
		come(o, &m->nodes[node]);
	}
	uv_mutex_unlock(&o->lock);
	output_order(o, ORDER_HEAR);
	return n;
}

void output_hear_end(struct output *o, unsigned node)
{
	struct merge *m = &o->merge;

	uv_mutex_lock(&o->lock);
	if (node < m->count) {
		m->nodes[node].in[0].flow.ended = m->nodes[node].in[1].flow.ended = true;
		come(o, &m->nodes[node]);
	}
	uv_mutex_unlock(&o->lock);
	output_order(o, ORDER_HEAR);
}

bool output_taken(struct output *o, unsigned *ret_node, size_t *ret_len)
{
	struct merge_node *n;

	uv_mutex_lock(&o->lock);
	n = o->merge.taken;
	if (n) {
		o->merge.taken = n->next_taken;
		*ret_node = n->number;
		*ret_len = n->taken;
		n->taken = 0;
		n->is_taken = false;
	}
	uv_mutex_unlock(&o->lock);
	return n != NULL;
}
