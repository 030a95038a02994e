/* test_merged_lines.c - every node's lines come to node rank 0: whole, in order, bounded, in
 * nobody's way.
 */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "tests/unit/daemon/cluster/merge_fixture.h"

enum { MB = 1 << 20, KB = 1 << 10, MS = 1000000 };

static const struct flow_row {
	const char *says;
	unsigned nodes;
	bool keyed, ends_early;
	enum console console;
	unsigned restarts; /* 0: nodes leave by themselves, else the verdict ends the job */
	size_t amount;     /* of each node */
	bool narrow;
} flows[] = {
	{ "one node, a fast console", 2, false, false, CONSOLE_FAST, 0, 8 * MB, false },
	{ "one node, a slow console", 2, false, false, CONSOLE_SLOW, 0, 2 * MB, false },
	{ "three nodes with a key", 4, true, false, CONSOLE_FAST, 0, 4 * MB, false },
	{ "three nodes with a key, a slow console", 4, true, false, CONSOLE_SLOW, 1, MB, false },
	{ "little through a narrow way", 2, false, false, CONSOLE_STOPPED, 1, 15 * KB, true },
	{ "much through a narrow way", 4, true, false, CONSOLE_SLOW, 0, 300 * KB, true },
	{ "one byte", 2, false, false, CONSOLE_SLOW, 0, 1, false },
	{ "no line at all", 4, true, false, CONSOLE_FAST, 1, 0, false },
	{ "workers end before their lines are sent", 4, false, true, CONSOLE_FAST, 0, 400 * KB,
		false },
	{ "the verdict is there before their lines are sent", 4, true, true, CONSOLE_FAST, 1,
		400 * KB, false },
	{ "the same, and the console is slow", 4, false, true, CONSOLE_SLOW, 1, 100 * KB, false },
};

static void test_flow(void **state)
{
	const struct flow_row *row = *state;
	static struct merging g;

	merging_make(&g, row->nodes, row->keyed);
	g.ends_early = row->ends_early;
	g.narrow = row->narrow;
	for (unsigned i = 0; i < row->nodes; i++) {
		g.party[i].amount = i > 0 ? row->amount : 0;
		g.party[i].config.policy.max_restarts = row->restarts;
		g.console[i] = row->console;
	}
	merging_start(&g);
	merging_run(&g);
	for (unsigned i = 0; i < row->nodes; i++) {
		assert_int_equal(g.party[i].over, 1);
		assert_int_equal(g.party[i].merged_at_start, i > 0);
		assert_all_heard(&g, i);
	}
	merging_done(&g);
}

static void take_again(struct merging *g)
{
	g->on_log = NULL;
	g->console[1] = CONSOLE_SLOW;
	merging_take(g, 1, g->held[1]);
}

static void when_two_is_done(struct merging *g, unsigned node, size_t len)
{
	(void)node, (void)len;
	if (g->heard[2][1] + g->heard[2][2] == g->party[2].amount)
		merging_pause(g);
}

/* A node whose lines nobody takes has its share on the way and no more; others don't wait. */
static void test_stopped(void **state)
{
	static struct merging g;

	(void)state;
	merging_make(&g, 3, true);
	g.party[1].amount = g.party[2].amount = 4 * MB;
	g.console[1] = CONSOLE_STOPPED;
	g.on_log = when_two_is_done;
	merging_start(&g);
	merging_run(&g);
	assert_all_heard(&g, 2);
	assert_true(g.held[1] <= g.whole);
	while (g.held[1] < g.whole) { /* on its way */
		assert_int_equal(member_log_room(&g.party[1].member) > 0, 0);
		if (g.party[1].sent[1] + g.party[1].sent[2] == g.held[1])
			break; /* less than a quarter is left */
		(void)uv_run(&g.loop, UV_RUN_NOWAIT);
	}
	assert_in_range(g.held[1], g.whole - g.whole / 4 + 1, g.whole);
	assert_int_equal(member_log_room(&g.party[1].member), 0);
	assert_true(member_merges(&g.party[1].member));
	take_again(&g);
	merging_run(&g);
	assert_all_heard(&g, 1);
	merging_done(&g);
}

