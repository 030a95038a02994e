/* hub_peers.c - the hub's connections: who joins, what they say; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/natural.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/wire.h"

enum {
	FIRST_NOTE_MS = 10000, /* until those who wait are told for whom */
	NEXT_NOTE_MS = 60000,
	BROUGHT_BACK_NS = 2000000000, /* silence after which a node may join anew under its rank */
};

static void say(struct hub *h, bool warning, const struct text *t)
{
	h->member->on->say(h->member->owner, warning, text_string(t));
}

void hub_tell(struct hub *h, enum message_type type, const void *at, size_t len,
	const struct caller *except)
{
	for (struct caller *p = h->all, *next; p; p = next) {
		next = p->next; /* a link that can't take it is closed later, not now */
		if (p->joined && p != except && !p->told)
			(void)link_send(&p->link, type, at, len);
	}
}

void hub_dismiss(struct hub *h, enum message_type type, const void *at, size_t len)
{
	for (struct caller *p = h->all; p; p = p->next) {
		if (p->told)
			continue;
		p->told = true;
		if (p->joined)
			(void)link_send(&p->link, type, at, len);
		link_close(&p->link, true, NULL);
	}
}

static void refuse_one(struct caller *p, enum refusal why, const char *text)
{
	struct message_refused m = { .why = why };
	struct wire_out w = { 0 };

	(void)strncpy(m.text, text, sizeof m.text - 1);
	message_put_refused(&w, &m);
	p->told = true;
	(void)link_send(&p->link, MESSAGE_REFUSED, w.at, w.len);
	link_close(&p->link, true, NULL);
	wire_out_done(&w);
}

void hub_refuse(struct hub *h, enum refusal why, int code, const char *text)
{
	struct member *m = h->member;

	if (h->over)
		return;
	h->over = true;
	(void)uv_timer_stop(&h->clock);
	for (struct caller *p = h->all; p; p = p->next)
		if (!p->told)
			refuse_one(p, why, text);
	m->on->failed(m->owner, code, text);
}

static void contradict(struct hub *h, const struct text *t)
{
	hub_refuse(h, REFUSED_CONTRADICTION, -EINVAL, text_string(t));
}

/* The name by which users know a peer: its host's, and where it comes from. */
static void add_peer(struct text *t, const struct caller *p)
{
	text_add_shown(t, p->about.name, strlen(p->about.name));
	text_printf(t, " (%s)", link_peer_text(&p->link));
}

/* A node under a rank that is taken: its own launcher again, whose first connection has not ended
 * yet, or a second one. */
static bool replaces(const struct caller *p, const struct caller *old)
{
	return old && strcmp(p->about.name, old->about.name) == 0 &&
		uv_hrtime() - old->link.heard_ns > BROUGHT_BACK_NS;
}

static void leave_place(struct hub *h, struct caller *p)
{
	if (!p->joined)
		return;
	p->joined = false;
	h->joined--;
	if (p->node == NODE_RANK_UNKNOWN)
		return;
	h->peers[p->node] = NULL;
	job_unjoined(&h->job, p->node);
}

static bool is_contradiction(struct hub *h, struct caller *p)
{
	const struct message_join *j = &p->about;
	const struct member_config *c = h->member->config;
	unsigned rank = j->node_rank;
	struct text t = { 0 };
	bool bad = true;

	if (j->nnodes != h->job.nnodes) {
		add_peer(&t, p);
		text_printf(&t, " says that the job has %u nodes, but %s (node 0) says %u: give all "
			"nodes the same --nnodes", j->nnodes, c->name, h->job.nnodes);
	} else if (rank != NODE_RANK_UNKNOWN &&
		(rank >= h->job.nnodes || rank == h->self ||
			(h->peers[rank] && !replaces(p, h->peers[rank])))) {
		const char *other = rank == h->self      ? c->name :
			rank < h->job.nnodes             ? h->peers[rank]->about.name :
							   NULL;

		text_printf(&t, "two launchers have node rank %u: ", rank);
		text_add_shown(&t, other ? other : "?", strlen(other ? other : "?"));
		text_add(&t, " and ");
		add_peer(&t, p);
		text_add(&t, ": give every node a --node_rank of its own");
	} else {
		bad = false;
	}
	if (bad)
		contradict(h, &t);
	text_done(&t);
	return bad;
}

