/* talk.c - see talk.h */
#include "daemon/net/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"

static void put_hello(struct link *l)
{
	unsigned char bytes[64];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);

	hello_put(&w, &l->hello);
	(void)link_put(l, FRAME_HELLO, bytes, w.len);
}

void talk_begin(struct link *l)
{
	link_goto(l, LINK_HELLO);
	if (!l->is_hub)
		put_hello(l);
}

/* From here on frames have tags, if there is a key. */
static void use_keys(struct link *l, const unsigned char peers_nonce[HANDSHAKE_NONCE])
{
	const unsigned char *ours = l->hello.nonce;
	struct handshake_keys k;

	if (!l->auth->keyed)
		return;
	handshake_derive(l->auth->sodium, l->auth->key, l->is_hub ? peers_nonce : ours,
		l->is_hub ? ours : peers_nonce, &k);
	memcpy(l->out.bytes, l->is_hub ? k.s2c : k.c2s, FRAME_KEY);
	memcpy(l->in.key.bytes, l->is_hub ? k.c2s : k.s2c, FRAME_KEY);
	memcpy(l->beat_out, l->is_hub ? k.s2c_beat : k.c2s_beat, FRAME_KEY);
	memcpy(l->beat_in, l->is_hub ? k.c2s_beat : k.s2c_beat, FRAME_KEY);
	l->out.sodium = l->in.key.sodium = l->auth->sodium;
	l->out.number = l->in.key.number = 0;
}

static void put_ready(struct link *l)
{
	struct ready r = { .timeout_ms = l->timeout_ms, .udp = l->peer_udp };
	unsigned char bytes[64];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);

	if (l->is_hub) {
		r.session = l->session;
		memcpy(r.token, l->token, sizeof r.token);
	} else if (l->resumes) {
		r.session = l->resumes->session;
		memcpy(r.token, l->resumes->token, sizeof r.token);
		r.taken = l->resumes_at = l->resumes->taken;
	}
	ready_put(&w, &r);
	(void)link_put(l, FRAME_READY, bytes, w.len);
}

static void hear_hello(struct link *l, const struct frame *f)
{
	struct hello h;

	if (hello_get(f, &h) < 0) {
		link_fail(l, LINK_END_BROKEN, "%s does not speak launchd's protocol", l->peer);
		return;
	}
	if (l->is_hub)
		put_hello(l); /* so that the peer, too, knows why it failed */
	if (l->state != LINK_HELLO)
		return;
	if (h.version != HANDSHAKE_VERSION) {
		link_fail(l, LINK_END_VERSION,
			"%s speaks version %u of the protocol, this launchd version %u: "
			"all nodes need the same launchd",
			l->peer, h.version, (unsigned)HANDSHAKE_VERSION);
	} else if (h.keyed != l->auth->keyed) {
		link_fail(l, LINK_END_KEYED, "%s has %s, this node has %s", l->peer,
			h.keyed ? "a key" : "no key", h.keyed ? "none" : "one");
	} else {
		use_keys(l, h.nonce);
		link_goto(l, LINK_PROOF);
		put_ready(l); /* before the peer's READY is checked, so that it, too, notices a
				 wrong key */
	}
}

static void put_ping(struct link *l)
{
	unsigned char bytes[8];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);

	wire_put_u64(&w, uv_hrtime());
	l->pings--;
	(void)link_put(l, FRAME_PING, bytes, w.len);
}

/* Moves the connection of `from` under l. It carries the peer's stream from in_at on, and the peer
 * wants ours from out_at on. Closes `from`. */
static void take_over(struct link *l, struct link *from, uint64_t in_at, uint64_t out_at)
{
	const unsigned char *more = from->in.at + from->in.begin;
	size_t len = from->in.end - from->in.begin;
	uv_os_fd_t fd;
	autoclose copy = -1;

	if (out_at > kept_sent(&l->kept) || kept_sent(&l->kept) - out_at > 4 * LINK_QUEUE_MAX) {
		link_fail(from, LINK_END_BROKEN, "%s wants to resume at bytes that were never sent",
			from->peer);
		return;
	}
	if (uv_fileno((uv_handle_t *)from->tcp, &fd) == 0)
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0 || link_put_under(l, copy) < 0) { /* the dialer will try again */
		link_close(from, false, "no descriptor or no memory");
		return;
	}
	(void)fd_take(&copy);
	from->moved = true;
	l->was_reset = from->was_reset;
	l->broke_ns = 0;
	l->eof = false;
	l->heard_ns = uv_hrtime();
	l->tcp_taken = in_at + len;
	link_acknowledge(l, out_at);
	if (l->state < LINK_CLOSING && link_resend(l, out_at) == 0) {
		if (l->tcp) /* else it broke at once */
			link_start_reading(l);
		(void)link_take(l, in_at, more, len);
	}
	link_close(from, false, "the connection goes on as that of an older link");
	if (l->beats.watcher)
		l->beats.watcher->on_change(l);
}

/* At the hub: the dialer's READY resumes a link. */
static void resume(struct link *l, const struct ready *r)
{
	struct link *older = l->find ? l->find(l, r->session) : NULL;
	unsigned char bytes[8];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);
	uint64_t taken;

	if (!older || older == l || memcmp(older->token, r->token, sizeof r->token) != 0) {
		link_close(l, true, "it resumes a link that is not here"); /* CLOSE is the answer */
		return;
	}
	taken = older->taken;
	wire_put_u64(&w, taken);
	if (link_put(l, FRAME_RESUME, bytes, w.len) == 0 && l->state == LINK_OPEN)
		take_over(older, l, taken, r->taken);
}

