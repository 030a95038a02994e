/* merge.c - see merge.h */
#include "daemon/output/merge/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "common/sm.h"
#include "daemon/os/lock.h"
#include "daemon/output/console/console.h"
#include "daemon/output/merge/flow.h"

enum { FLOW_MAX = 1 << 20, /* of a stream of ours that is to be sent */ NO_STREAM = 2 };

/* Lines that come to one of this node's consoles, but not from a pipe. */
struct inflow {
	struct source source; /* first, so that one is the other; the output thread's */
	struct flow flow;     /* under the lock */
	struct merge *merge;
	struct node_flow *node; /* NULL: ours, to be sent */
	struct console *console;
};

/* Another node's. */
struct node_flow {
	struct inflow in[2]; /* stdout, stderr */
	unsigned number;
	/* under the lock */
	size_t taken;            /* bytes that it has yet to hear of */
	bool is_taken, has_come; /* it is in that list */
	struct node_flow *next_taken, *next_come;
};

struct merge {
	struct merge_host host;
	uv_mutex_t lock;

	/* under the lock */
	enum merge_state state;
	bool woken; /* merge_serve() has something to do */
	struct inflow out[2];
	unsigned turn;   /* the stream that was taken from last */
	bool mid;        /* in the middle of a line */
	bool full;       /* a console waits for room in its flow */
	bool late[2];    /* it did, and the flow was not empty since */
	bool caught[2];  /* now it was: the console has yet to hear of it */
	bool last, over; /* the last attempt is over; all its lines are in the flows */
	struct node_flow *nodes, *taken, *come;
	unsigned count;
	size_t share;

	/* the output thread's */
	struct console remote[2];
	unsigned opened; /* of them */
	struct console *remotes[2];
};

static const struct sm_state states[MERGE_STATES] = {
	[MERGE_LOCAL] = { "local", SM_TO(MERGE_OPENING) | SM_TO(MERGE_KEPT) },
	[MERGE_OPENING] = { "opening", SM_TO(MERGE_SENDING) | SM_TO(MERGE_KEPT) },
	[MERGE_SENDING] = { "sending", SM_TO(MERGE_KEEPING) },
	[MERGE_KEEPING] = { "keeping", SM_TO(MERGE_KEPT) },
	[MERGE_KEPT] = { "kept", 0 },
};

const struct sm merge_life = { "merge", states, MERGE_STATES };

/* With the lock held. */
static void merge_goto(struct merge *m, enum merge_state next)
{
	m->state = sm_go(&merge_life, m->state, next);
}

/* The output thread is to look at what is here. */
static void wake(struct merge *m)
{
	m->woken = true;
	m->host.wake(m->host.owner);
}

/* A line of which this much is held is not waited for any longer. Of another node's share half of
 * what it may send can be on its way back to it: see cluster/credit.h. */
static size_t patience(const struct inflow *in)
{
	return in->node ? in->merge->share / 2 : FLOW_MAX / 2;
}

static struct inflow *other_of(const struct inflow *in)
{
	return &in->node->in[in == &in->node->in[0]];
}

/* Its lines must go on though they have no end, as their sender can't. What its node's other stream
 * has goes first, so that no node holds one console and waits for the other. */
static bool presses(const struct inflow *in)
{
	const struct flow *other;

	if (!in->node)
		return flow_left(&in->flow) >= patience(in);
	other = &other_of(in)->flow;
	return flow_left(&in->flow) + flow_left(other) >= patience(in) &&
		!flow_is_ready(other, false);
}

static bool is_ready(const struct inflow *in)
{
	return flow_is_ready(&in->flow, presses(in));
}

static void tell_taken(struct node_flow *n, size_t len)
{
	struct merge *m = n->in[0].merge;

	n->taken += len;
	if (n->is_taken || n->taken == 0)
		return;
	n->is_taken = true;
	n->next_taken = m->taken;
	m->taken = n;
	m->host.tell(m->host.owner);
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
	struct merge *m = in->merge;
	autolock held = lock_take(&m->lock);
	bool more, is_more = false;
	size_t n = flow_put(&in->flow, out, presses(in));

	more = is_ready(in);
	if (in->node) {
		tell_taken(in->node, n);
		/* it may have waited for this one; its console may have had its turn */
		is_more = queue_ready(other_of(in));
	} else if (m->full && n > 0) {
		m->full = false;
		is_more = true;
	}
	if (is_more)
		wake(m); /* its turn is not within another console's */
	return more;
}

static void cut(struct source *s, struct outbuf *out)
{
	struct inflow *in = (struct inflow *)s;
	autolock held = lock_take(&in->merge->lock);

	(void)flow_cut(&in->flow, out); /* there is room: only this line was put since */
}

