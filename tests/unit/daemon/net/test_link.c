/* test_link.c - both ends of links, and whoever else may dial, over loopback. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/net/channel.h"

static const unsigned char hello_unkeyed[] = "\x18\0\0\0\1\0\0\0LNCHD\12\0\0"
					     "0123456789abcdef";

enum { HELLO = sizeof hello_unkeyed - 1 };

static void on_message(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	struct end *e = l->owner;

	e->messages++;
	e->type = type;
	e->bytes += len;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(payload[i], type);
	if (e->on_message)
		e->on_message(e);
}

static void send_filled(struct link *l, unsigned type, size_t len)
{
	unsigned char *payload = malloc(len + 1);

	assert_non_null(payload);
	memset(payload, (int)type, len);
	(void)link_send(l, type, payload, len);
	free(payload);
}

static const struct pair_row {
	const char *says;
	const char *hub_key, *dialer_key;  /* NULL: none */
	enum link_end hub_end, dialer_end; /* NONE: they get along */
	const char *hub_why, *dialer_why;
} pairs[] = {
	{ "both without a key", NULL, NULL, LINK_END_NONE, LINK_END_NONE, "", "" },
	{ "both with the same key", "k", "k", LINK_END_NONE, LINK_END_NONE, "", "" },
	{ "different keys: both ends say so", "k", "l", LINK_END_KEY, LINK_END_KEY,
		"has a different key than this node", "has a different key than this node" },
	{ "a key at the hub only", "k", NULL, LINK_END_KEYED, LINK_END_KEYED,
		"has no key, this node has one", "has a key, this node has none" },
	{ "a key at the dialer only", NULL, "k", LINK_END_KEYED, LINK_END_KEYED,
		"has a key, this node has none", "has no key, this node has one" },
};

static void test_pair(void **state)
{
	const struct pair_row *row = *state;
	bool good = row->hub_end == LINK_END_NONE;
	struct channel c;

	channel_make(&c, row->hub_key, row->dialer_key, on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, good ? CHANNEL_READY : CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, row->hub_end);
	assert_int_equal(c.dialer[0].link.end, row->dialer_end);
	assert_int_equal(c.hub[0].ready, good);
	assert_int_equal(c.dialer[0].ready, good);
	if (good) {
		assert_true(c.hub[0].link.session == c.dialer[0].link.session);
		assert_true(c.listener.pending == 0);
	} else {
		assert_contains(c.hub[0].why, row->hub_why);
		assert_contains(c.dialer[0].why, row->dialer_why);
	}
	channel_done(&c);
}

static void answer(struct end *e)
{
	if (e->link.is_hub)
		send_filled(&e->link, 77, 70000);
	else
		channel_stop(e->channel);
}

static void test_messages(void **state)
{
	static const size_t lens[] = { 0, 1, 5000, FRAME_MAX };
	struct channel c;

	channel_make(&c, *state ? "k" : NULL, *state ? "k" : NULL, on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	c.hub[0].on_message = c.dialer[0].on_message = answer;
	for (size_t i = 0; i < 4; i++) {
		send_filled(&c.dialer[0].link, 200, lens[i]);
		channel_run(&c);
		assert_int_equal(c.hub[0].messages, i + 1);
		assert_int_equal(c.hub[0].type, 200);
		assert_int_equal(c.dialer[0].messages, i + 1);
		assert_int_equal(c.dialer[0].type, 77);
	}
	assert_int_equal(c.hub[0].bytes, 5001 + FRAME_MAX);
	assert_null(c.hub[0].link.in.at); /* idle links hold no memory */
	channel_done(&c);
}

static void on_fourth(struct end *e)
{
	if (e->messages == 4)
		link_close(&e->link, true, "enough");
}

/* What was sent before a flushing close arrives, and the other end knows that it was on purpose. */
static void test_flush(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	for (int i = 0; i < 3; i++)
		send_filled(&c.dialer[0].link, 100, FRAME_MAX);
	send_filled(&c.hub[0].link, 50, 9); /* unread at the dialer when it closes */
	link_close(&c.dialer[0].link, true, NULL);
	assert_int_equal(link_send(&c.dialer[0].link, 100, "x", 1), -ENOTCONN);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].bytes, 3 * FRAME_MAX);
	assert_int_equal(c.hub[0].link.end, LINK_END_PEERS);
	assert_contains(c.hub[0].why, "closed the connection");
	assert_int_equal(c.dialer[0].link.end, LINK_END_OURS);
	assert_string_equal(c.dialer[0].why, "closed here");
	assert_int_equal(c.dialer[0].messages, 0);
	channel_done(&c);
}

