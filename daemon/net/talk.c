/* talk.c - see talk.h */
#include "daemon/net/talk.h"

#include <errno.h>
#include <string.h>

static void put_hello(struct link *l)
{
	unsigned char bytes[64];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);

	hello_put(&w, &l->hello);
	(void)link_put(l, FRAME_HELLO, bytes, w.len);
}

void talk_begin(struct link *l)
{
	l->state = LINK_HELLO;
	if (!l->is_hub)
		put_hello(l);
}

/* From here on every frame has a tag. */
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
	l->peer_version = h.version;
	if (l->is_hub)
		put_hello(l); /* so that the peer knows, too, why we can't agree */
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
		l->state = LINK_PROOF;
		put_ready(l); /* before the peer's is looked at: it shall see a wrong key, too */
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
	l->state = LINK_OPEN;
	l->heard_ns = uv_hrtime();
	l->in.max = FRAME_MAX;
	l->taken = l->tcp_taken = l->in.end - l->in.begin; /* the stream begins behind this frame */
	if (l->resumes) /* the time for the handshake goes on until the hub says where */
		return;
	link_opened(l);
	if (l->is_hub && r.session != 0) {
		link_resume(l, &r);
		return;
	}
	if (l->is_hub) {
		l->pings = LINK_PINGS;
		put_ping(l); /* before whatever the owner says: see link.h */
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
		link_fail(l, LINK_END_BROKEN, "%s sent a ping that is none", l->peer);
}

static void hear_pong(struct link *l, const struct frame *f)
{
	struct wire_in in = wire_from(f->payload, f->len);
	uint64_t t0 = wire_get_u64(&in), t1 = wire_get_u64(&in), t2 = wire_get_u64(&in);

	if (!wire_is_read(&in)) {
		link_fail(l, LINK_END_BROKEN, "%s sent a pong that is none", l->peer);
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
		link_resumed(l, f);
	else if (f->type == FRAME_CLOSE)
		link_fail(l, LINK_END_PEERS, "%s closed the connection", l->peer);
	else
		link_fail(l, LINK_END_BROKEN, "%s sent a message of type %u, which nobody knows",
			l->peer, f->type);
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
		link_fail(l, LINK_END_KEY, "%s has another key than this node", l->peer);
	else if (rc == -EBADMSG)
		link_fail(l, LINK_END_BROKEN, "a message of %s was changed on the way", l->peer);
	else if (l->state != LINK_OPEN)
		link_fail(l, LINK_END_BROKEN, "%s does not speak launchd's protocol", l->peer);
	else if (rc == -EMSGSIZE)
		link_fail(l, LINK_END_BROKEN, "%s sent a message of more than %d bytes", l->peer,
			FRAME_MAX);
	else
		link_fail(l, LINK_END_BROKEN, "%s sent what is no message", l->peer);
}