static void take_place(struct hub *h, struct caller *p, unsigned node)
{
	p->node = node;
	h->peers[node] = p;
	h->nproc[node] = p->about.nproc;
	job_joined(&h->job, node, p->about.nproc, p->about.name);
}

/* Those without a rank get what is left, in the natural order of their names: node2 before node10.
 */
static int by_name(const void *a, const void *b)
{
	const struct caller *x = *(struct caller *const *)a, *y = *(struct caller *const *)b;
	int rc = natural_compare(x->about.name, y->about.name);

	return rc ? rc : strcmp(link_peer_text(&x->link), link_peer_text(&y->link));
}

static void rank_by_name(struct hub *h)
{
	struct caller **list =
		arena_alloc(h->member->config->arena, h->job.nnodes * sizeof(struct caller *));
	unsigned count = 0, node = 0;

	for (struct caller *p = h->all; p && list; p = p->next)
		if (p->joined && p->node == NODE_RANK_UNKNOWN)
			list[count++] = p;
	if (count > 0)
		qsort(list, count, sizeof *list, by_name);
	for (unsigned i = 0; i < count; i++) {
		while (node == h->self || h->peers[node])
			node++;
		take_place(h, list[i], node);
	}
}

static void check_version(struct hub *h, const struct caller *p)
{
	struct text t = { 0 };

	if (strcmp(p->about.version, LAUNCHD_VERSION) == 0)
		return;
	add_peer(&t, p);
	text_add(&t, " runs launchd ");
	text_add_shown(&t, p->about.version, strlen(p->about.version));
	text_add(&t, ", this node " LAUNCHD_VERSION);
	say(h, true, &t);
	text_done(&t);
}

static void on_join(struct caller *p, const unsigned char *at, size_t len)
{
	struct hub *h = p->hub;

	if (p->joined || message_get_join(at, len, &p->about) < 0) {
		link_close(&p->link, false, "what it said is no message of this protocol");
		return;
	}
	if (h->begun) {
		refuse_one(p, REFUSED_RUNNING,
			"the job runs already, without this node: a node can't come back to it");
		return;
	}
	if (is_contradiction(h, p))
		return;
	if (p->about.node_rank != NODE_RANK_UNKNOWN && h->peers[p->about.node_rank]) {
		struct caller *old = h->peers[p->about.node_rank];

		leave_place(h, old);
		link_close(&old->link, false, "its node has joined anew");
	}
	check_version(h, p);
	p->joined = true;
	p->node = NODE_RANK_UNKNOWN;
	h->joined++;
	if (p->about.node_rank != NODE_RANK_UNKNOWN)
		take_place(h, p, p->about.node_rank);
	if (h->joined == h->job.nnodes) {
		rank_by_name(h);
		hub_begin(h);
	}
}

static void on_failed(struct caller *p, const unsigned char *at, size_t len)
{
	struct outcome o;

	if (message_get_failed(at, len, &o) < 0)
		return;
	if (p->link.clock.known)
		job_clock(&p->hub->job, p->node, clock_offset_ns(&p->link.clock),
			clock_error_ns(&p->link.clock, uv_hrtime()));
	hub_obey(p->hub, job_failed(&p->hub->job, p->node, &o, uv_hrtime()), NULL);
}

static void on_stop(struct caller *p, const unsigned char *at, size_t len)
{
	struct orders orders = { 0 };
	struct stop s;

	if (message_get_stop(at, len, &s) < 0)
		return;
	hub_obey(p->hub, job_asked(&p->hub->job, p->node, &s, &orders), &orders);
}

static void on_signal(struct caller *p, const unsigned char *at, size_t len)
{
	struct member *m = p->hub->member;
	int signal;

	if (message_get_signal(at, len, &signal) < 0)
		return;
	hub_tell(p->hub, MESSAGE_SIGNAL, at, len, p);
	m->on->forward(m->owner, signal);
}

static void on_outcomes(struct caller *p, const unsigned char *at, size_t len)
{
	struct arena *a = p->hub->member->memory;
	struct outcome *list, *all;
	unsigned attempt;
	size_t count;

	if (message_get_outcomes(at, len, a, &attempt, &list, &count) < 0 ||
		attempt != p->hub->job.attempt || count > p->about.nproc - p->count)
		return;
	if (!p->outcomes)
		p->outcomes = arena_alloc(a, p->about.nproc * sizeof *all);
	if (!p->outcomes)
		return;
	memcpy(p->outcomes + p->count, list, count * sizeof *list);
	p->count += count;
}