static struct {
	bool asked, ended;
	unsigned before, after; /* of the request: messages of lines that node rank 0 has heard */
} race;

static void count(struct merging *g, unsigned node, size_t len)
{
	(void)g, (void)node, (void)len;
	if (race.asked)
		race.after++;
	else
		race.before++;
}

/* Lines wait in the link of node 1, whose hub reads nothing, when it asks for the end. */
static void fill_and_ask(struct launcher *p)
{
	struct link *hub = &p->of->party[0].member.hub.peers[1]->link, *l = p->member.spoke.link;

	if (p->rank == 0)
		return;
	(void)uv_read_stop((uv_stream_t *)hub->tcp);
	launcher_send(p);
	assert_false(link_is_idle(l));
	assert_in_range(
		uv_stream_get_write_queue_size((uv_stream_t *)l->tcp), 1, MESSAGE_LOG_MAX + 64);
	race.asked = true;
	launcher_ask(p);
	merging_pause(p->of);
}

static void when_asked(struct launcher *p)
{
	if (p->rank == 0)
		race.ended = true;
	if (p->rank == 0)
		assert_in_range(race.after, 1, 4); /* on their way when it was asked */
	launcher_end(p, 0);
}

/* 10 MB of lines wait, and a request has to wait for a message of them, not for all. */
static void test_overtakes(void **state)
{
	static struct merging g;
	size_t queued;
	struct link *hub;
	uv_alloc_cb room;
	uv_read_cb read;

	(void)state;
	memset(&race, 0, sizeof race);
	merging_make(&g, 2, true);
	g.narrow = true;
	g.party[1].amount = 10 * MB;
	g.on_start = fill_and_ask;
	g.on_stop = when_asked;
	g.on_log = count;
	g.party[1].endless = true;
	merging_start(&g);
	while (g.party[0].started == 0)
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	hub = &g.party[0].member.hub.peers[1]->link;
	room = hub->tcp->alloc_cb;
	read = hub->tcp->read_cb;
	merging_run(&g);
	assert_true(race.asked);
	queued = uv_stream_get_write_queue_size((uv_stream_t *)g.party[1].member.spoke.link->tcp);
	assert_in_range(queued, 1, MESSAGE_LOG_MAX + KB); /* one message, and the request */
	assert_int_equal(uv_read_start((uv_stream_t *)hub->tcp, room, read), 0);
	while (!race.ended)
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	merging_run(&g);
	assert_int_equal(race.before, 0);
	assert_int_equal(g.party[0].stopped, 1);
	assert_int_equal(g.party[1].stopped, 1);
	assert_contains(g.party[0].why, "SIGTERM");
	merging_done(&g);
}

/* The verdict does not wait, and who never has said all has a second. */
static void test_last_second(void **state)
{
	bool verdict = *state != NULL;
	static struct merging g;

	merging_make(&g, 3, false);
	g.ends_early = true;
	g.console[1] = g.console[2] = CONSOLE_STOPPED;
	for (unsigned i = 0; i < 3; i++)
		g.party[i].config.policy.max_restarts = verdict;
	g.party[1].amount = 10 * MB;
	g.party[2].endless = true;
	merging_start(&g);
	merging_run(&g);
	for (unsigned i = 0; i < 3; i++) {
		const struct launcher *p = &g.party[i];

		assert_int_equal(p->over, 1);
		assert_true(p->over_ns < g.party[1].closed_ns);
		assert_true(p->over_ns < g.party[2].closed_ns);
		/* whose second began first ends it for the others, too */
		if (verdict == (i == 0))
			assert_true(
				p->closed_ns - p->over_ns >= (LINES_LAST_MS - 10) * (uint64_t)MS);
	}
	assert_in_range(g.heard[1][1] + g.heard[1][2], g.whole * 3 / 4, g.whole);
	assert_in_range(g.party[1].sent[1] + g.party[1].sent[2], g.whole * 3 / 4, g.whole);
	merging_done(&g);
}

