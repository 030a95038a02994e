/* test_merged_lines_hostile.c - lines that no launcher would send, and launchers that do not wish
 * the same.
 */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/address.h"
#include "tests/unit/daemon/cluster/merge_fixture.h"

enum moment { WHEN_CONNECTED, WHEN_JOINED, WHEN_STARTED };

static const struct row {
	const char *says;
	enum moment moment;
	bool merges; /* node rank 0 wants lines */
	int stream;
	size_t extra;    /* bytes above its credit */
	size_t heard;    /* bytes of lines */
	const char *why; /* of the job's end; NULL: the node is no part of it, and is cut off */
} rows[] = {
	{ "all that it may", WHEN_STARTED, true, 1, 0, MESSAGE_LOG_ROOM_MAX, "SIGTERM" },
	{ "a byte more than it may", WHEN_STARTED, true, 2, 1, MESSAGE_LOG_ROOM_MAX,
		"it sent more of its workers' output than it was allowed to" },
	{ "lines where nobody asked for them", WHEN_STARTED, false, 1, 0, 0,
		"it sent its workers' output without being asked" },
	{ "a stream that there is not", WHEN_STARTED, true, 3, 0, 0,
		"it sent a malformed message" },
	{ "lines before it was welcomed", WHEN_JOINED, true, 1, 0, 0, NULL },
	{ "lines of somebody who has not joined", WHEN_CONNECTED, true, 1, 0, 0, NULL },
};

/* Who dials node rank 0 as node 1. */
struct stranger {
	struct link link;
	const struct row *row;
	struct merging *of;
	unsigned closed;
};

static void send_raw(struct link *l, enum message_type type, const void *at, size_t len)
{
	(void)link_send(l, type, at, len);
}

static void ask(struct link *l)
{
	const struct stop stop = { .urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .at_ns = uv_hrtime() } };

	party_send(l, &(struct message){ MESSAGE_STOP, .stop = stop });
}

static void flood(const struct stranger *s)
{
	size_t left = MESSAGE_LOG_ROOM_MAX + s->row->extra;
	struct link *l = (struct link *)&s->link;
	unsigned char bytes[1 + MESSAGE_LOG_MAX];

	while (left > 0) {
		size_t len = left < MESSAGE_LOG_MAX ? left : MESSAGE_LOG_MAX;

		memset(bytes, 'x', sizeof bytes);
		bytes[0] = (unsigned char)s->row->stream;
		send_raw(l, MESSAGE_LOG, bytes, 1 + len);
		left -= len;
	}
	ask(l);
}

static void on_ready(struct link *l)
{
	const struct stranger *s = l->owner;
	const struct message_join j = { .node_rank = 1,
		.nnodes = s->of->nodes,
		.nproc = 1,
		.name = "host",
		.version = LAUNCHD_VERSION,
		.reached = "127.0.0.1" };

	if (s->row->moment != WHEN_CONNECTED)
		party_send((struct link *)&s->link, &(struct message){ MESSAGE_JOIN, .join = j });
	if (s->row->moment != WHEN_STARTED)
		flood(s);
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	const struct stranger *s = l->owner;

	(void)at, (void)len;
	if (type == MESSAGE_WELCOME)
		party_send(l, &(struct message){ .type = MESSAGE_READY });
	else if (type == MESSAGE_START)
		flood(s);
	else if (type == MESSAGE_STOP)
		link_close(l, true, NULL);
}

/* Where the job has not begun it goes on without the node, and is ended by this one. */
static void on_link_closed(struct link *l, const char *why)
{
	struct stranger *s = l->owner;

	(void)why;
	s->closed++;
	if (--s->of->open == 0 || s->row->moment != WHEN_STARTED)
		merging_pause(s->of);
}

static void keep_count(struct launcher *p)
{
	launcher_end(p, 0);
}

static void wait_for_stop(struct launcher *p)
{
	assert_int_equal(p->rank, 0);
}

