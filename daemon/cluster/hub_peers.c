/* hub_peers.c - the hub's connections, and what the nodes of the job say; see hub.h */
#include "daemon/cluster/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/net/wire.h"

enum {
	STRANGERS = 64,      /* more than there are nodes, that may be about to join */
	KEPT_MAX = 16 << 20, /* bytes that a node may say in an attempt, and for each worker: */
	KEPT_WORKER = 256 << 10,
};

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
		if (!hub_logs_awaits(p))
			link_close(&p->link, true, NULL);
	}
}

/* Before times of that node's clock are heard. */
static void note_clock(const struct caller *p)
{
	if (p->link.clock.known)
		job_clock(&p->hub->job, p->node, clock_offset_ns(&p->link.clock),
			clock_error_ns(&p->link.clock, uv_hrtime()));
}

static void on_failed(struct caller *p, const unsigned char *at, size_t len)
{
	struct outcome o;

	if (message_get_failed(at, len, &o) < 0)
		return;
	note_clock(p);
	hub_obey(p->hub, job_failed(&p->hub->job, p->node, &o, uv_hrtime()), NULL);
}

static void on_stop(struct caller *p, const unsigned char *at, size_t len)
{
	struct orders orders = { 0 };
	struct stop s;

	/* before the meeting is over its rank may not be known: any that is left will do */
	if (message_get_stop(at, len, &s) < 0 || hub_rank_rest(p->hub) < 0)
		return;
	note_clock(p);
	hub_obey(p->hub, job_asked(&p->hub->job, p->node, &s, &orders), &orders);
}

static void on_signal(struct caller *p, const unsigned char *at, size_t len)
{
	struct member *m = p->hub->member;
	int signal;

	if (!m->auth.keyed || message_get_signal(at, len, &signal) < 0)
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
			&(struct evidence){ .rank = r.rank,
				.record = r.record,
				.command = r.command,
				.words = r.words });
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
	note_clock(p);
	hub_obey(h,
		job_ended(&h->job, p->node, &end, uv_hrtime(), h->member->config->arena, &orders),
		&orders);
}

/* The job knows whether it is a loss; then it is told before what follows from it. */
static void tell_loss(const struct caller *p)
{
	const struct job_node *n = &p->hub->job.nodes[p->node];

	if (n->state == NODE_LOST)
		member_tell_node(p->hub->member, p->node, n->about.name, n->lost.detail);
}

static void on_leave(struct caller *p)
{
	struct hub *h = p->hub;
	struct orders orders = { 0 };
	enum order what;

	p->told = true;
	what = job_left(&h->job, p->node, uv_hrtime(), h->member->config->arena, &orders);
	tell_loss(p);
	hub_obey(h, what, &orders);
}

static void on_unjoined(struct caller *p, const unsigned char *at, size_t len)
{
	unsigned attempt, *ranks;
	size_t count;

	if (message_get_ranks(at, len, p->hub->member->memory, &attempt, &ranks, &count) == 0)
		hub_waiting(p->hub, p->node, attempt, ranks, count);
}

/* What a node says is kept until the attempt is over: it must not be without end. */
static bool keeps(struct caller *p, size_t len)
{
	p->kept_bytes += len;
	if (p->kept_bytes <= KEPT_MAX + (size_t)p->about.nproc * KEPT_WORKER)
		return true;
	link_close(&p->link, false, "it said more than a node has to say");
	return false;
}