static void test_both_flush(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, NULL, NULL, on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	link_close(&c.dialer[0].link, true, NULL);
	link_close(&c.hub[0].link, true, NULL);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, LINK_END_OURS);
	assert_int_equal(c.dialer[0].link.end, LINK_END_OURS);
	channel_done(&c);
}

static void test_close_in_callback(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	c.hub[0].on_message = on_fourth;
	for (int i = 0; i < 9; i++)
		send_filled(&c.dialer[0].link, 100, 10);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].messages, 4); /* nothing is told after the end */
	assert_string_equal(c.hub[0].why, "enough");
	channel_done(&c);
}

static void test_lost(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	link_close(&c.dialer[0].link, false, "killed");
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, LINK_END_LOST);
	assert_contains(c.hub[0].why, "the connection to ");
	assert_contains(c.hub[0].why, c.hub[0].link.peer);
	channel_done(&c);
}

/* A peer that does not read is cut off when LINK_QUEUE_MAX is behind, not before. */
static void test_full(void **state)
{
	struct channel c;
	size_t sent = 0;

	(void)state;
	channel_make(&c, NULL, NULL, on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	while (c.hub[0].link.state == LINK_OPEN && sent < 64) {
		send_filled(&c.hub[0].link, 100, 1 << 19);
		sent++;
	}
	assert_in_range(sent, LINK_QUEUE_MAX >> 19, 63);
	assert_int_equal(link_send(&c.hub[0].link, 100, "x", 1), -ENOTCONN);
	assert_int_equal(c.hub[0].link.end, LINK_END_FULL);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_contains(c.hub[0].why, "has not read");
	assert_int_equal(c.dialer[0].link.end, LINK_END_LOST);
	channel_done(&c);
}

static void test_refused(void **state)
{
	struct channel c;
	struct failure why = { 0 };

	(void)state;
	channel_make(&c, NULL, NULL, on_message);
	c.listener_open = false;
	listener_close(&c.listener); /* its port is nobody's now */
	end_make(&c, &c.dialer[0]);
	assert_int_equal(
		link_dial(&c.dialer[0].link, &c.loop, &c.address, &c.dialer_auth, &why), 0);
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	assert_int_equal(c.dialer[0].link.end, LINK_END_UNREACHED);
	assert_contains(c.dialer[0].why, "can't be reached: Connection refused");
	end_make(&c, &c.dialer[0]); /* dialing again is dialing for the first time */
	assert_int_equal(
		link_dial(&c.dialer[0].link, &c.loop, &c.address, &c.dialer_auth, &why), 0);
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	channel_done(&c);
}

static const struct raw_row {
	const char *says;
	const char *bytes;
	size_t len;
	bool shut; /* and then no more */
	enum link_end end;
	const char *why;
} raws[] = {
	{ "somebody dials and hangs up", "", 0, true, LINK_END_MUTE,
		"closed the connection during the handshake" },
	{ "somebody speaks HTTP", "GET / HTTP/1.1\r\n\r\n", 18, false, LINK_END_BROKEN,
		"does not speak launchd's protocol" },
	{ "a HELLO that is cut off", "\x18\0\0\0\1\0\0\0LNC", 11, true, LINK_END_MUTE,
		"closed the connection during the handshake" },
	{ "another program of this format",
		"\x18\0\0\0\1\0\0\0LNCHX\1\0\0"
		"0123456789abcdef",
		32, false, LINK_END_BROKEN, "does not speak launchd's protocol" },
	{ "another version",
		"\x18\0\0\0\1\0\0\0LNCHD\13\0\0"
		"0123456789abcdef",
		32, false, LINK_END_VERSION,
		"speaks version 11 of the protocol, this launchd version 10" },
	{ "a message before HELLO", "\1\0\0\0\20\0\0\0x", 9, false, LINK_END_BROKEN,
		"does not speak launchd's protocol" },
	{ "a payload too long for a handshake", "\1\20\0\0\1\0\0\0", 8, false, LINK_END_BROKEN,
		"does not speak launchd's protocol" },
	{ "HELLO, then a message",
		"\x18\0\0\0\1\0\0\0LNCHD\12\0\0"
		"0123456789abcdef"
		"\0\0\0\0\20\0\0\0",
		40, false, LINK_END_BROKEN, "does not speak launchd's protocol" },
};

static int dial_raw_from(const struct channel *c, uint32_t host)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(fd, &c->address.any, address_size(&c->address)), 0);
	return fd;
}