static void dial(struct stranger *s)
{
	struct member *m = &s->of->party[0].member;
	struct address to;
	struct failure why = { 0 };

	s->link = (struct link){ .owner = s,
		.on_ready = on_ready,
		.on_message = on_message,
		.on_closed = on_link_closed };
	assert_int_equal(address_parse("127.0.0.1", (uint16_t)hub_port(&m->hub), &to), 0);
	assert_int_equal(link_dial(&s->link, m->party.loop, &to, &m->party.auth, &why), 0);
	s->of->open++;
}

static void test_hostile(void **state)
{
	const struct row *row = *state;
	static struct merging g;
	struct stranger s = { .row = row, .of = &g };

	merging_make(&g, row->moment == WHEN_STARTED ? 2 : 3, false);
	g.parties = 1;
	g.any_bytes = true;
	g.on_start = wait_for_stop;
	g.on_stop = keep_count;
	g.console[1] = CONSOLE_STOPPED;
	g.party[0].config.merge_logs = row->merges;
	merging_start(&g);
	dial(&s);
	merging_run(&g);
	assert_int_equal(s.closed, 1);
	if (row->moment != WHEN_STARTED) {
		assert_int_equal(g.party[0].over, 0);
		assert_int_equal(g.party[0].member.hub.joined, 1);
		launcher_ask(&g.party[0]);
		merging_run(&g);
	}
	assert_int_equal(g.party[0].over, 1);
	if (row->why)
		assert_contains(g.party[0].why, row->why);
	assert_int_equal(g.heard[1][1] + g.heard[1][2], row->heard);
	merging_done(&g);
}

/* --- the other way round --- */

static const struct given_row {
	const char *says;
	uint32_t bytes; /* that node rank 0 gives, and never heard of */
	size_t len;
} given[] = {
	{ "room above all", 1, 4 },
	{ "no room", 0, 4 },
	{ "room in too few bytes", 1, 3 },
};

static const struct given_row *row_at_hand;

static void give(struct launcher *p)
{
	if (p->rank == 0)
		send_raw(&p->member.hub.peers[1]->link, MESSAGE_LOG_ROOM, &row_at_hand->bytes,
			row_at_hand->len);
}

static void test_given(void **state)
{
	static struct merging g;

	row_at_hand = *state;
	merging_make(&g, 2, true);
	g.on_start = give;
	g.on_stop = keep_count;
	merging_start(&g);
	merging_run(&g);
	assert_int_equal(g.party[1].stopped, 1);
	assert_int_equal(g.party[1].over, 1);
	assert_contains(g.party[1].why, "it sent a malformed message");
	merging_done(&g);
}

/* --- wishes --- */

static const struct wish_row {
	const char *says;
	bool hub, node, merges;
	const char *said; /* by the node; NULL: not a word of it */
} wishes[] = {
	{ "all wish it", true, true, true, NULL },
	{ "none does", false, false, false, NULL },
	{ "node rank 0 only", true, false, false,
		"node rank 0 runs with --merge-logs, but this node" },
	{ "the node only", false, true, false, "node rank 0 runs without --merge-logs" },
};

static void test_wish(void **state)
{
	const struct wish_row *row = *state;
	static struct merging g;

	merging_make(&g, 2, false);
	g.party[0].config.merge_logs = row->hub;
	g.party[1].config.merge_logs = row->node;
	g.party[1].amount = 100000;
	merging_start(&g);
	merging_run(&g);
	assert_int_equal(g.party[1].merged_at_start, row->merges);
	assert_int_equal(g.party[1].rooms > 0, row->merges);
	assert_int_equal(g.heard[1][1] + g.heard[1][2], row->merges ? 100000 : 0);
	if (row->said)
		assert_contains(text_string(&g.party[1].said), row->said);
	else
		assert_null(strstr(text_string(&g.party[1].said), "merge-logs"));
	assert_false(member_merges(&g.party[0].member));
	assert_int_equal(member_log_room(&g.party[0].member), 0);
	merging_done(&g);
}

TESTS(merged_lines_hostile)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	SUITE_ROWS(&s, test_hostile, rows);
	SUITE_ROWS(&s, test_given, given);
	SUITE_ROWS(&s, test_wish, wishes);
	return suite_run(&s);
}
