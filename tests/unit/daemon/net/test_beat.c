/* test_beat.c - beats, past firewalls and forged ones. Who is silent: test_silence.c. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/net/channel.h"

enum { TIMEOUT_MS = CHANNEL_TIMEOUT_MS };

/* By UDP, both ways, and not by TCP as soon as each knows that it is heard. */
static void test_udp(void **state)
{
	struct channel c;
	uint64_t hub, dialer;

	channel_make_beating(&c, *state ? "k" : NULL);
	channel_run_ms(&c, 500);
	hub = c.hub[0].link.out.number;
	dialer = c.dialer[0].link.out.number;
	channel_run_ms(&c, 2 * TIMEOUT_MS);
	assert_nobody_silent(&c);
	assert_in_range(c.hub[0].link.beats.seen, 15, 35); /* 29 by the clock */
	assert_in_range(c.dialer[0].link.beats.seen, 15, 35);
	assert_int_equal(c.hub[0].link.out.number, hub);
	assert_int_equal(c.dialer[0].link.out.number, dialer);
	assert_int_equal(c.hub_beat.bad + c.dialer_beat.bad, 0);
	assert_true(c.dialer[0].link.clock.known);
	assert_in_range(clock_error_ns(&c.dialer[0].link.clock, uv_hrtime()), 0, 50000000);
	channel_done(&c);
}

/* Datagrams are heard no more. */
static void deafen(struct channel *c)
{
	for (unsigned i = 0; i < c->hub_beat.sockets; i++)
		(void)uv_udp_recv_stop(&c->hub_beat.udp[i]);
	(void)uv_udp_recv_stop(&c->dialer[0].link.udp);
}

static void test_no_udp(void **state)
{
	struct channel c;

	(void)state;
	channel_make_beating(&c, "k");
	deafen(&c);
	channel_run_ms(&c, 3 * TIMEOUT_MS);
	assert_nobody_silent(&c);
	assert_true(c.hub[0].link.beats.udp_ns == 0 || c.dialer[0].link.beats.udp_ns == 0);
	channel_done(&c);
}

static void test_udp_ends(void **state)
{
	struct channel c;

	(void)state;
	channel_make_beating(&c, "k");
	channel_run_ms(&c, TIMEOUT_MS);
	assert_true(c.hub[0].link.beats.udp_ns != 0 && c.dialer[0].link.beats.udp_ns != 0);
	deafen(&c);
	channel_run_ms(&c, 3 * TIMEOUT_MS);
	assert_nobody_silent(&c);
	channel_done(&c);
}

/* The shorter of two time-outs makes the beat. */
static void test_shorter(void **state)
{
	struct channel c;

	(void)state;
	channel_make(&c, NULL, NULL, channel_hear_nothing);
	channel_beat(&c, TIMEOUT_MS);
	c.timeout_ms = 600;
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_READY, 1);
	assert_int_equal(c.hub_beat.interval_ns, 50000000);
	channel_done(&c);
}

static void send_raw(const struct channel *c, const void *bytes, size_t len)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(
		sendto(fd, bytes, len, 0, &c->address.any, address_size(&c->address)), len);
	(void)close(fd);
}

static const struct forged_row {
	const char *says;
	bool keyed;
	int session, sequence; /* added to the right ones */
	int bit;               /* that is flipped; -1: none */
	size_t len;
	bool good;
} forged[] = {
	{ "the next one", true, 0, 1, -1, BEAT_DATAGRAM, true },
	{ "the next one, without a key", false, 0, 1, -1, BEAT_DATAGRAM, true },
	{ "the last one again", true, 0, 0, -1, BEAT_DATAGRAM, false },
	{ "an older one", true, 0, -1, -1, BEAT_DATAGRAM, false },
	{ "the last one again, without a key", false, 0, 0, -1, BEAT_DATAGRAM, false },
	{ "another session's", true, 1, 1, -1, BEAT_DATAGRAM, false },
	{ "altered in its body", true, 0, 1, 8 * 20, BEAT_DATAGRAM, false },
	{ "altered in its tag", true, 0, 1, 8 * 70, BEAT_DATAGRAM, false },
	{ "altered in its token, without a key", false, 0, 1, 8 * 70, BEAT_DATAGRAM, false },
	{ "cut off", true, 0, 1, -1, BEAT_DATAGRAM - 1, false },
	{ "longer", true, 0, 1, -1, BEAT_DATAGRAM + 1, false },
	{ "empty", true, 0, 1, -1, 0, false },
};

static void test_forged(void **state)
{
	const struct forged_row *row = *state;
	unsigned char d[BEAT_DATAGRAM + 100] = { 0 };
	struct beat_body body = { 0 };
	const struct link *l;
	struct channel c;
	uint64_t heard;

	channel_make_beating(&c, row->keyed ? "k" : NULL);
	channel_run_ms(&c, 300);
	l = &c.dialer[0].link;
	body.session = l->session + (uint64_t)row->session;
	body.sequence = l->beats.sent + (uint64_t)row->sequence;
	beat_body_write(&body, d);
	datagram_seal(l->auth->sodium, row->keyed ? l->beat_out : l->token, d, BEAT_BODY);
	if (row->bit >= 0)
		d[row->bit / 8] ^= 1;
	channel_mute(&c);
	channel_run_ms(&c, 50);
	heard = c.hub[0].link.heard_ns;
	send_raw(&c, d, row->len);
	channel_run_ms(&c, 50);
	assert_int_equal(c.hub[0].link.heard_ns > heard, row->good);
	assert_int_equal(c.hub_beat.bad, !row->good);
	channel_done(&c);
}

TESTS(beat)
{
	static struct suite s;
	static bool keyed = true;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	suite_add(&s, "beats travel by UDP", test_udp, NULL, NULL);
	suite_add(&s, "beats travel by UDP, with a key", test_udp, NULL, NULL);
	s.at[s.count - 1].initial_state = &keyed;
	suite_add(&s, "a firewall that drops UDP does no harm", test_no_udp, NULL, NULL);
	suite_add(&s, "nor one that drops it after a while", test_udp_ends, NULL, NULL);
	suite_add(&s, "the shorter time-out makes the beat", test_shorter, NULL, NULL);
	SUITE_ROWS(&s, test_forged, forged);
	return suite_run(&s);
}
