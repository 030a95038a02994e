/* test_rescue.c - what gets through where TCP brings nothing, or has broken. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/net/rescue.h"
#include "tests/unit/daemon/net/channel.h"

enum { TIMEOUT_MS = CHANNEL_TIMEOUT_MS, TYPE = 77 };

/* Each message is as long as its number says, and of that number. */
static const size_t lens[] = { 3, 0, 159, 161, 300, 5119, 5121, 20000, 1 };

enum { MESSAGES = sizeof lens / sizeof *lens };

static void on_message(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	struct end *e = l->owner;
	unsigned n = e->messages % MESSAGES;

	assert_int_equal(type, TYPE);
	assert_int_equal(len, lens[n]);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(payload[i], (unsigned char)(n + i));
	e->messages++;
	e->bytes += len;
}

static void say_all(struct end *e)
{
	unsigned char payload[20000];

	for (unsigned n = 0; n < MESSAGES; n++) {
		for (size_t i = 0; i < lens[n]; i++)
			payload[i] = (unsigned char)(n + i);
		assert_int_equal(link_send(&e->link, TYPE, payload, lens[n]), 0);
	}
}

static void make(struct channel *c, const char *key)
{
	channel_make(c, key, key, on_message);
	channel_beat(c, TIMEOUT_MS);
	channel_dial(c, 0);
	channel_run_until(c, CHANNEL_READY, 1);
	channel_run_until(c, CHANNEL_PINGED, 1);
	channel_run_ms(c, 300);
}

/* Whatever TCP brings lies in the kernel. */
static void drop_tcp(struct end *e)
{
	(void)uv_read_stop((uv_stream_t *)e->link.tcp);
}

static void drop_udp(struct channel *c)
{
	for (unsigned i = 0; i < c->hub_beat.sockets; i++)
		(void)uv_udp_recv_stop(&c->hub_beat.udp[i]);
	(void)uv_udp_recv_stop(&c->dialer[0].link.udp);
}

/* Both ends of the connection get a reset. False: it is closed, or none yet. */
static bool disconnect(uv_tcp_t *tcp)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int fd;

	return uv_fileno((uv_handle_t *)tcp, &fd) == 0 &&
		connect(fd, &nowhere, sizeof nowhere) == 0;
}

static void reset(struct end *e)
{
	assert_true(disconnect(e->link.tcp));
}

static void assert_heard(const struct channel *c, unsigned times)
{
	assert_int_equal(c->hub[0].messages, times * MESSAGES);
	assert_int_equal(c->dialer[0].messages, times * MESSAGES);
	assert_int_equal(c->hub[0].closed + c->dialer[0].closed, 0);
	assert_nobody_silent(c);
}

/* Until both have heard so many rounds, or for twice the time-out. */
static void run_until_heard(struct channel *c, unsigned times)
{
	for (int i = 0; i < 2 * TIMEOUT_MS / 20 &&
		(c->hub[0].messages < times * MESSAGES || c->dialer[0].messages < times * MESSAGES);
		i++)
		channel_run_ms(c, 20);
	assert_heard(c, times);
}

static void test_pieces(void **state)
{
	struct channel c;

	make(&c, *state ? "k" : NULL);
	drop_tcp(&c.hub[0]);
	drop_tcp(&c.dialer[0]);
	say_all(&c.hub[0]);
	say_all(&c.dialer[0]);
	run_until_heard(&c, 1);
	assert_true(link_is_behind(&c.hub[0].link) && link_is_behind(&c.dialer[0].link));
	say_all(&c.hub[0]); /* now that it is known */
	say_all(&c.dialer[0]);
	run_until_heard(&c, 2);
	channel_run_ms(&c, 2 * TIMEOUT_MS);
	assert_heard(&c, 2);
	assert_int_equal(c.hub_beat.bad + c.dialer_beat.bad, 0);
	channel_done(&c);
}