/* At the dialer: the hub's answer. */
static void hear_resume(struct link *l, const struct frame *f)
{
	struct wire_in w = wire_from(f->payload, f->len);
	uint64_t taken = wire_get_u64(&w);

	if (!wire_is_read(&w))
		link_fail(l, LINK_END_BROKEN, "%s sent a malformed RESUME", l->peer);
	else
		take_over(l->resumes, l, l->resumes_at, taken);
}

static void hear_ready(struct link *l, const struct frame *f)
{
	struct ready r;

	if (ready_get(f, &r) < 0) {
		link_fail(l, LINK_END_BROKEN, "%s does not speak launchd's protocol", l->peer);
		return;
	}
	l->peer_timeout_ms = r.timeout_ms;
	if (!l->is_hub) {
		l->session = r.session;
		l->peer_udp = r.udp;
		memcpy(l->token, r.token, sizeof l->token);
	}
	link_goto(l, LINK_OPEN);
	l->heard_ns = uv_hrtime();
	l->in.max = FRAME_MAX;
	l->taken = l->tcp_taken = l->in.end - l->in.begin; /* the stream begins after this frame */
	if (l->resumes) /* the handshake's limit stays until the hub's RESUME */
		return;
	if (l->is_hub && r.session != 0) {
		resume(l, &r);
		return;
	}
	if (l->is_hub) {
		l->pings = LINK_PINGS;
		put_ping(l); /* before the owner sends anything: see link.h */
	}
	if (l->state == LINK_OPEN)
		l->on_ready(l);
	if (!l->beats.watcher) {
		l->unkept = true;
		kept_done(&l->kept);
	}
}

static void hear_ping(struct link *l, const struct frame *f)
{
	struct wire_in in = wire_from(f->payload, f->len);
	unsigned char bytes[24];
	struct wire_out out = wire_fixed(bytes, sizeof bytes);

	wire_put_u64(&out, wire_get_u64(&in));
	wire_put_u64(&out, l->heard_ns);
	wire_put_u64(&out, uv_hrtime());
	if (wire_is_read(&in))
		(void)link_put(l, FRAME_PONG, bytes, out.len);
	else
		link_fail(l, LINK_END_BROKEN, "%s sent a malformed ping", l->peer);
}

static void hear_pong(struct link *l, const struct frame *f)
{
	struct wire_in in = wire_from(f->payload, f->len);
	uint64_t t0 = wire_get_u64(&in), t1 = wire_get_u64(&in), t2 = wire_get_u64(&in);

	if (!wire_is_read(&in)) {
		link_fail(l, LINK_END_BROKEN, "%s sent a malformed pong", l->peer);
		return;
	}
	(void)clock_add_sample(&l->clock, t0, t1, t2, l->heard_ns);
	if (l->pings > 0)
		put_ping(l);
}

static void hear_open(struct link *l, const struct frame *f)
{
	l->heard_ns = uv_hrtime();
	if (f->type >= LINK_TYPE_MIN)
		l->on_message(l, f->type, f->payload, f->len);
	else if (f->type == FRAME_BEAT) {
		if (l->beats.watcher)
			l->beats.watcher->on_beat(l, f->payload, f->len);
	} else if (f->type == FRAME_PING)
		hear_ping(l, f);
	else if (f->type == FRAME_PONG)
		hear_pong(l, f);
	else if (f->type == FRAME_RESUME && l->resumes)
		hear_resume(l, f);
	else if (f->type == FRAME_CLOSE)
		link_fail(l, LINK_END_PEERS, "%s closed the connection", l->peer);
	else
		link_fail(l, LINK_END_BROKEN, "%s sent a message of unknown type %u", l->peer,
			f->type);
}

void talk_hear(struct link *l, const struct frame *f)
{
	if (l->state == LINK_HELLO)
		hear_hello(l, f);
	else if (l->state == LINK_PROOF)
		hear_ready(l, f);
	else
		hear_open(l, f);
}

void talk_garbled(struct link *l, int rc)
{
	if (rc == -EBADMSG && l->state == LINK_PROOF)
		link_fail(l, LINK_END_KEY, "%s has a different key than this node", l->peer);
	else if (rc == -EBADMSG)
		link_fail(l, LINK_END_BROKEN, "a message from %s was altered in transit", l->peer);
	else if (l->state != LINK_OPEN)
		link_fail(l, LINK_END_BROKEN, "%s does not speak launchd's protocol", l->peer);
	else if (rc == -EMSGSIZE)
		link_fail(l, LINK_END_BROKEN, "%s sent a message of more than %d bytes", l->peer,
			FRAME_MAX);
	else
		link_fail(l, LINK_END_BROKEN, "%s sent a malformed message", l->peer);
}

static void ignore(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	(void)l, (void)type, (void)payload, (void)len;
}

/* The hub closes it on purpose if it does not know the link any more. */
static void on_fresh_closed(struct link *fresh, const char *why)
{
	struct link *l = fresh->resumes;
	enum link_end end = fresh->end;

	(void)why;
	free(fresh);
	l->fresh = NULL;
	if (l->state == LINK_OPEN && end == LINK_END_PEERS)
		link_fail(l, LINK_END_LOST, "%s considers this node lost", l->peer);
	else if (l->beats.watcher)
		l->beats.watcher->on_change(l);
	link_handle_closed(l);
}

void link_redial(struct link *l)
{
	struct failure why = { 0 };
	struct link *fresh = l->fresh ? NULL : calloc(1, sizeof *fresh);

	if (!fresh)
		return;
	*fresh = (struct link){ .on_message = ignore,
		.on_closed = on_fresh_closed,
		.timeout_ms = l->timeout_ms,
		.resumes = l };
	if (link_dial(fresh, l->limit.loop, &l->peer_address, l->auth, &why) < 0) {
		free(fresh);
		return;
	}
	l->fresh = fresh;
	l->handles++;
}