static int dial_raw(const struct channel *c)
{
	return dial_raw_from(c, 0);
}

static void test_raw(void **state)
{
	const struct raw_row *row = *state;
	struct channel c;
	int fd;

	channel_make(&c, NULL, NULL, on_message);
	fd = dial_raw(&c);
	assert_int_equal(write(fd, row->bytes, row->len), row->len);
	if (row->shut)
		(void)shutdown(fd, SHUT_WR);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, row->end);
	assert_contains(c.hub[0].why, row->why);
	assert_int_equal(c.hub[0].ready, 0);
	assert_int_equal(c.listener.pending, 0);
	(void)close(fd);
	channel_done(&c);
}

/* The hub's answer tells the dialer which version it has. */
static void test_version_is_told(void **state)
{
	unsigned char answer_bytes[64];
	struct channel c;
	int fd;

	(void)state;
	channel_make(&c, NULL, NULL, on_message);
	fd = dial_raw(&c);
	assert_int_equal(write(fd, raws[4].bytes, raws[4].len), raws[4].len);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(recv(fd, answer_bytes, sizeof answer_bytes, 0), HELLO);
	assert_memory_equal(answer_bytes, hello_unkeyed, 15);
	assert_int_equal(recv(fd, answer_bytes, 1, 0), 0);
	(void)close(fd);
	channel_done(&c);
}

static void on_write_next(uv_timer_t *t)
{
	struct channel *c = t->data;

	if (c->written < c->script_len)
		assert_int_equal(write(c->raw, c->script + c->written++, 1), 1);
	else
		(void)uv_timer_stop(t);
}

/* A whole conversation, a byte in each millisecond. */
static void test_split(void **state)
{
	unsigned char script[HELLO + 8 + 37 + 8 + 3];
	struct channel c;

	(void)state;
	memset(script, 0, sizeof script);
	memcpy(script, hello_unkeyed, HELLO);
	memcpy(script + HELLO, "\x25\0\0\0\2\0\0\0", 8);
	memcpy(script + HELLO + 8 + 37, "\3\0\0\0\x20\0\0\0\x20\x20\x20", 11);
	channel_make(&c, NULL, NULL, on_message);
	c.raw = dial_raw(&c);
	c.script = script;
	c.script_len = sizeof script;
	(void)uv_timer_start(&c.timer, on_write_next, 1, 1);
	channel_run_until(&c, CHANNEL_MESSAGES, 1);
	assert_int_equal(c.hub[0].type, 0x20);
	assert_int_equal(c.hub[0].bytes, 3);
	(void)close(c.raw);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	channel_done(&c);
}

static void test_silent(void **state)
{
	struct channel c;
	uint64_t began = uv_hrtime();
	int fd;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	fd = dial_raw(&c);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, LINK_END_MUTE);
	assert_contains(c.hub[0].why, "did not complete the handshake within 10 s");
	assert_in_range((uv_hrtime() - began) / 1000000, 9900, 60000);
	(void)close(fd);
	channel_done(&c);
}

static unsigned crowded;

static void on_crowded(struct listener *li, const struct address *from)
{
	assert_int_equal(from->any.sa_family, AF_INET);
	assert_true(li->pending > 0);
	crowded++;
}

static const struct crowd_row {
	const char *says;
	unsigned source_max, pending_max; /* 0: far above */
	bool one_source;
} crowds[] = {
	{ "many who dial from one address and are silent", 4, 0, true },
	{ "many who dial and are silent, each from its own address", 0, 4, false },
	{ "many of all addresses together", 0, 4, true },
};

/* They hold four places; the oldest of them makes room for who has something to say. */
static void test_crowd(void **state)
{
	const struct crowd_row *row = *state;
	struct channel c;
	int fd[6];

	channel_make(&c, "k", "k", on_message);
	crowded = 0;
	c.listener.on_crowded = on_crowded;
	c.listener.source_max = row->source_max;
	c.listener.pending_max = row->pending_max;
	for (int i = 0; i < 6; i++)
		fd[i] = dial_raw_from(&c, row->one_source ? 0 : 1 + (uint32_t)i);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 2);
	assert_int_equal(c.listener.pending, 4);
	assert_int_equal(crowded, 2);
	for (int i = 0; i < 6; i++)
		assert_int_equal(c.hub[i].closed, i < 2);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	assert_int_equal(c.hub[2].closed, 1);
	assert_int_equal(c.listener.pending, 3);
	assert_int_equal(c.accepted, 7); /* nobody was refused */
	for (int i = 0; i < 6; i++)
		(void)close(fd[i]);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 6);
	assert_int_equal(c.listener.pending, 0);
	channel_done(&c);
}