/* TCP comes back with what pieces have brought: it is dropped, and TCP is trusted again. */
static void test_tcp_comes_back(void **state)
{
	uv_alloc_cb room;
	uv_read_cb read;
	struct channel c;

	(void)state;
	make(&c, "k");
	room = c.hub[0].link.tcp->alloc_cb;
	read = c.hub[0].link.tcp->read_cb;
	drop_tcp(&c.hub[0]);
	say_all(&c.hub[0]);
	say_all(&c.dialer[0]);
	run_until_heard(&c, 1);
	assert_int_equal(uv_read_start((uv_stream_t *)c.hub[0].link.tcp, room, read), 0);
	channel_run_ms(&c, 300);
	assert_heard(&c, 1);
	assert_false(link_is_behind(&c.hub[0].link) || link_is_behind(&c.dialer[0].link));
	drop_udp(&c);
	say_all(&c.hub[0]);
	say_all(&c.dialer[0]);
	run_until_heard(&c, 2);
	channel_done(&c);
}

static void on_idle(struct link *l)
{
	struct end *e = l->owner;

	assert_true(link_is_idle(l));
	channel_stop(e->channel);
}

/* Without a connection, what was said waits until the peer has acknowledged it. */
static void test_idle_without_tcp(void **state)
{
	struct channel c;
	struct link *l = &c.hub[0].link;

	(void)state;
	make(&c, "k");
	c.dialer[0].link.beats.dial_ns = UINT64_MAX; /* no fresh connection */
	reset(&c.hub[0]);
	while (l->tcp)
		channel_run_ms(&c, 1);
	l->on_idle = on_idle;
	say_all(&c.hub[0]);
	assert_false(link_is_idle(l));
	channel_run(&c); /* until it is idle */
	assert_true(link_is_idle(l));
	assert_int_equal(c.dialer[0].messages, MESSAGES);
	channel_done(&c);
}

/* Much that has come is acknowledged at once, so that the peer need not keep it until the next
 * beat; but once. */
static void test_acknowledged_at_once(void **state)
{
	enum { SLOW_MS = 60 * 60 * 1000 };
	static const unsigned char much[LINK_ACK_BYTES];
	const struct link *hub, *dialer;
	uint64_t sent, next_ns, goal;
	struct channel c;

	(void)state;
	hub = &c.hub[0].link;
	dialer = &c.dialer[0].link;
	channel_make(&c, "k", "k", channel_hear_nothing);
	channel_beat(&c, SLOW_MS);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	channel_run_until(&c, CHANNEL_PINGED, 1);
	while (dialer->beats.udp_heard_ns == 0)
		channel_run_ms(&c, 1);
	sent = hub->beats.sent;
	next_ns = c.hub_beat.next_ns;

	goal = hub->taken + 100;
	assert_int_equal(link_send(&c.dialer[0].link, TYPE, much, 100), 0);
	while (hub->taken < goal)
		channel_run_ms(&c, 1);
	hub->beats.watcher->on_change(&c.hub[0].link); /* it is looked at, for another reason */
	channel_run_ms(&c, 1);
	assert_int_equal(hub->beats.sent, sent); /* there is time */

	goal = kept_sent(&dialer->kept) + LINK_ACK_BYTES;
	assert_int_equal(link_send(&c.dialer[0].link, TYPE, much, sizeof much), 0);
	while (dialer->kept.acked < goal)
		channel_run_ms(&c, 1);
	assert_int_equal(hub->beats.sent, sent + 1);
	hub->beats.watcher->on_change(&c.hub[0].link);
	channel_run_ms(&c, 1);
	assert_int_equal(hub->beats.sent, sent + 1);
	assert_int_equal(c.hub_beat.next_ns, next_ns); /* before any beat was due */
	channel_done(&c);
}

