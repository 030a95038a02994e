/* merge.c - see merge.h */
#include "daemon/output/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/output/post.h"

/* A line of which this much is held is not waited for any longer. Of another node's share half of
 * what it may send can be on its way back to it: see cluster/credit.h. */
static size_t patience(const struct inflow *in)
{
	return in->node ? in->output->merge.share / 2 : MERGE_FLOW / 2;
}

/* Its lines must go on though they have no end, as their sender can't. What its node's other stream
 * has goes first, so that no node holds one console and waits for the other. */
static bool presses(const struct inflow *in)
{
	const struct inflow *other;

	if (!in->node)
		return flow_left(&in->flow) >= patience(in);
	other = &in->node->in[in == &in->node->in[0]];
	return flow_left(&in->flow) + flow_left(&other->flow) >= patience(in) &&
		!flow_is_ready(&other->flow, false);
}

static bool is_ready(const struct inflow *in)
{
	return flow_is_ready(&in->flow, presses(in));
}

static void tell_taken(struct merge_node *n, size_t len)
{
	struct merge *m = &n->in[0].output->merge;

	n->taken += len;
	if (n->is_taken || n->taken == 0)
		return;
	n->is_taken = true;
	n->next_taken = m->taken;
	m->taken = n;
	output_tell_lines(n->in[0].output);
}

/* False: it is queued already, or has nothing for the console now. */
static bool queue_ready(struct inflow *in)
{
	if (in->source.queued || !is_ready(in))
		return false;
	console_queue(in->console, &in->source);
	return true;
}

static bool pull(struct source *s, struct outbuf *out)
{
	struct inflow *in = (struct inflow *)s;
	struct output *o = in->output;
	bool more, wake = false;
	size_t n;

	uv_mutex_lock(&o->lock);
	n = flow_put(&in->flow, out, presses(in));
	s->open = in->flow.open;
	more = is_ready(in);
	if (in->node) {
		tell_taken(in->node, n);
		/* it may have waited for this one; its console may have had its turn */
		wake = queue_ready(&in->node->in[in == &in->node->in[0]]);
	} else if (o->merge.full && n > 0) {
		o->merge.full = false;
		wake = true;
	}
	uv_mutex_unlock(&o->lock);
	if (wake)
		output_order(o, ORDER_HEAR); /* its turn is not within another console's */
	return more;
}

static void cut(struct source *s, struct outbuf *out)
{
	struct inflow *in = (struct inflow *)s;

	uv_mutex_lock(&in->output->lock);
	(void)flow_cut(&in->flow, out); /* there is room: only this line was put since */
	s->open = in->flow.open;
	uv_mutex_unlock(&in->output->lock);
}

static void init(struct inflow *in, struct output *o, struct merge_node *n, int i, size_t max)
{
	*in = (struct inflow){
		.source = { .pull = pull, .cut = cut },
		.flow = { .max = max },
		.output = o,
		.node = n,
		.console = o->console_of[i],
	};
}

int output_hear_nodes(struct output *o, unsigned nodes, size_t share)
{
	struct merge *m = &o->merge;
	struct merge_node *all;

	if (m->nodes)
		return 0;
	all = calloc(nodes, sizeof *all);
	if (!all)
		return -ENOMEM;
	for (unsigned n = 0; n < nodes; n++) {
		all[n].number = n;
		for (int i = 0; i < 2; i++)
			init(&all[n].in[i], o, &all[n], i, share);
	}
	uv_mutex_lock(&o->lock);
	m->nodes = all;
	m->count = nodes;
	m->share = share;
	uv_mutex_unlock(&o->lock);
	return 0;
}

/* A console of ours, of which bytes are to be sent. */
static ssize_t write_remote(const struct console *c, const char *at, size_t len)
{
	struct output *o = c->owner_of_write;
	struct merge *m = &o->merge;
	struct inflow *to = &m->out[c - m->remote];
	bool full;
	size_t n;

	uv_mutex_lock(&o->lock);
	n = flow_add(&to->flow, at, len);
	full = flow_left(&to->flow) == MERGE_FLOW;
	m->full = m->full || n < len;
	m->late[c - m->remote] = m->late[c - m->remote] || n < len;
	if (m->kept)
		(void)queue_ready(to);
	else
		output_tell_lines(o);
	uv_mutex_unlock(&o->lock);
	if (n > 0)
		return (ssize_t)n;
	errno = full ? EAGAIN : ENOSPC; /* no memory: what is not taken is not kept */
	return -1;
}

