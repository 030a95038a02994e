/* hub.c - the hub's life, its connections, and what the nodes of the job say; see hub.h */
#include "daemon/cluster/hub.h"

#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "daemon/store/store.h"

enum {
	STRANGERS = 64,      /* beyond the number of nodes, which may all be about to join */
	KEPT_MAX = 16 << 20, /* bytes that a node may send per attempt, plus for each worker: */
	KEPT_WORKER = 256 << 10,
};

/* --- what nodes say --- */

/* Called before times of that node's clock are used. */
static void note_clock(const struct caller *p)
{
	if (p->link.clock.known)
		job_clock(&p->hub->job, p->node, clock_offset_ns(&p->link.clock),
			clock_error_ns(&p->link.clock, uv_hrtime()));
}

static void on_failed(struct caller *p, const struct message *m)
{
	note_clock(p);
	hub_obey(p->hub, job_failed(&p->hub->job, p->node, &m->failed, uv_hrtime()));
}

static void ask(struct hub *h, unsigned node, const struct stop *s)
{
	hub_obey(h, job_asked(&h->job, node, s));
	if (s->cause.kind == CAUSE_RESTART && h->state < HUB_OVER &&
		h->job.restart.kind == CAUSE_NONE)
		party_say(h->party, NOTE_WARNING, "a restart was requested, but %s",
			h->job.state == JOB_RUNNING || h->job.state == JOB_STOPPING ?
				"a node has ended and left" :
				"no attempt is running");
}

static void on_stop(struct caller *p, const struct message *m)
{
	/* during the meeting its rank may not be known: any free one will do */
	if (hub_rank_rest(p->hub) < 0)
		return;
	note_clock(p);
	ask(p->hub, p->node, &m->stop);
}

static void on_signal(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;

	if (!party->auth.keyed)
		return;
	hub_tell(p->hub, m, p);
	party->on->forward(party->owner, m->signal);
}

static void on_outcomes(struct caller *p, const struct message *m)
{
	const struct message_outcomes *o = &m->outcomes;
	struct arena *a = p->hub->party->memory;

	if (o->attempt != p->hub->job.attempt || o->count > p->about.nproc - p->count)
		return;
	if (!p->outcomes)
		p->outcomes = arena_alloc(a, p->about.nproc * sizeof *p->outcomes);
	if (!p->outcomes)
		return;
	memcpy(p->outcomes + p->count, o->list, o->count * sizeof *o->list);
	p->count += o->count;
}

static void on_record(struct caller *p, const struct message *m)
{
	const struct message_record *r = &m->record;

	if (r->attempt == p->hub->job.attempt)
		hub_remember(p->hub,
			&(struct evidence){ .rank = r->rank,
				.record = r->record,
				.command = r->command,
				.words = r->words });
}

static void on_ended(struct caller *p, const struct message *m)
{
	struct hub *h = p->hub;
	struct node_end end = m->ended;

	end.outcomes = p->outcomes;
	end.count = p->count;
	note_clock(p);
	hub_obey(h, job_ended(&h->job, p->node, &end, uv_hrtime()));
}

/* job.c decides whether it is a loss; if so, that is told before its consequences. */
static void tell_loss(const struct caller *p)
{
	const struct job_node *n = &p->hub->job.nodes[p->node];

	if (n->state == NODE_LOST)
		party_tell_node(p->hub->party, p->node, n->about.name, n->lost.detail);
}

static void on_leave(struct caller *p, const struct message *m)
{
	struct hub *h = p->hub;
	enum order what;

	(void)m;
	p->told = true;
	what = job_left(&h->job, p->node, uv_hrtime());
	tell_loss(p);
	hub_obey(h, what);
}

static void on_unjoined(struct caller *p, const struct message *m)
{
	hub_waiting(p->hub, p->node, &m->joined);
}

static void on_status(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;

	if (party->on->status)
		party->on->status(party->owner, p->node, &m->status);
}

static void on_look(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;

	if (m->look.attempt == p->hub->job.attempt && party->on->look)
		party->on->look(party->owner, p->node, &m->look);
}

static void on_bundle(struct caller *p, const struct message *m)
{
	const struct party *party = p->hub->party;

	if (m->bundle.attempt == p->hub->job.attempt && party->on->bundle)
		party->on->bundle(party->owner, p->node, &m->bundle);
}