/* Closes the dialer's link, with the most time that one has for its last words. */
static void say_farewell(struct channel *c)
{
	c->dialer[0].link.timeout_ms = LINK_HANDSHAKE_MS;
	link_close(&c->dialer[0].link, true, NULL);
	beat_close(&c->dialer_beat); /* as owners do: the link needs it to the end */
}

static void test_farewell(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	drop_tcp(&c.hub[0]);
	drop_tcp(&c.dialer[0]);
	say_all(&c.dialer[0]);
	say_farewell(&c);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].messages, MESSAGES);
	assert_int_equal(c.hub[0].link.end, LINK_END_PEERS);
	assert_string_equal(c.dialer[0].why, "closed here");
	channel_done(&c);
}

/* The connection is reset in the last moment: what was said shortly before takes the other way. */
static void test_farewell_after_reset(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	reset(&c.hub[0]);
	say_all(&c.dialer[0]);
	say_farewell(&c);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].messages, MESSAGES);
	assert_int_equal(c.hub[0].link.end, LINK_END_PEERS);
	channel_done(&c);
}

static const struct reset_row {
	const char *says;
	const char *key;
	bool udp, at_hub;
} resets[] = {
	{ "a reset at the hub", "k", true, true },
	{ "a reset at the dialer, without a key", NULL, true, false },
	{ "a reset at the hub, and no UDP", "k", false, true },
	{ "a reset at the dialer, and no UDP", "k", false, false },
	{ "a reset at the hub, no UDP, without a key", NULL, false, true },
};

/* The link goes on over a fresh connection. */
static void test_reset(void **state)
{
	const struct reset_row *row = *state;
	struct channel c;
	uint64_t session;

	make(&c, row->key);
	session = c.hub[0].link.session;
	if (!row->udp) {
		drop_udp(&c);
		channel_run_ms(&c, TIMEOUT_MS); /* beats go by TCP from now on */
	}
	for (unsigned times = 1; times <= 2; times++) {
		unsigned before = c.accepted;

		reset(row->at_hub ? &c.hub[0] : &c.dialer[0]);
		say_all(&c.hub[0]);
		say_all(&c.dialer[0]);
		run_until_heard(&c, times);
		channel_run_ms(&c, TIMEOUT_MS / 4);
		assert_int_equal(c.accepted, before + 1);
		assert_int_equal(c.hub[before].closed, 1);
		assert_non_null(c.hub[0].link.tcp);
	}
	assert_true(c.hub[0].link.session == session && c.dialer[0].link.session == session);
	assert_int_equal(c.hub[1].ready, 0);
	channel_run_ms(&c, 2 * TIMEOUT_MS);
	assert_heard(&c, 2);
	channel_done(&c);
}

static struct uncertain {
	struct channel *c;
	bool at_hub;
	unsigned turns; /* of the loop, from the fresh connection's start on, until that is reset */
} uncertain;

static void on_turn(uv_check_t *check)
{
	struct channel *c = uncertain.c;
	struct link *fresh = uncertain.at_hub ? &c->hub[1].link : c->dialer[0].link.fresh;

	if (c->accepted < 2 || !fresh || !fresh->tcp || uncertain.turns-- > 0)
		return;
	(void)disconnect(fresh->tcp);
	(void)uv_check_stop(check);
}

/* A fresh connection is reset as well, in any moment of its way to be the link's. */
static void test_reset_again(void **state)
{
	for (unsigned turns = 0; turns < 12; turns++) {
		struct channel c;
		uv_check_t check;

		make(&c, "k");
		uncertain = (struct uncertain){ &c, *state != NULL, turns };
		(void)uv_check_init(&c.loop, &check);
		(void)uv_check_start(&check, on_turn);
		uv_unref((uv_handle_t *)&check);
		reset(&c.dialer[0]);
		say_all(&c.hub[0]);
		say_all(&c.dialer[0]);
		run_until_heard(&c, 1);
		channel_run_ms(&c, TIMEOUT_MS / 4);
		say_all(&c.hub[0]);
		say_all(&c.dialer[0]);
		run_until_heard(&c, 2);
		uv_close((uv_handle_t *)&check, NULL);
		channel_done(&c);
	}
}