static void init(struct inflow *in, struct merge *m, struct node_flow *n, int i, size_t max)
{
	*in = (struct inflow){
		.source = { .open = &in->flow.open, .pull = pull, .cut = cut },
		.flow = { .max = max },
		.merge = m,
		.node = n,
		.console = m->host.consoles[i],
	};
}

int merge_new(const struct merge_host *host, struct merge **ret)
{
	struct merge *m = calloc(1, sizeof *m);

	if (!m || uv_mutex_init(&m->lock) < 0) {
		free(m);
		return -ENOMEM;
	}
	m->host = *host;
	*ret = m;
	return 0;
}

void merge_send(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	if (m->state != MERGE_LOCAL)
		return;
	merge_goto(m, MERGE_OPENING);
	wake(m);
}

/* Which stream is next: the one whose line is taken, else the other one. */
static unsigned next_stream(const struct merge *m, bool wait)
{
	unsigned other = !m->turn;
	bool has = flow_left(&m->out[m->turn].flow) > 0;

	if (m->mid && (has || wait))
		return has ? m->turn : NO_STREAM;
	if (flow_left(&m->out[other].flow) > 0)
		return other;
	return has ? m->turn : NO_STREAM;
}

/* Whether the thread is to hear that something was taken of a stream. */
static bool wants_to_know(struct merge *m, unsigned i)
{
	size_t left = flow_left(&m->out[i].flow);
	bool has_room = m->full && left <= FLOW_MAX / 2, is_empty = m->late[i] && left == 0;

	if (has_room)
		m->full = false;
	if (is_empty) {
		m->late[i] = false;
		m->caught[i] = true;
	}
	return has_room || is_empty;
}

size_t merge_next(struct merge *m, bool wait, char *ret, size_t room, int *ret_stream)
{
	autolock held = lock_take(&m->lock);
	unsigned i = m->state == MERGE_SENDING ? next_stream(m, wait) : NO_STREAM;
	size_t n;

	if (i == NO_STREAM)
		return 0;
	n = flow_take(&m->out[i].flow, ret, room, &m->mid);
	m->turn = i;
	*ret_stream = (int)i + 1;
	if (wants_to_know(m, i))
		wake(m);
	return n;
}

bool merge_waits(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	return next_stream(m, true) == NO_STREAM && next_stream(m, false) != NO_STREAM;
}

void merge_last(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	m->last = true;
	wake(m);
}

bool merge_is_over(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	return m->over && flow_left(&m->out[0].flow) == 0 && flow_left(&m->out[1].flow) == 0;
}

/* With the lock held, as for what follows. */
static void stop_sending(struct merge *m)
{
	if (m->state == MERGE_SENDING)
		merge_goto(m, MERGE_KEEPING);
	else if (m->state < MERGE_SENDING)
		merge_goto(m, MERGE_KEPT);
}

void merge_keep(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	if (m->state >= MERGE_KEEPING)
		return;
	stop_sending(m);
	wake(m);
}

int merge_expect(struct merge *m, unsigned nodes, size_t share)
{
	autolock held = lock_take(&m->lock);

	if (m->nodes)
		return 0;
	m->nodes = calloc(nodes, sizeof *m->nodes);
	if (!m->nodes)
		return -ENOMEM;
	for (unsigned n = 0; n < nodes; n++) {
		m->nodes[n].number = n;
		for (int i = 0; i < 2; i++)
			init(&m->nodes[n].in[i], m, &m->nodes[n], i, share);
	}
	m->count = nodes;
	m->share = share;
	return 0;
}

/* The output thread is to look at this node's lines. */
static void come(struct merge *m, struct node_flow *n)
{
	if (!n->has_come) {
		n->has_come = true;
		n->next_come = m->come;
		m->come = n;
	}
	wake(m);
}

size_t merge_hear(struct merge *m, unsigned node, int stream, const char *at, size_t len)
{
	autolock held = lock_take(&m->lock);
	size_t n;

	if (node >= m->count)
		return 0;
	n = flow_add(&m->nodes[node].in[stream - 1].flow, at, len);
	come(m, &m->nodes[node]);
	return n;
}

void merge_lost(struct merge *m, unsigned node)
{
	autolock held = lock_take(&m->lock);

	if (node >= m->count)
		return;
	m->nodes[node].in[0].flow.ended = m->nodes[node].in[1].flow.ended = true;
	come(m, &m->nodes[node]);
}