static void hear(struct caller *p, unsigned type, const unsigned char *at, size_t len)
{
	switch (type) {
	case MESSAGE_FAILED:
		on_failed(p, at, len);
		return;
	case MESSAGE_SIGNAL:
		on_signal(p, at, len);
		return;
	case MESSAGE_OUTCOMES:
		if (keeps(p, len))
			on_outcomes(p, at, len);
		return;
	case MESSAGE_RECORD:
		if (keeps(p, len))
			on_record(p, at, len);
		return;
	case MESSAGE_ENDED:
		on_ended(p, at, len);
		return;
	case MESSAGE_LEAVE:
		on_leave(p);
		return;
	case MESSAGE_JOINED:
		if (keeps(p, len))
			on_unjoined(p, at, len);
		return;
	default:
		return; /* a later version's: it has checked that this one can do without */
	}
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct caller *p = l->owner;
	const struct hub *h = p->hub;

	if (type == MESSAGE_LOG) /* also after its node's last word, and the verdict */
		hub_hear_log(p, at, len);
	if (type == MESSAGE_LOG || p->told || h->over)
		return;
	if (type == MESSAGE_JOIN)
		hub_hear_join(p, at, len);
	else if (p->joined && type == MESSAGE_STOP)
		on_stop(p, at, len);
	else if (p->joined && h->started)
		hear(p, type, at, len);
	else if (p->joined && h->begun && type == MESSAGE_READY)
		hub_hear_ready(p);
	else if (p->joined && h->begun && type == MESSAGE_REFUSED)
		hub_hear_refusal(p, at, len);
}

void hub_remember(struct hub *h, const struct evidence *said)
{
	if (h->said_count == h->said_room) {
		size_t room = h->said_room ? h->said_room * 2 : 16;
		struct evidence *more = arena_alloc(h->member->memory, room * sizeof *more);

		if (!more)
			return;
		if (h->said_count)
			memcpy(more, h->said, h->said_count * sizeof *more);
		h->said = more;
		h->said_room = room;
	}
	h->said[h->said_count++] = *said;
}

static void say_crowded(
	struct hub *h, unsigned count, const char *what, const struct sockaddr *from)
{
	char host[ADDRESS_TEXT];
	struct text t = { 0 };

	if (h->crowded || h->over)
		return;
	h->crowded = true;
	address_host_text(from, host);
	text_printf(&t,
		"%u connections to the launchers' port have %s, the latest from %s: the oldest are "
		"dropped to let nodes in (is the port being scanned?)",
		count, what, host);
	member_say(h->member, true, text_string(&t));
	text_done(&t);
}

static void say_starved(struct hub *h)
{
	if (h->crowded || h->over)
		return;
	h->crowded = true;
	member_say(h->member, true,
		"no descriptors are left for connections to the launchers' port (ulimit -n): the "
		"oldest that have not introduced themselves are dropped to let nodes in");
}

static void on_crowded(struct listener *li, const struct sockaddr *from)
{
	if (li->starved)
		say_starved(li->owner);
	else
		say_crowded(li->owner, li->pending, "not introduced themselves", from);
}

/* Those who could join, and don't, must not keep others out either. */
static void drop_oldest_stranger(struct hub *h)
{
	struct caller *oldest = NULL;

	for (struct caller *p = h->all; p; p = p->next)
		if (p->stranger)
			oldest = p; /* the newest is the first of all */
	if (!oldest)
		return;
	oldest->stranger = false;
	h->strangers--;
	link_close(&oldest->link, false, "it had not joined when too many others came");
}

static void on_ready(struct link *l)
{
	struct caller *p = l->owner;
	struct hub *h = p->hub;

	if (h->strangers >= h->job.nnodes + STRANGERS) {
		say_crowded(h, h->strangers, "not joined the job",
			(const struct sockaddr *)&l->peer_address);
		drop_oldest_stranger(h);
	}
	p->stranger = true;
	h->strangers++;
	if (beat_watch(&h->beat, l) < 0)
		link_close(l, false, "out of memory");
}

static void unlist(struct hub *h, struct caller *p)
{
	struct caller **at = &h->all;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
}

/* A connection that the other end closes tells its end; one that broke, or that we close for
 * silence, that it was some time after the last word. */
static struct loss loss_of(const struct hub *h, const struct link *l, const char *why)
{
	uint64_t now = uv_hrtime(), due = l->heard_ns + h->beat.interval_ns;