/* The hub has heard datagrams, and none yet that says the same of its own. What it says of them by
 * TCP must not keep the dialer from using TCP as well until it is too late. */
static void test_udp_ends_at_the_start(void **state)
{
	enum { SLOW_MS = 3 * TIMEOUT_MS };
	struct channel c;
	uint64_t longest_ns = 0;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	channel_beat(&c, SLOW_MS);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	while (c.hub[0].link.beats.udp_ns == 0)
		channel_run_ms(&c, 1);
	drop_udp(&c);
	c.hub[0].link.beats.udp_heard_ns = 0;
	for (int i = 0; i < SLOW_MS / 20; i++) {
		uint64_t silent_ns;

		channel_run_ms(&c, 20);
		silent_ns = uv_hrtime() - c.hub[0].link.heard_ns;
		longest_ns = silent_ns > longest_ns ? silent_ns : longest_ns;
	}
	assert_true(longest_ns < SLOW_MS * 10 / BEAT_PARTS * UINT64_C(1000000));
	channel_done(&c);
}

/* Messages that wait for a dead connection are those of the next one. */
static void test_silent_tcp(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	drop_udp(&c);
	channel_run_ms(&c, TIMEOUT_MS);
	drop_tcp(&c.hub[0]);
	drop_tcp(&c.dialer[0]);
	say_all(&c.hub[0]);
	say_all(&c.dialer[0]);
	run_until_heard(&c, 1);
	assert_true(c.accepted > 1);
	channel_done(&c);
}

/* The hub is gone, and its last act was a reset: dialing tells at once. */
static void test_dead_hub(void **state)
{
	bool udp = *state != NULL;
	struct channel c;
	uint64_t since;

	make(&c, "k");
	if (!udp) {
		drop_udp(&c);
		channel_run_ms(&c, TIMEOUT_MS);
	}
	listener_close(&c.listener);
	c.listener_open = false;
	link_close(&c.hub[0].link, false, NULL);
	beat_close(&c.hub_beat);
	reset(&c.dialer[0]);
	since = uv_hrtime();
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	assert_true(uv_hrtime() - since < TIMEOUT_MS / 3 * UINT64_C(1000000));
	assert_int_equal(c.dialer[0].link.end, LINK_END_LOST);
	assert_contains(c.dialer[0].why, "broke: "); /* and how, as far as it was told */
	channel_done(&c);
}

/* A peer that is gone after a reset is missed before the time-out. */
static void test_dead_dialer(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	channel_mute(&c);
	reset(&c.hub[0]);
	(void)uv_read_stop((uv_stream_t *)c.dialer[0].link.tcp); /* it knows nothing of it */
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, LINK_END_LOST);
	assert_int_equal(c.hub[0].silent, 0);
	assert_contains(c.hub[0].why, "broke: Connection reset by peer");
	channel_done(&c);
}

/* A node that asks for more beats than another one does not make that one late. */
static void test_other_timeouts(void **state)
{
	enum { SLOW_MS = 10 * TIMEOUT_MS };
	struct channel c;
	uint64_t heard_ns;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	channel_beat(&c, SLOW_MS);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	c.timeout_ms = TIMEOUT_MS;
	channel_dial(&c, 1);
	c.timeout_ms = SLOW_MS; /* the hub's, for all */
	channel_run_until(&c, CHANNEL_READY, 2);
	channel_run_ms(&c, TIMEOUT_MS);
	heard_ns = c.hub[0].link.heard_ns;
	while (c.hub[0].link.heard_ns == heard_ns)
		channel_run_ms(&c, 10);
	reset(&c.hub[0]);
	(void)uv_read_stop((uv_stream_t *)c.dialer[0].link.tcp); /* it knows nothing of it */
	channel_run_ms(&c, SLOW_MS / 6);
	assert_null(c.hub[0].link.tcp);
	assert_int_equal(c.hub[0].closed, 0);
	channel_done(&c);
}