/* An estimate of the clock is there before the first message of the peer's. */
static void on_first(struct end *e)
{
	assert_true(e->link.is_hub);
	assert_true(e->link.clock.known);
}

static void on_told(struct end *e)
{
	if (!e->link.is_hub)
		send_filled(&e->link, 99, 3);
	else
		on_first(e);
}

static void on_ready_tell(struct end *e)
{
	if (e->link.is_hub)
		send_filled(&e->link, 98, 3);
}

static void test_clock(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, "k", "k", on_message);
	c.on_ready = on_ready_tell;
	c.on_message = on_told;
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_MESSAGES, 1);
	assert_int_equal(c.hub[0].messages, 1);
	channel_run_until(&c, CHANNEL_PINGED, 1);
	assert_in_range(clock_error_ns(&c.hub[0].link.clock, uv_hrtime()), 1, 50000000);
	assert_true((uint64_t)llabs(clock_offset_ns(&c.hub[0].link.clock)) <=
		clock_error_ns(&c.hub[0].link.clock, uv_hrtime()));
	channel_done(&c);
}

static void test_addresses(void **state)
{
	struct address a = { 0 };
	int size = sizeof a;
	struct channel c;
	char text[ADDRESS_TEXT];
	int fd, on;
	socklen_t len = sizeof on;

	(void)state;
	channel_make(&c, NULL, NULL, on_message);
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	assert_int_equal(uv_tcp_getsockname(c.dialer[0].link.tcp, &a.any, &size), 0);
	address_text(&a, text);
	assert_string_equal(text, c.hub[0].link.peer);
	assert_contains(text, "127.0.0.1:");
	assert_int_equal(uv_fileno((uv_handle_t *)c.hub[0].link.tcp, &fd), 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	assert_int_equal(on, 1);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &on, &len), 0);
	assert_int_equal(on, LINK_USER_TIMEOUT_MS);
	channel_done(&c);
}

static void test_life(void **state)
{
	(void)state;
	assert_life(&link_life,
		(const char *const[]){ "idle: connecting closed", "connecting: hello closing",
			"hello: proof closing", "proof: open closing", "open: draining closing",
			"draining: closing", "closing: closed", "closed:", NULL });
}

TESTS(link)
{
	static struct suite s;
	static bool keyed = true;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	SUITE_ROWS(&s, test_pair, pairs);
	SUITE_ROWS(&s, test_raw, raws);
	suite_add(&s, "messages of all sizes, both ways", test_messages, NULL, NULL);
	suite_add(&s, "a close with a flush loses nothing", test_flush, NULL, NULL);
	suite_add(&s, "both ends close at once", test_both_flush, NULL, NULL);
	suite_add(&s, "an owner closes in its callback", test_close_in_callback, NULL, NULL);
	suite_add(&s, "a peer that ends without a word is lost", test_lost, NULL, NULL);
	suite_add(&s, "a peer that does not read is cut off", test_full, NULL, NULL);
	suite_add(&s, "nobody listens", test_refused, NULL, NULL);
	suite_add(&s, "who has another version is told ours", test_version_is_told, NULL, NULL);
	suite_add(&s, "a conversation byte by byte", test_split, NULL, NULL);
	suite_add(&s, "a silent dialer is cut off", test_silent, NULL, NULL);
	SUITE_ROWS(&s, test_crowd, crowds);
	suite_add(&s, "the peer's clock is known before its first message", test_clock, NULL, NULL);
	suite_add(&s, "the states of a link", test_life, NULL, NULL);
	suite_add(&s, "addresses, and the options of sockets", test_addresses, NULL, NULL);
	s.at[s.count] = s.at[sizeof pairs / sizeof *pairs + sizeof raws / sizeof *raws];
	s.at[s.count].name = "messages of all sizes, both ways, with a key";
	s.at[s.count++].initial_state = &keyed;
	return suite_run(&s);
}