static void on_record(struct caller *p, const unsigned char *at, size_t len)
{
	struct message_record r;

	if (message_get_record(at, len, p->hub->member->memory, &r) == 0 &&
		r.attempt == p->hub->job.attempt)
		hub_remember(p->hub,
			&(struct testimony){
				.rank = r.rank, .record = r.record, .command = r.command });
}

static void on_ended(struct caller *p, const unsigned char *at, size_t len)
{
	struct hub *h = p->hub;
	struct orders orders = { 0 };
	struct node_end end;

	if (message_get_ended(at, len, &end) < 0)
		return;
	end.outcomes = p->outcomes;
	end.count = p->count;
	if (p->link.clock.known)
		job_clock(&h->job, p->node, clock_offset_ns(&p->link.clock),
			clock_error_ns(&p->link.clock, uv_hrtime()));
	hub_obey(h,
		job_ended(&h->job, p->node, &end, uv_hrtime(), h->member->config->arena, &orders),
		&orders);
}

static void on_leave(struct caller *p)
{
	struct hub *h = p->hub;
	struct orders orders = { 0 };

	p->told = true;
	hub_obey(h, job_left(&h->job, p->node, uv_hrtime(), h->member->config->arena, &orders),
		&orders);
}

static void on_unjoined(struct caller *p, const unsigned char *at, size_t len)
{
	unsigned attempt, *ranks;
	size_t count;

	if (message_get_ranks(at, len, p->hub->member->memory, &attempt, &ranks, &count) == 0)
		hub_waiting(p->hub, p->node, attempt, ranks, count);
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct caller *p = l->owner;

	if (p->told || p->hub->over)
		return;
	if (type == MESSAGE_JOIN) {
		on_join(p, at, len);
		return;
	}
	if (!p->joined)
		return;
	switch (type) {
	case MESSAGE_FAILED:
		on_failed(p, at, len);
		return;
	case MESSAGE_STOP:
		on_stop(p, at, len);
		return;
	case MESSAGE_SIGNAL:
		on_signal(p, at, len);
		return;
	case MESSAGE_OUTCOMES:
		on_outcomes(p, at, len);
		return;
	case MESSAGE_RECORD:
		on_record(p, at, len);
		return;
	case MESSAGE_ENDED:
		on_ended(p, at, len);
		return;
	case MESSAGE_LEAVE:
		on_leave(p);
		return;
	case MESSAGE_JOINED:
		on_unjoined(p, at, len);
		return;
	default:
		return; /* a later version's: it has checked that this one can do without */
	}
}

void hub_remember(struct hub *h, const struct testimony *said)
{
	if (h->said_count == h->said_room) {
		size_t room = h->said_room ? h->said_room * 2 : 16;
		struct testimony *more = arena_alloc(h->member->memory, room * sizeof *more);

		if (!more)
			return;
		if (h->said_count)
			memcpy(more, h->said, h->said_count * sizeof *more);
		h->said = more;
		h->said_room = room;
	}
	h->said[h->said_count++] = *said;
}

static void on_ready(struct link *l)
{
	struct caller *p = l->owner;

	(void)beat_watch(&p->hub->beat, l); /* without memory: the end of its connection still tells */
}

static void unlist(struct hub *h, struct caller *p)
{
	struct caller **at = &h->all;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
}

/* When its node was there for the last time: a connection that the other end closes tells its end;
 * one that we close for silence, that it was some time after the last word. */
static uint64_t last_seen_ns(const struct link *l)
{
	return l->end == LINK_END_OURS ? l->heard_ns : uv_hrtime();
}

static void on_link_closed(struct link *l, const char *why)
{
	struct caller *p = l->owner;
	struct hub *h = p->hub;
	struct orders orders = { 0 };

	unlist(h, p);
	if (p->joined && !h->begun) {
		leave_place(h, p);
	} else if (p->joined && !p->told && !h->over) {
		h->peers[p->node] = NULL;
		hub_obey(h,
			job_lost(&h->job, p->node, last_seen_ns(l), why, uv_hrtime(),
				h->member->config->arena, &orders),
			&orders);
	} else if (p->joined && h->peers[p->node] == p) {
		h->peers[p->node] = NULL;
	}
	free(p);
	hub_handle_closed(h);
}