	if (l->eof || (l->killed_by && l->broke_ns))
		return (struct loss){ l->broke_ns, l->broke_ns, why, NULL,
			l->agreed ? l->killed_by : 0 };
	if (l->broke_ns > l->heard_ns)
		due = l->broke_ns;
	else if (l->end != LINK_END_OURS)
		return (struct loss){ now, now, why, NULL, 0 };
	return (struct loss){ l->heard_ns, due < now ? due : now, why, NULL,
		l->agreed ? l->killed_by : 0 };
}

static void lose(struct caller *p, const char *why)
{
	struct hub *h = p->hub;
	struct loss loss = loss_of(h, &p->link, why);
	struct cause own;
	struct orders orders = { 0 };
	enum order what;

	if (p->link.killed_by == 0 && member_slept(&h->beat, h->self, &own))
		loss.own = &own;
	what = job_lost(&h->job, p->node, &loss, uv_hrtime(), h->member->config->arena, &orders);
	tell_loss(p);
	hub_obey(h, what, &orders);
}

/* Both ends are told that a key is wrong: it may be wrong at either. Strangers don't fill a log.
 * While PMIx is not done here, a launcher without a key is one that has no PMIx: it comes again. */
static void say_turned_away(struct caller *p, const char *why)
{
	struct hub *h = p->hub;
	unsigned bit = 1U << p->link.end;
	struct text t = { 0 };

	if (h->over || (h->turned_away & bit) != 0 ||
		(!h->begun && !uv_is_active((const uv_handle_t *)&h->clock)) ||
		(p->link.end != LINK_END_VERSION && p->link.end != LINK_END_KEYED &&
			p->link.end != LINK_END_KEY))
		return;
	h->turned_away |= bit;
	text_printf(&t, "a launcher was turned away: %s", why);
	member_say(h->member, true, text_string(&t));
	text_done(&t);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct caller *p = l->owner;
	struct hub *h = p->hub;

	unlist(h, p);
	h->strangers -= p->stranger;
	if (p->joined && p->node != NODE_RANK_UNKNOWN && h->begun)
		h->peers[p->node] = NULL;
	if (!p->joined)
		say_turned_away(p, why);
	else if (!h->over && !h->started)
		hub_lose_early(p, why);
	else if (!h->over && !p->told)
		lose(p, why);
	free(p);
	hub_logs_lost(h);
	hub_handle_closed(h);
}

static struct link *find(struct link *l, uint64_t session)
{
	const struct caller *p = l->owner;

	return beat_find(&p->hub->beat, session);
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
	p->link.find = find;
	p->link.on_ready = on_ready;
	p->link.on_message = on_message;
	p->link.on_closed = on_link_closed;
	return &p->link;
}

static void on_listener_closed(struct listener *li)
{
	hub_handle_closed(li->owner);
}

static void on_beat_closed(struct beat *b)
{
	hub_handle_closed(b->owner);
}

int hub_listen(struct hub *h, const struct sockaddr *const *bound, unsigned bound_count,
	unsigned port, struct failure *why)
{
	struct member *m = h->member;

	h->listener = (struct listener){ .on_accept = on_accept,
		.on_closed = on_listener_closed,
		.on_crowded = on_crowded,
		.owner = h,
		.auth = &m->auth };
	if (listener_open(&h->listener, m->loop, bound, bound_count, (uint16_t)port, why) < 0)
		return why->code;
	h->beat = (struct beat){ .on_silent = beat_drop,
		.on_closed = on_beat_closed,
		.owner = h,
		.obituary = m->config->obituary,
		.timeout_ms = (uint32_t)m->config->node_timeout_ms };
	beat_open(&h->beat, m->loop);
	beat_hear(&h->beat, &h->listener);
	h->listening = true;
	h->handles += 2;
	return 0;
}

void hub_hurry(struct hub *h)
{
	for (struct caller *p = h->all; p; p = p->next)
		link_close(&p->link, false, NULL);
}

void hub_hang_up(struct hub *h)
{
	if (!h->listening)
		return;
	listener_close(&h->listener);
	beat_close(&h->beat);
	for (struct caller *p = h->all; p; p = p->next)
		if (!hub_logs_awaits(p))
			link_close(&p->link, true, NULL);
}