/* The hub has given it up: it is told so when it asks. */
static void test_given_up(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	c.hub[0].link.token[0] ^= 1; /* in the place of another session */
	reset(&c.dialer[0]);
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	assert_int_equal(c.dialer[0].link.end, LINK_END_LOST);
	assert_contains(c.dialer[0].why, "considers this node lost");
	channel_done(&c);
}

/* It is heard, but what is sent to it has no way. */
static void test_stuck(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	listener_close(&c.listener); /* no fresh connections */
	c.listener_open = false;
	drop_udp(&c);
	channel_run_ms(&c, TIMEOUT_MS);
	c.hub_beat.on_silent = beat_drop;
	drop_tcp(&c.dialer[0]);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_contains(c.hub[0].why, "its heartbeats arrive, but it has received nothing for 1.");
	channel_done(&c);
}

static void test_missing(void **state)
{
	struct channel c;

	(void)state;
	make(&c, "k");
	c.hub_beat.on_silent = beat_drop;
	c.hub[0].link.beats.peer_sent += 1000; /* it has said so much more, by its beats */
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_contains(c.hub[0].why, "but none of its messages did for 1.");
	channel_done(&c);
}

static const struct forged_row {
	const char *says;
	int session, at; /* added to the right ones */
	int bit;         /* that is flipped; -1: none */
	size_t len;      /* of the bytes */
	bool good, bad;  /* it is taken, it is counted as nobody's */
} forged[] = {
	{ "the next bytes", 0, 0, -1, 24, true, false },
	{ "bytes that were there", 0, -24, -1, 24, false, false },
	{ "bytes behind a gap", 0, 8, -1, 24, false, false },
	{ "bytes of another session", 1, 0, -1, 24, false, true },
	{ "altered bytes", 0, 0, 8 * 22, 24, false, true },
	{ "an altered place", 0, 0, 8 * 12, 24, false, true },
	{ "an altered tag", 0, 0, 8 * 50, 24, false, true },
	{ "no bytes", 0, 0, -1, 0, false, true },
};

static void test_forged(void **state)
{
	const struct forged_row *row = *state;
	unsigned char d[PIECE_DATAGRAM] = { 0 }, next[FRAME_LEAD + FRAME_HEADER + FRAME_TAG];
	struct frame_key key;
	struct piece p = { 0 };
	const struct link *l;
	struct channel c;
	size_t len;
	uint64_t heard;

	make(&c, "k");
	l = &c.dialer[0].link;
	channel_mute(&c);
	channel_run_ms(&c, 50);
	heard = c.hub[0].link.heard_ns;
	key = l->out; /* a message of no length, as it would come next */
	p.bytes = frame_write(&key, TYPE, NULL, 0, next);
	p.session = l->session + (uint64_t)row->session;
	p.at = kept_sent(&l->kept) + (uint64_t)row->at;
	p.len = row->len;
	len = piece_write(&p, d);
	datagram_seal(&c.sodium, l->beat_out, d, len);
	if (row->bit >= 0)
		d[row->bit / 8] ^= 1;
	c.hub[0].messages = 1; /* that of no length is next */
	assert_int_equal(send(l->udp.io_watcher.fd, d, len + FRAME_TAG, 0), len + FRAME_TAG);
	channel_run_ms(&c, 50);
	assert_int_equal(c.hub[0].messages, row->good ? 2 : 1);
	assert_int_equal(c.hub[0].link.heard_ns > heard, row->good);
	assert_int_equal(c.hub_beat.bad, row->bad);
	channel_done(&c);
}