void merge_send(struct output *o)
{
	struct merge *m = &o->merge;
	int rc = 0;

	if (m->opened > 0)
		return;
	for (int i = 0; i < 2 && rc == 0; i++) {
		init(&m->out[i], o, NULL, i, MERGE_FLOW);
		rc = console_open_remote(&m->remote[i], &o->loop, write_remote, o);
		m->opened++;
	}
	m->sends = rc == 0;
	if (rc < 0)
		o->host.say(o->host.owner, true,
			"no memory to send workers' lines to node rank 0: they stay here");
}

struct console *const *merge_consoles(struct output *o)
{
	for (int i = 0; i < 2; i++)
		o->console_of_workers[i] =
			o->merge.sends && !o->merge.kept ? &o->merge.remote[i] : o->console_of[i];
	return o->console_of_workers;
}

/* From now on what is to be sent is a source of our own consoles', which make workers wait again.
 */
static void keep(struct output *o)
{
	struct merge *m = &o->merge;

	uv_mutex_lock(&o->lock);
	m->kept = true;
	for (unsigned i = 0; i < m->opened; i++) {
		console_localize(&m->remote[i], o->consoles[i].drops);
		(void)queue_ready(&m->out[i]);
	}
	uv_mutex_unlock(&o->lock);
}

static void queue_come(struct output *o)
{
	struct merge_node *next;

	uv_mutex_lock(&o->lock);
	for (struct merge_node *n = o->merge.come; n; n = next) {
		next = n->next_come;
		n->has_come = false;
		(void)queue_ready(&n->in[0]);
		(void)queue_ready(&n->in[1]);
	}
	o->merge.come = NULL;
	uv_mutex_unlock(&o->lock);
}

void merge_hear(struct output *o)
{
	struct merge *m = &o->merge;
	bool keeps, all[2] = { false, false };

	uv_mutex_lock(&o->lock);
	keeps = m->keeps;
	for (int i = 0; i < 2; i++) {
		all[i] = m->caught[i];
		m->caught[i] = false;
	}
	uv_mutex_unlock(&o->lock);
	queue_come(o);
	if (keeps && !m->kept)
		keep(o);
	for (unsigned i = 0; i < m->opened && i < 2; i++)
		console_writable(&m->remote[i], all[i]);
}

bool merge_flush(struct output *o)
{
	bool more = false;

	for (unsigned i = 0; i < o->merge.opened; i++)
		more = console_flush(&o->merge.remote[i]) || more;
	return more;
}

void merge_turn(struct output *o, bool written)
{
	struct merge *m = &o->merge;

	uv_mutex_lock(&o->lock);
	if (m->last && !m->over && written && merge_is_idle(o)) {
		m->over = true;
		output_tell_lines(o);
	}
	uv_mutex_unlock(&o->lock);
}

void merge_end(struct output *o)
{
	struct merge *m = &o->merge;

	uv_mutex_lock(&o->lock);
	m->keeps = true;
	for (unsigned n = 0; n < m->count; n++)
		for (int i = 0; i < 2; i++) {
			m->nodes[n].in[i].flow.ended = true;
			(void)queue_ready(&m->nodes[n].in[i]);
		}
	uv_mutex_unlock(&o->lock);
	merge_hear(o);
}

bool merge_is_idle(const struct output *o)
{
	for (unsigned i = 0; i < o->merge.opened; i++)
		if (!console_is_idle(&o->merge.remote[i]))
			return false;
	return true;
}

void merge_close(struct merge *m)
{
	for (unsigned i = 0; i < m->opened; i++)
		console_close(&m->remote[i]);
}

void merge_done(struct merge *m)
{
	for (unsigned i = 0; i < m->opened; i++) {
		console_done(&m->remote[i]);
		flow_done(&m->out[i].flow);
	}
	for (unsigned n = 0; n < m->count; n++)
		for (int i = 0; i < 2; i++)
			flow_done(&m->nodes[n].in[i].flow);
	free(m->nodes);
}