static void hurry_all(struct launcher *p)
{
	launcher_end(p, 0);
	if (p->rank == 0)
		merging_pause(p->of);
}

static void make_endless(uv_timer_t *t)
{
	assert_true(uv_is_active((uv_handle_t *)t));
	(void)uv_timer_start(t, t->timer_cb, UINT32_MAX, 0);
}

/* Whoever is in a hurry cuts that short, which else would have no end here. */
static void test_hurry(void **state)
{
	static struct merging g;

	(void)state;
	merging_make(&g, 2, false);
	g.on_start = hurry_all;
	g.party[0].config.policy.max_restarts = g.party[1].config.policy.max_restarts = 1;
	g.party[1].endless = true;
	merging_start(&g);
	while (g.party[0].over == 0 || g.party[1].over == 0)
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	assert_int_equal(g.open, 2);
	assert_true(g.party[0].member.hub.lines.lasting);
	assert_true(g.party[1].member.spoke.state == SPOKE_LASTING);
	make_endless(&g.party[0].member.hub.lines.clock);
	make_endless(&g.party[1].member.spoke.clock);
	member_hurry(&g.party[*state ? 1 : 0].member);
	merging_run(&g);
	merging_done(&g);
}

/* Attempts follow one another, and lines and credit go on as if there was none. */
static void test_restart(void **state)
{
	static struct merging g;

	(void)state;
	merging_make(&g, 4, true);
	g.fails_first = true;
	for (unsigned i = 0; i < 4; i++) {
		g.party[i].config.policy.max_restarts = 1;
		g.party[i].amount = i > 0 ? MB : 0;
		g.console[i] = CONSOLE_SLOW;
	}
	merging_start(&g);
	merging_run(&g);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(g.party[i].started, 2);
		assert_int_equal(g.party[i].over, 1);
		assert_all_heard(&g, i);
	}
	merging_done(&g);
}

/* Node 1 is lost while its lines lie at node rank 0, whose console takes them later. */
static void lose_one(struct merging *g, unsigned node, size_t len)
{
	(void)len;
	if (node == 1 && g->held[1] > g->whole / 2)
		link_close(g->party[1].member.spoke.link, false, "killed");
}

static void test_lost(void **state)
{
	static struct merging g;

	(void)state;
	merging_make(&g, 3, true);
	g.party[1].amount = 4 * MB;
	g.party[2].amount = 4 * MB;
	g.console[1] = CONSOLE_STOPPED;
	g.console[2] = CONSOLE_SLOW;
	g.on_log = lose_one;
	merging_start(&g);
	while (g.party[1].stopped == 0)
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	assert_false(member_merges(&g.party[1].member));
	assert_int_equal(member_log_room(&g.party[1].member), 0);
	assert_int_equal(g.party[1].lost, 1); /* it was told */
	while (g.party[0].member.hub.peers[1])
		(void)uv_run(&g.loop, UV_RUN_ONCE);
	merging_take(&g, 1, g.held[1]);
	merging_run(&g);
	assert_contains(g.party[0].why, "node 1");
	assert_true(g.party[1].sent[1] + g.party[1].sent[2] < g.party[1].amount);
	assert_int_equal(g.party[2].lost, 0);
	merging_done(&g);
}

TESTS(merged_lines)
{
	static struct suite s;
	static bool yes = true;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	SUITE_ROWS(&s, test_flow, flows);
	suite_add(&s, "a console that stops holds up one node only", test_stopped, NULL, NULL);
	suite_add(&s, "a request overtakes lines", test_overtakes, NULL, NULL);
	suite_add(&s, "who leaves has a second for the last lines", test_last_second, NULL, NULL);
	suite_add(&s, "the same after a verdict", test_last_second, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "node rank 0 is in a hurry", test_hurry, NULL, NULL);
	suite_add(&s, "another node is in a hurry", test_hurry, NULL, NULL);
	s.at[s.count - 1].initial_state = &yes;
	suite_add(&s, "attempts follow one another", test_restart, NULL, NULL);
	suite_add(&s, "a node is lost with lines that nobody has taken", test_lost, NULL, NULL);
	return suite_run(&s);
}