/* Times in intervals between beats; 0: that trouble there is not. */
static const struct trouble_row {
	const char *says;
	unsigned heard, unacked, missing, fresh; /* the last one: when the process woke up */
	int trouble;
	unsigned since;
} troubles[] = {
	{ "nothing is heard", 10, 0, 0, 0, TROUBLE_SILENT, 10 },
	{ "nothing is heard since both woke", 10, 0, 0, 15, TROUBLE_SILENT, 15 },
	{ "nothing gets through", 10, 5, 0, 0, TROUBLE_UNACKED, 5 },
	{ "... that was said too late to be told of", 10, 8, 0, 0, TROUBLE_SILENT, 10 },
	{ "... since this process woke", 10, 5, 0, 7, TROUBLE_UNACKED, 7 },
	{ "... but all of it has slept since", 10, 5, 4, 15, TROUBLE_SILENT, 15 },
	{ "bytes are missing", 10, 0, 6, 0, TROUBLE_MISSING, 6 },
	{ "... that may be on their way", 10, 0, 8, 0, TROUBLE_SILENT, 10 },
	{ "nothing gets through, then bytes are missing", 10, 5, 6, 0, TROUBLE_UNACKED, 5 },
	{ "bytes are missing, then nothing gets through", 10, 6, 5, 0, TROUBLE_MISSING, 5 },
};

static void test_trouble(void **state)
{
	const struct trouble_row *row = *state;
	const uint64_t interval = 1000;
	struct beat b = { .fresh_ns = row->fresh * interval };
	struct link l = { .heard_ns = row->heard * interval,
		.unacked_ns = row->unacked * interval };

	l.beats.interval_ns = interval;
	l.beats.missing_ns = row->missing * interval;
	l.beats.peer_sent = row->missing ? 1 : 0;
	assert_int_equal(rescue_note_trouble(&b, &l, 20 * interval), row->since * interval);
	assert_int_equal(l.beats.trouble, row->trouble);
}

TESTS(rescue)
{
	static struct suite s;
	static bool yes = true;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	suite_add(&s, "messages go in pieces by UDP", test_pieces, NULL, NULL);
	suite_add(&s, "messages go in pieces by UDP, with a key", test_pieces, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "TCP comes back", test_tcp_comes_back, NULL, NULL);
	suite_add(&s, "what was said waits for an acknowledgement", test_idle_without_tcp, NULL,
		NULL);
	suite_add(&s, "much is acknowledged at once", test_acknowledged_at_once, NULL, NULL);
	suite_add(&s, "a farewell in pieces", test_farewell, NULL, NULL);
	suite_add(&s, "a farewell right after a reset", test_farewell_after_reset, NULL, NULL);
	SUITE_ROWS(&s, test_reset, resets);
	suite_add(&s, "a fresh connection is reset at the dialer", test_reset_again, NULL, NULL);
	suite_add(&s, "a fresh connection is reset at the hub", test_reset_again, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "UDP ends before both know of it", test_udp_ends_at_the_start, NULL, NULL);
	suite_add(&s, "a connection that brings nothing, and no UDP", test_silent_tcp, NULL, NULL);
	suite_add(&s, "a reset by a hub that has died, no UDP", test_dead_hub, NULL, NULL);
	suite_add(&s, "a reset by a hub that has died", test_dead_hub, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "a reset by a dialer that has died", test_dead_dialer, NULL, NULL);
	suite_add(&s, "a reset, and another node with a shorter time-out", test_other_timeouts,
		NULL, NULL);
	suite_add(&s, "a hub that has given up", test_given_up, NULL, NULL);
	suite_add(&s, "a peer that is heard and can't hear", test_stuck, NULL, NULL);
	suite_add(&s, "a peer that is heard, but for its messages", test_missing, NULL, NULL);
	SUITE_ROWS(&s, test_forged, forged);
	SUITE_ROWS(&s, test_trouble, troubles);
	return suite_run(&s);
}