void hub_step(struct hub *h, unsigned node, uint64_t step, uint64_t at_ns)
{
	const struct party *party = h->party;

	if (job_step(&h->job, node, step, at_ns) && party->on->step)
		party->on->step(party->owner, step, h->job.steps.at_ns);
}

static void on_step(struct caller *p, const struct message *m)
{
	if (m->step.attempt == p->hub->job.attempt)
		hub_step(p->hub, p->node, m->step.step, m->step.at_ns);
}

enum {
	IN_MEETING = 1 << HUB_MEETING,
	IN_PREPARING = 1 << HUB_PREPARING,
	IN_RUNNING = 1 << HUB_RUNNING,
	BEFORE_OVER = IN_MEETING | IN_PREPARING | IN_RUNNING,
};

/* What is heard, and in which states. Other types are of a later version, which knows that this one
 * can do without. */
static const struct {
	void (*hear)(struct caller *p, const struct message *m);
	unsigned states; /* a bit for each */
	bool kept;       /* until the attempt is over */
} heard[MESSAGE_END] = {
	[MESSAGE_JOIN] = { hub_hear_join, BEFORE_OVER | 1 << HUB_OVER, false },
	[MESSAGE_READY] = { hub_hear_ready, IN_PREPARING, false },
	[MESSAGE_REFUSED] = { hub_hear_refusal, IN_PREPARING, false },
	[MESSAGE_STOP] = { on_stop, BEFORE_OVER, false },
	[MESSAGE_FAILED] = { on_failed, IN_RUNNING, false },
	[MESSAGE_SIGNAL] = { on_signal, IN_RUNNING, false },
	[MESSAGE_OUTCOMES] = { on_outcomes, IN_RUNNING, true },
	[MESSAGE_RECORD] = { on_record, IN_RUNNING, true },
	[MESSAGE_ENDED] = { on_ended, IN_RUNNING, false },
	[MESSAGE_LEAVE] = { on_leave, IN_RUNNING, false },
	[MESSAGE_JOINED] = { on_unjoined, IN_RUNNING, true },
	[MESSAGE_STATUS] = { on_status, IN_PREPARING | IN_RUNNING, false },
	[MESSAGE_LOOK] = { on_look, IN_RUNNING, false },
	[MESSAGE_BUNDLE] = { on_bundle, IN_RUNNING, false },
	[MESSAGE_STEP] = { on_step, IN_RUNNING, false },
	[MESSAGE_CHECK] = { hub_hear_check, IN_RUNNING, true },
	/* also after the node's last message, and after the verdict */
	[MESSAGE_LOG] = { hub_lines_hear, ~0U, false },
};

static bool may_say(const struct caller *p, unsigned type)
{
	if (type >= MESSAGE_END || !(heard[type].states & 1U << p->hub->state))
		return false;
	return type == MESSAGE_LOG || (!p->told && (p->joined || type == MESSAGE_JOIN));
}

/* What a node sends is kept until the attempt is over, so it needs a bound. */
static bool keeps(struct caller *p, size_t len)
{
	p->kept_bytes += len;
	return p->kept_bytes <= KEPT_MAX + (size_t)p->about.nproc * KEPT_WORKER;
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct caller *p = l->owner;
	struct message m;

	if (!may_say(p, type))
		return;
	if (heard[type].kept && !keeps(p, len))
		link_close(l, false, "it sent more data than a node may");
	else if (message_get(type, at, len, p->hub->party->memory, &m) == 0)
		heard[type].hear(p, &m);
	else if (type == MESSAGE_JOIN || type == MESSAGE_LOG)
		link_close(l, false, "it sent a malformed message");
}

/* --- connections --- */

static void say_crowded(struct hub *h, unsigned count, const char *what, const struct address *from)
{
	char host[ADDRESS_TEXT];

	if (h->crowded || h->state >= HUB_OVER)
		return;
	h->crowded = true;
	address_host_text(from, host);
	party_say(h->party, NOTE_WARNING,
		"%u connections to the launchers' port have %s, the latest from %s: the oldest are "
		"dropped to let nodes in (is the port being scanned?)",
		count, what, host);
}

static void say_starved(struct hub *h)
{
	if (h->crowded || h->state >= HUB_OVER)
		return;
	h->crowded = true;
	party_say(h->party, NOTE_WARNING,
		"out of file descriptors for connections to the launchers' port (ulimit -n): the "
		"oldest that have not completed the handshake are dropped to let nodes in");
}