bool merge_taken(struct merge *m, unsigned *ret_node, size_t *ret_len)
{
	autolock held = lock_take(&m->lock);
	struct node_flow *n = m->taken;

	if (!n)
		return false;
	m->taken = n->next_taken;
	*ret_node = n->number;
	*ret_len = n->taken;
	n->taken = 0;
	n->is_taken = false;
	return true;
}

/* A console of ours, of which bytes are to be sent. */
static ssize_t write_remote(const struct console *c, const char *at, size_t len)
{
	struct merge *m = c->owner_of_write;
	size_t i = (size_t)(c - m->remote), n;
	struct inflow *to = &m->out[i];
	autolock held = lock_take(&m->lock);

	n = flow_add(&to->flow, at, len);
	if (n < len)
		m->full = m->late[i] = true;
	if (m->state == MERGE_KEPT)
		(void)queue_ready(to);
	else
		m->host.tell(m->host.owner);
	if (n > 0)
		return (ssize_t)n;
	/* no memory: what is not taken is not kept */
	errno = flow_left(&to->flow) == FLOW_MAX ? EAGAIN : ENOSPC;
	return -1;
}

static void open_remote(struct merge *m)
{
	int rc = 0;

	for (int i = 0; i < 2 && rc == 0; i++) {
		init(&m->out[i], m, NULL, i, FLOW_MAX);
		rc = console_open_remote(&m->remote[i], m->host.loop, write_remote, m);
		m->remotes[i] = &m->remote[i];
		m->opened++;
	}
	merge_goto(m, rc == 0 ? MERGE_SENDING : MERGE_KEPT);
	if (rc < 0)
		m->host.say(m->host.owner, true,
			"out of memory: workers' lines are shown here and not sent to node rank 0");
}

struct console *const *merge_consoles(struct merge *m)
{
	autolock held = lock_take(&m->lock);

	return m->state == MERGE_SENDING || m->state == MERGE_KEEPING ? m->remotes : NULL;
}

/* From now on what is to be sent is a source of our own consoles', which make workers wait again.
 */
static void keep(struct merge *m)
{
	merge_goto(m, MERGE_KEPT);
	for (unsigned i = 0; i < m->opened; i++) {
		console_localize(&m->remote[i], m->host.consoles[i]->drops);
		(void)queue_ready(&m->out[i]);
	}
}

static void queue_come(struct merge *m)
{
	for (struct node_flow *n = m->come; n; n = n->next_come) {
		n->has_come = false;
		(void)queue_ready(&n->in[0]);
		(void)queue_ready(&n->in[1]);
	}
	m->come = NULL;
}

void merge_serve(struct merge *m)
{
	bool all[2], woken;

	uv_mutex_lock(&m->lock);
	woken = m->woken;
	m->woken = false;
	if (m->state == MERGE_OPENING)
		open_remote(m);
	for (int i = 0; i < 2; i++) {
		all[i] = m->caught[i];
		m->caught[i] = false;
	}
	queue_come(m);
	if (m->state == MERGE_KEEPING)
		keep(m);
	uv_mutex_unlock(&m->lock);
	for (unsigned i = 0; woken && i < 2; i++) /* clang's analyzer can't see that opened <= 2 */
		if (i < m->opened)
			console_writable(&m->remote[i], all[i]); /* which takes the lock */
}

bool merge_flush(struct merge *m)
{
	bool more = false;

	for (unsigned i = 0; i < m->opened; i++)
		more = console_flush(&m->remote[i]) || more;
	return more;
}

void merge_turn(struct merge *m, bool written)
{
	autolock held = lock_take(&m->lock);

	if (m->last && !m->over && written && merge_is_idle(m)) {
		m->over = true;
		m->host.tell(m->host.owner);
	}
}

void merge_end(struct merge *m)
{
	uv_mutex_lock(&m->lock);
	stop_sending(m);
	m->woken = true;
	for (unsigned n = 0; n < m->count; n++)
		for (int i = 0; i < 2; i++) {
			m->nodes[n].in[i].flow.ended = true;
			(void)queue_ready(&m->nodes[n].in[i]);
		}
	uv_mutex_unlock(&m->lock);
	merge_serve(m);
}

bool merge_is_idle(const struct merge *m)
{
	for (unsigned i = 0; i < m->opened; i++)
		if (!console_is_idle(&m->remote[i]))
			return false;
	return true;
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->opened; i++) {
		console_done(&m->remote[i]);
		flow_done(&m->out[i].flow);
	}
	for (unsigned n = 0; n < m->count; n++)
		for (int i = 0; i < 2; i++)
			flow_done(&m->nodes[n].in[i].flow);
	free(m->nodes);
	uv_mutex_destroy(&m->lock);
	free(m);
}
