/* test_link_send.c - what waits in a link's queue, and when it does not any more. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/daemon/net/channel.h"

enum { LEN = 32 << 10 };

static unsigned idle;

static void on_idle(struct link *l)
{
	struct end *e = l->owner;

	assert_true(link_is_idle(l));
	idle++;
	channel_stop(e->channel);
}

static void send_one(struct link *l)
{
	static const unsigned char payload[LEN];

	assert_int_equal(link_send(l, 100, payload, sizeof payload), 0);
}

/* The hub reads nothing; the dialer sends until something waits. */
static void fill(struct channel *c)
{
	(void)uv_read_stop((uv_stream_t *)c->hub[0].link.tcp);
	while (link_is_idle(&c->dialer[0].link))
		send_one(&c->dialer[0].link);
}

static void make(struct channel *c)
{
	const int little = 4096;
	int fd;

	idle = 0;
	channel_make(c, "k", "k", channel_hear_nothing);
	channel_dial(c, 0);
	assert_false(link_is_idle(&c->dialer[0].link)); /* it is not open */
	channel_run_until(c, CHANNEL_READY, 1);
	channel_run_until(c, CHANNEL_PINGED, 1);
	c->dialer[0].link.on_idle = on_idle;
	assert_true(link_is_idle(&c->dialer[0].link));
	assert_int_equal(uv_fileno((uv_handle_t *)c->dialer[0].link.tcp, &fd), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
}

static void test_idle(void **state)
{
	struct channel c;
	uv_alloc_cb room;
	uv_read_cb read;

	(void)state;
	make(&c);
	room = c.hub[0].link.tcp->alloc_cb;
	read = c.hub[0].link.tcp->read_cb;
	fill(&c);
	send_one(&c.dialer[0].link); /* waits behind the other one */
	assert_int_equal(idle, 0);
	assert_int_equal(uv_read_start((uv_stream_t *)c.hub[0].link.tcp, room, read), 0);
	channel_run(&c);
	assert_int_equal(idle, 1); /* told once, when the last one has gone out */
	assert_true(link_is_idle(&c.dialer[0].link));
	send_one(&c.dialer[0].link);
	if (!link_is_idle(&c.dialer[0].link))
		channel_run(&c);
	channel_done(&c);
}

/* A link that ends does not say that it has sent all. */
static void test_ending(void **state)
{
	struct channel c;
	bool flush = *state != NULL;
	uv_alloc_cb room;
	uv_read_cb read;

	make(&c);
	room = c.hub[0].link.tcp->alloc_cb;
	read = c.hub[0].link.tcp->read_cb;
	fill(&c);
	link_close(&c.dialer[0].link, flush, NULL);
	assert_false(link_is_idle(&c.dialer[0].link));
	assert_int_equal(uv_read_start((uv_stream_t *)c.hub[0].link.tcp, room, read), 0);
	channel_run_until(&c, CHANNEL_CLOSED, 1);
	assert_int_equal(c.hub[0].link.end, flush ? LINK_END_PEERS : LINK_END_LOST);
	assert_int_equal(idle, 0);
	channel_done(&c);
}

TESTS(link_send)
{
	static struct suite s;
	static bool flush = true;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	suite_add(&s, "it is told when what waited has gone out", test_idle, NULL, NULL);
	suite_add(&s, "not by a link that is cut", test_ending, NULL, NULL);
	suite_add(&s, "nor by one that says farewell", test_ending, NULL, NULL);
	s.at[s.count - 1].initial_state = &flush;
	return suite_run(&s);
}