static void on_crowded(struct listener *li, const struct address *from)
{
	if (li->starved)
		say_starved(li->owner);
	else
		say_crowded(li->owner, li->pending, "not completed the handshake", from);
}

/* Peers that passed the handshake and don't join must not keep others out either. */
static void drop_oldest_stranger(struct hub *h)
{
	struct caller *oldest = NULL;

	for (struct caller *p = h->all; p; p = p->next)
		if (p->stranger)
			oldest = p; /* the list begins with the newest */
	if (!oldest)
		return;
	oldest->stranger = false;
	h->strangers--;
	link_close(&oldest->link, false, "it had not joined when too many others connected");
}

static void on_ready(struct link *l)
{
	struct caller *p = l->owner;
	struct hub *h = p->hub;

	if (h->strangers >= h->job.nnodes + STRANGERS) {
		say_crowded(h, h->strangers, "not joined the job", &l->peer_address);
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

/* An EOF tells when the peer ended. A connection that broke, or that we closed for silence, only
 * tells that it was some time after the last message. */
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
	enum order what;

	if (p->link.killed_by == 0 && party_slept(&h->beat, h->self, &own))
		loss.own = &own;
	what = job_lost(&h->job, p->node, &loss, uv_hrtime());
	tell_loss(p);
	hub_obey(h, what);
}

static bool is_pmix_at_work(const struct hub *h)
{
	return h->state == HUB_MEETING && !uv_is_active((const uv_handle_t *)&h->clock);
}

/* Both ends report a wrong key, as it may be wrong at either, but strangers must not fill the log.
 * A launcher that came while PMIx was at work here, where the key is PMIx's, is one without PMIx:
 * it will come again. */
static void say_turned_away(struct caller *p, const char *why)
{
	struct hub *h = p->hub;
	unsigned bit = 1U << p->link.end;

	if (h->state >= HUB_OVER || (h->turned_away & bit) != 0 || p->early ||
		(p->link.end != LINK_END_VERSION && p->link.end != LINK_END_KEYED &&
			p->link.end != LINK_END_KEY))
		return;
	h->turned_away |= bit;
	party_say(h->party, NOTE_WARNING, "a launcher was turned away: %s", why);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct caller *p = l->owner;
	struct hub *h = p->hub;

	unlist(h, p);
	h->strangers -= p->stranger;
	if (p->joined && p->node != NODE_RANK_UNKNOWN && h->state != HUB_MEETING)
		h->peers[p->node] = NULL;
	if (!p->joined)
		say_turned_away(p, why);
	else if (h->state < HUB_RUNNING)
		hub_lose_early(p, why);
	else if (h->state == HUB_RUNNING && !p->told)
		lose(p, why);
	free(p);
	hub_begin_if_complete(h); /* its connection may have resumed a broken link */
	hub_lines_lost(h);
	hub_handle_closed(h);
}

static struct link *find(struct link *l, uint64_t session)
{
	const struct caller *p = l->owner;

	return beat_find(&p->hub->beat, session);
}

static struct link *on_accept(struct listener *li)
{
	struct hub *h = li->owner;
	bool over = h->state >= HUB_OVER && !h->refusal.code;
	struct caller *p = over ? NULL : calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->hub = h;
	p->early = is_pmix_at_work(h);
	p->next = h->all;
	h->all = p;
	h->handles++;
	p->link.owner = p;
	p->link.timeout_ms = (uint32_t)h->party->config->node_timeout_ms;
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

static int open_port(
	struct hub *h, const struct addresses *bound, unsigned port, struct failure *why)
{
	const struct party *p = h->party;

	h->listener = (struct listener){ .on_accept = on_accept,
		.on_closed = on_listener_closed,
		.on_crowded = on_crowded,
		.owner = h,
		.auth = &p->auth };
	if (listener_open(&h->listener, p->loop, bound, (uint16_t)port, why) < 0)
		return why->code;
	h->beat = (struct beat){ .on_silent = beat_drop,
		.on_closed = on_beat_closed,
		.owner = h,
		.death_notice = p->config->death_notice,
		.timeout_ms = (uint32_t)p->config->node_timeout_ms };
	beat_open(&h->beat, p->loop);
	beat_hear(&h->beat, &h->listener);
	h->handles += 2;
	return 0;
}

/* --- its life, and what happens on this node --- */

static void on_alone(uv_timer_t *t)
{
	hub_begin(t->data);
}

int hub_start(struct hub *h, struct party *p, const struct addresses *bound, unsigned port,
	struct failure *why)
{
	const struct member_config *c = p->config;
	unsigned nnodes = c->way == MEET_NOBODY ? 1 : c->nnodes;

	*h = (struct hub){ .party = p, .port_fd = -1 };
	h->peers = arena_alloc(c->arena, nnodes * sizeof(struct caller *));
	h->nproc = arena_alloc(c->arena, c->nnodes * sizeof *h->nproc);
	h->told = arena_alloc(c->arena, nnodes * sizeof *h->told);
	h->late = arena_alloc(c->arena, nnodes * sizeof *h->late);
	if (!h->peers || !h->nproc || !h->told || !h->late ||
		job_init(&h->job, nnodes, &c->policy, c->grace_ms, c->arena) < 0)
		return failure_oom(why);
	h->job.find_site = hub_find_site;
	h->job.owner = h;
	if (nnodes > 1 && open_port(h, bound, port, why) < 0)
		return why->code;
	(void)uv_timer_init(p->loop, &h->clock); /* can't fail */
	h->clock.data = h;
	h->handles++;
	p->parts++;
	h->nproc[c->way == MEET_NOBODY ? c->node_rank : h->self] = c->nproc;
	for (unsigned i = 0; i < nnodes; i++)
		h->told[i] = (struct peer){ .role = c->peer.role, .leads = true };
	h->told[nnodes == 1 ? 0 : h->self] = c->peer;
	h->joined = 1;
	job_joined(&h->job, h->self, c->nproc, c->name);
	if (nnodes == 1)
		(void)uv_timer_start(&h->clock, on_alone, 0, 0);
	else if (c->way == MEET_STATIC)
		hub_wait(h);
	return 0;
}

unsigned hub_port(const struct hub *h)
{
	return h->listener.port;
}

bool hub_has_session(const struct hub *h, uint64_t session)
{
	for (const struct caller *p = h->all; p; p = p->next)
		if (p->link.session == session)
			return true;
	return false;
}

void hub_failed(struct hub *h, const struct outcome *o)
{
	/* this node's workers are being stopped already: the pool waits for no order */
	if (job_failed(&h->job, h->self, o, uv_hrtime()) == ORDER_STOP)
		hub_tell_stop(h);
}

void hub_asked(struct hub *h, const struct stop *s)
{
	if (h->state < HUB_OVER)
		ask(h, h->self, s);
	hub_refuse_no_more(h);
}

void hub_checked(struct hub *h)
{
	if (h->state != HUB_RUNNING)
		return;
	hub_tell(h, &(struct message){ MESSAGE_CHECKED, .checked = h->job.attempt }, NULL);
}

void hub_ended(struct hub *h, const struct node_end *end, const struct evidence *list, size_t count)
{
	if (h->state >= HUB_OVER)
		return;
	for (size_t i = 0; i < count; i++)
		hub_remember(h, &list[i]);
	hub_obey(h, job_ended(&h->job, h->self, end, uv_hrtime()));
}

size_t hub_query(struct hub *h, unsigned query, bool *ret)
{
	const struct message m = { MESSAGE_QUERY, .query = query };
	size_t count = 0;

	if (h->state != HUB_PREPARING && h->state != HUB_RUNNING)
		return 0;
	hub_tell(h, &m, NULL);
	for (unsigned i = 0; i < h->job.nnodes; i++) {
		ret[i] = h->peers[i] && !h->peers[i]->told;
		count += ret[i];
	}
	return count;
}

static void on_store_closed(struct store *s)
{
	hub_handle_closed(s->config.owner);
}

static void on_clock_closed(uv_handle_t *handle)
{
	hub_handle_closed(handle->data);
}

void hub_close(struct hub *h)
{
	if (h->state == HUB_CLOSED)
		return;
	hub_goto(h, HUB_CLOSED); /* what happens from now on is not reported */
	uv_close((uv_handle_t *)&h->clock, on_clock_closed);
	if (h->store)
		store_close(h->store, on_store_closed);
	listener_close(&h->listener);
	beat_close(&h->beat);
	for (struct caller *p = h->all; p; p = p->next)
		if (!hub_lines_await(p))
			link_close(&p->link, true, NULL);
}

void hub_hurry(struct hub *h)
{
	for (struct caller *p = h->all; p; p = p->next)
		link_close(&p->link, false, NULL);
}
