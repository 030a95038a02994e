/* test_dialer.c - of several addresses the first one that answers is taken. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/meet/dialer.h"
#include "daemon/os/port.h"
#include "tests/unit/daemon/net/channel.h"

/* A dialer beside the hub of a channel, which listens at 127.0.0.1. */
struct dialing {
	struct channel c;
	struct dialer d;
	struct addresses to;
	unsigned ready, lost, rounds, hopeless, closed, most_rounds;
	char why[256];
	struct link *link;
};

static void on_message(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	(void)l, (void)type, (void)payload, (void)len;
}

static void on_ready(struct dialer *d, struct link *l)
{
	struct dialing *b = d->owner;

	b->ready++;
	b->link = l;
	channel_stop(&b->c);
}

static void on_lost(struct dialer *d, struct link *l, const char *why)
{
	struct dialing *b = d->owner;

	(void)why;
	assert_ptr_equal(l, b->link);
	b->lost++;
	channel_stop(&b->c);
}

static void on_round(struct dialer *d)
{
	struct dialing *b = d->owner;

	if (++b->rounds == b->most_rounds)
		channel_stop(&b->c);
}

static void on_hopeless(struct dialer *d, const char *why)
{
	struct dialing *b = d->owner;

	b->hopeless++;
	(void)snprintf(b->why, sizeof b->why, "%s", why);
	channel_stop(&b->c);
}

static void on_closed(struct dialer *d)
{
	((struct dialing *)d->owner)->closed++;
}

static void put(struct dialing *b, unsigned i, uint32_t host, uint16_t port)
{
	b->to.at[i] = (struct address){ .v4 = { .sin_family = AF_INET,
						.sin_port = htons(port),
						.sin_addr.s_addr = htonl(host) } };
	if (b->to.count <= i)
		b->to.count = i + 1;
}

static void make(struct dialing *b, const char *hub_key, const char *dialer_key)
{
	memset(b, 0, sizeof *b);
	channel_make(&b->c, hub_key, dialer_key, on_message);
	b->d = (struct dialer){ .on_ready = on_ready,
		.on_lost = on_lost,
		.on_round = on_round,
		.on_hopeless = on_hopeless,
		.on_closed = on_closed,
		.on_message = on_message,
		.owner = b,
		.auth = &b->c.dialer_auth,
		.final = 1U << LINK_END_KEY };
}

static void done(struct dialing *b)
{
	if (b->link)
		link_close(b->link, false, NULL);
	dialer_close(&b->d);
	dialer_close(&b->d); /* twice is once */
	channel_done(&b->c);
	assert_int_equal(b->closed, 1);
}

/* A port of this host at which somebody listens who never says a word. */
static int mute(struct dialing *b, unsigned i)
{
	const struct address at = { .v4 = { .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	int fd = port_bind(&at, 0, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 8), 0);
	put(b, i, INADDR_LOOPBACK, (uint16_t)port_of(fd));
	return fd;
}

/* Five who say nothing stand before it, each of whom would take 10 s alone. */
static void test_mute(void **state)
{
	uint64_t began = uv_hrtime();
	struct dialing b;
	int fd[5];

	(void)state;
	make(&b, "k", "k");
	for (unsigned i = 0; i < 5; i++)
		fd[i] = mute(&b, i);
	put(&b, 5, INADDR_LOOPBACK, address_port(&b.c.address));
	dialer_start(&b.d, &b.c.loop, &b.to);
	channel_run(&b.c);
	assert_int_equal(b.ready, 1);
	assert_int_equal(address_port(&b.link->peer_address), address_port(&b.c.address));
	assert_in_range((uv_hrtime() - began) / 1000000, 5 * 250 - 5, 9000);
	for (unsigned i = 0; i < 5; i++)
		(void)close(fd[i]);
	done(&b);
}

/* The next one is dialled at once, and all again after a pause. */
static void test_refused(void **state)
{
	struct dialing b;

	(void)state;
	make(&b, NULL, NULL);
	for (unsigned i = 0; i < 3; i++)
		put(&b, i, INADDR_LOOPBACK + 1 + i, address_port(&b.c.address));
	b.most_rounds = 2;
	dialer_start(&b.d, &b.c.loop, &b.to);
	channel_run(&b.c);
	assert_int_equal(b.ready + b.hopeless, 0);
	assert_contains(b.d.last, "can't be reached: Connection refused");
	put(&b, 1, INADDR_LOOPBACK, address_port(&b.c.address)); /* it means another one now */
	dialer_use(&b.d, &b.to);
	channel_run(&b.c);
	assert_int_equal(b.ready, 1);
	done(&b);
}

/* By one who takes nobody: each time there is more of a pause. */
static void test_lost(void **state)
{
	enum { TIMES = 5 };
	struct dialing b;
	uint64_t began;

	(void)state;
	make(&b, NULL, NULL);
	put(&b, 0, INADDR_LOOPBACK, address_port(&b.c.address));
	dialer_start(&b.d, &b.c.loop, &b.to);
	channel_run(&b.c);
	for (unsigned i = 1; i <= TIMES; i++) {
		assert_int_equal(b.ready, i);
		link_close(b.link, false, NULL);
		channel_run(&b.c);
		assert_int_equal(b.lost, i);
		began = uv_hrtime();
		dialer_again(&b.d, "lost");
		channel_run(&b.c);
	}
	assert_int_equal(b.ready, TIMES + 1);
	assert_in_range((uv_hrtime() - began) / 1000000, 500, 60000);
	done(&b);
}

/* Who has another key ends it, but not while another one may still answer. */
static const struct hopeless_row {
	const char *says;
	bool other; /* says nothing */
} hopeless[] = {
	{ "who has another key", false },
	{ "who has another key, and another one who may still answer", true },
};

static void test_hopeless(void **state)
{
	bool other = ((const struct hopeless_row *)*state)->other;
	struct dialing b;
	struct text t = { 0 };
	int fd = -1;

	make(&b, "k", "x");
	put(&b, 0, INADDR_LOOPBACK, address_port(&b.c.address));
	if (other)
		fd = mute(&b, 1);
	b.most_rounds = other ? 3 : 0;
	dialer_start(&b.d, &b.c.loop, &b.to);
	channel_run(&b.c);
	assert_int_equal(b.ready, 0);
	assert_int_equal(b.hopeless, !other);
	if (other) {
		dialer_explain(&b.d, &t);
		assert_contains(text_string(&t), "(2 addresses were dialled)");
		text_done(&t);
		(void)close(fd); /* which ends its connection */
		channel_run(&b.c);
		assert_int_equal(b.hopeless, 1);
	}
	assert_contains(b.why, "key");
	done(&b);
}

static void test_edges(void **state)
{
	(void)state;
	assert_life(&dialer_life,
		(const char *const[]){ "none: dialing",
			"dialing: dialing paused ready stopped closed",
			"paused: dialing ready stopped closed", "ready: stopped closed",
			"stopped: paused closed", "closed:", NULL });
}

TESTS(dialer)
{
	static struct suite s;

	suite_add(&s, "addresses where nobody says a word", test_mute, NULL, NULL);
	suite_add(&s, "addresses that refuse, and others in their place", test_refused, NULL, NULL);
	suite_add(&s, "a link that is lost", test_lost, NULL, NULL);
	SUITE_ROWS(&s, test_hopeless, hopeless);
	suite_add(&s, "its states", test_edges, NULL, NULL);
	return suite_run(&s);
}