static struct link *on_accept(struct listener *li, const struct sockaddr *from)
{
	struct hub *h = li->owner;
	struct caller *p = h->over ? NULL : calloc(1, sizeof *p);

	(void)from;
	if (!p)
		return NULL;
	p->hub = h;
	p->next = h->all;
	h->all = p;
	h->handles++;
	p->link.owner = p;
	p->link.timeout_ms = (uint32_t)h->member->config->node_timeout_ms;
	p->link.on_ready = on_ready;
	p->link.on_message = on_message;
	p->link.on_closed = on_link_closed;
	return &p->link;
}

static void on_silent(struct beat *b, struct link *l, uint64_t silent_ms)
{
	char why[64];

	(void)b;
	(void)snprintf(why, sizeof why, "nothing was heard of it for %.1f s",
		(double)silent_ms / 1000);
	link_close(l, false, why);
}

static void on_listener_closed(struct listener *li)
{
	hub_handle_closed(li->owner);
}

static void on_beat_closed(struct beat *b)
{
	hub_handle_closed(b->owner);
}

/* Whom the job waits for; after the join timeout it does not any more. */
static void on_waiting(uv_timer_t *t)
{
	struct hub *h = t->data;
	const struct member_config *c = h->member->config;
	uint64_t now = uv_now(h->member->loop), left;
	struct text line = { 0 };
	struct wire_out w = { 0 };

	text_printf(&line, "%u of %u nodes are here: ", h->joined, h->job.nnodes);
	job_missing(&h->job, &line);
	left = h->deadline_ms > now ? h->deadline_ms - now : 0;
	if (left > 0) {
		text_add(&line, h->joined + 1 == h->job.nnodes ? " is missing" : " are missing");
		say(h, false, &line);
		message_put_text(&w, text_string(&line));
		hub_tell(h, MESSAGE_WAITING, w.at, w.len, NULL);
		wire_out_done(&w);
		(void)uv_timer_start(t, on_waiting, left < NEXT_NOTE_MS ? left : NEXT_NOTE_MS, 0);
	} else {
		text_printf(&line, " did not come within %llu s (--join-timeout)",
			(unsigned long long)(c->join_timeout_ms / 1000));
		if (c->required) {
			hub_refuse(h, REFUSED_TIMEOUT, -ETIMEDOUT, text_string(&line));
		} else {
			text_printf(&line,
				"; the job starts all the same, and will not know if %s",
				h->joined + 1 == h->job.nnodes ? "it fails" : "they fail");
			say(h, true, &line);
			rank_by_name(h);
			hub_begin(h);
		}
	}
	text_done(&line);
}

int hub_listen(struct hub *h, const struct sockaddr *const *bound, unsigned bound_count,
	unsigned port, struct failure *why)
{
	struct member *m = h->member;
	uint64_t timeout = m->config->join_timeout_ms;

	h->listener = (struct listener){ .on_accept = on_accept,
		.on_closed = on_listener_closed,
		.owner = h,
		.auth = &m->auth };
	if (listener_open(&h->listener, m->loop, bound, bound_count, (uint16_t)port, why) < 0)
		return why->code;
	h->beat = (struct beat){ .on_silent = on_silent,
		.on_closed = on_beat_closed,
		.owner = h,
		.timeout_ms = (uint32_t)m->config->node_timeout_ms };
	beat_open(&h->beat, m->loop);
	beat_hear(&h->beat, &h->listener);
	h->listening = true;
	h->handles += 2;
	h->deadline_ms = uv_now(m->loop) + timeout;
	return 0;
}

void hub_wait(struct hub *h)
{
	uint64_t timeout = h->member->config->join_timeout_ms;

	(void)uv_timer_start(
		&h->clock, on_waiting, timeout < FIRST_NOTE_MS ? timeout : FIRST_NOTE_MS, 0);
}

void hub_hang_up(struct hub *h)
{
	if (!h->listening)
		return;
	listener_close(&h->listener);
	beat_close(&h->beat);
	for (struct caller *p = h->all; p; p = p->next)
		link_close(&p->link, true, NULL);
}
