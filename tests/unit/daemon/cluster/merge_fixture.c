/* merge_fixture.c - see merge_fixture.h */
#include "tests/unit/daemon/cluster/merge_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/failure.h"
#include "tests/unit/unit.h"

enum { LIMIT_MS = 60000, TICK_MS = 1 };

/* What a node's stream holds there. */
static char byte_at(unsigned node, int stream, size_t at)
{
	return (char)(at * 31 + (at >> 8) * 7 + node * 67 + (size_t)stream);
}

static size_t all_sent(const struct launcher *p)
{
	return p->sent[1] + p->sent[2];
}

void launcher_end(struct launcher *p, int code)
{
	struct node_end end = { .attempt = p->attempt, .outcomes = &p->outcome, .count = 1 };

	if (p->ended)
		return;
	p->ended = true;
	p->outcome = (struct outcome){ .rank = p->rank,
		.node = p->rank,
		.attempt = p->attempt,
		.end = { .how = ENDED_EXIT, .value = code },
		.ended_ns = uv_hrtime() };
	if (code != 0) {
		end.cause = (struct cause){ .kind = CAUSE_FAILURE, .at_ns = p->outcome.ended_ns };
		member_failed(&p->member, &p->outcome);
	}
	member_ended(&p->member, &end, NULL, 0);
}

void launcher_ask(struct launcher *p)
{
	const struct stop stop = { .attempt = p->attempt,
		.urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .at_ns = uv_hrtime() } };

	member_asked(&p->member, &stop);
}

static void send_some(struct launcher *p, size_t room)
{
	char bytes[MESSAGE_LOG_MAX];
	size_t left = p->amount - all_sent(p),
	       len = 1 + draw(&p->of->seed, left < room ? left : room);
	int stream = 1 + (int)draw(&p->of->seed, 2);

	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(p->rank, stream, p->sent[stream] + i);
	p->sent[stream] += len;
	member_log(&p->member, stream, bytes, len);
}

void launcher_send(struct launcher *p)
{
	size_t room;

	if (p->started == 0)
		return;
	while (all_sent(p) < p->amount && (room = member_log_room(&p->member)) > 0) {
		assert_true(member_merges(&p->member));
		assert_in_range(room, 1, MESSAGE_LOG_MAX);
		send_some(p, room);
	}
	if (all_sent(p) < p->amount)
		return;
	if (p->over && !p->endless)
		member_log_end(&p->member);
	else if (!p->over && !p->of->on_start)
		launcher_end(p, 0);
}

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct launcher *p = owner;

	(void)why;
	assert_int_equal(m->nnodes, p->of->nodes);
	assert_int_equal(m->node_rank, p->rank);
	return 0;
}

static void on_stop(void *owner, const struct stop *stop)
{
	struct launcher *p = owner;

	p->stopped++;
	(void)snprintf(p->why, sizeof p->why, "%s", stop->cause.detail);
	if (p->of->on_stop)
		p->of->on_stop(p);
	else
		launcher_end(p, 0);
}

static void on_forward(void *owner, int signal)
{
	(void)owner, (void)signal;
	fail();
}

static void on_pause(void *owner, const struct job_end *end, uint64_t delay_ms)
{
	(void)owner, (void)end, (void)delay_ms;
}

static void make_narrow(int fd)
{
	const int little = 2048;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
}

static void make_link_narrow(struct link *l)
{
	int fd = -1;

	assert_int_equal(uv_fileno((uv_handle_t *)l->tcp, &fd), 0);
	make_narrow(fd);
}

static void on_start(void *owner, unsigned attempt, unsigned master_port)
{
	struct launcher *p = owner;

	(void)master_port;
	p->started++;
	p->attempt = attempt;
	p->ended = false;
	p->merged_at_start = member_merges(&p->member);
	if (p->of->narrow && p->rank > 0)
		make_link_narrow(p->member.spoke.link);
	if (p->of->on_start)
		p->of->on_start(p);
	else if (p->of->fails_first && attempt == 0 && p->rank == 1)
		launcher_end(p, 1);
	else if (p->of->ends_early || !p->merged_at_start)
		launcher_end(p, 0);
	else
		launcher_send(p);
}

static void on_over(void *owner, const struct job_end *end)
{
	struct launcher *p = owner;

	p->over++;
	p->over_ns = uv_hrtime();
	(void)snprintf(p->why, sizeof p->why, "%s", end->verdict.text);
	member_close(&p->member);
	launcher_send(p);
}

static void on_failed(void *owner, const struct failure *why)
{
	(void)owner;
	fail_msg("%s", why->text);
}

static void on_closed(void *owner)
{
	struct launcher *p = owner;

	p->closed++;
	p->closed_ns = uv_hrtime();
	if (--p->of->open == 0)
		uv_stop(&p->of->loop);
}

static void on_note(void *owner, const struct event *e)
{
	struct launcher *p = owner;

	text_printf(&p->said, "%s\n", e->note.text);
}

static const struct observer observer = { .on = { [EVENT_NOTE] = on_note } };

void merging_take(struct merging *g, unsigned node, size_t len)
{
	g->held[node] -= len;
	member_log_taken(&g->party[0].member, node, len);
}

static void on_log(void *owner, unsigned node, int stream, const char *at, size_t len)
{
	const struct launcher *p = owner;
	struct merging *g = p->of;
	size_t *heard = &g->heard[node][stream];

	assert_int_equal(p->rank, 0);
	assert_int_equal(p->closed, 0);
	assert_in_range(len, 1, MESSAGE_LOG_MAX);
	for (size_t i = 0; i < len && !g->any_bytes; i++)
		if (at[i] != byte_at(node, stream, *heard + i))
			fail_msg("node %u, stream %d: another byte at %zu", node, stream,
				*heard + i);
	*heard += len;
	g->held[node] += len;
	if (g->held[node] > g->most[node])
		g->most[node] = g->held[node];
	assert_true(g->held[node] <= g->whole);
	if (g->console[node] == CONSOLE_FAST)
		merging_take(g, node, len);
	if (g->on_log)
		g->on_log(g, node, len);
}

static void on_log_room(void *owner)
{
	struct launcher *p = owner;

	p->rooms++;
	p->lost += !member_merges(&p->member);
	assert_true(member_log_room(&p->member) > 0 || !member_merges(&p->member));
	launcher_send(p);
}

static const struct member_events events = {
	.met = on_met,
	.stop = on_stop,
	.forward = on_forward,
	.pause = on_pause,
	.start = on_start,
	.over = on_over,
	.failed = on_failed,
	.closed = on_closed,
	.log = on_log,
	.log_room = on_log_room,
};

static void on_guard(uv_timer_t *t)
{
	const struct merging *g = t->data;

	for (unsigned i = 0; i < g->parties; i++)
		print_message("# node %u: started %u, stopped %u, over %u, closed %u, sent %zu, "
			      "heard %zu, held %zu\n%s",
			i, g->party[i].started, g->party[i].stopped, g->party[i].over,
			g->party[i].closed, all_sent(&g->party[i]), g->heard[i][1] + g->heard[i][2],
			g->held[i], text_string(&g->party[i].said));
	fail_msg("it takes too long");
}

/* The slow console's turn. */
static void on_tick(uv_timer_t *t)
{
	struct merging *g = t->data;

	for (unsigned i = 1; i < g->nodes; i++)
		if (g->console[i] == CONSOLE_SLOW && g->held[i] > 0 && draw(&g->seed, 2) == 0)
			merging_take(g, i, 1 + draw(&g->seed, g->held[i]));
}

void merging_make(struct merging *g, unsigned nodes, bool keyed)
{
	*g = (struct merging){ .nodes = nodes, .parties = nodes, .seed = 88172645463325252u };
	g->whole = credit_for(nodes - 1);
	assert_int_equal(uv_loop_init(&g->loop), 0);
	(void)uv_timer_init(&g->loop, &g->guard);
	(void)uv_timer_init(&g->loop, &g->tick);
	g->guard.data = g->tick.data = g;
	for (unsigned i = 0; i < nodes; i++) {
		struct launcher *p = &g->party[i];

		p->of = g;
		p->rank = i;
		p->config = (struct member_config){ .way = MEET_STATIC,
			.merge_logs = true,
			.nnodes = nodes,
			.nproc = 1,
			.node_rank = i,
			.node_rank_known = true,
			.name = "host",
			.hub_addr = "127.0.0.1",
			.master_addr = "127.0.0.1",
			.master_port = 29500,
			.key = { .there = keyed },
			.join_timeout_ms = LIMIT_MS,
			.node_timeout_ms = LIMIT_MS,
			.grace_ms = 1000,
			.arena = &p->arena };
	}
}

void merging_start(struct merging *g)
{
	for (unsigned i = 0; i < g->parties; i++) {
		struct launcher *p = &g->party[i];

		if (i > 0)
			p->config.hub_port = hub_port(&g->party[0].member.hub);
		bus_add(&p->bus, &observer, p);
		member_start(&p->member, &g->loop, &p->config, &events, p, &p->bus, &p->memory);
		g->open++;
		while (i == 0 && p->member.role != MEMBER_HUB)
			(void)uv_run(&g->loop, UV_RUN_NOWAIT);
		/* connections have the sizes of the socket by which they come */
		for (unsigned j = 0; i == 0 && g->narrow && j < p->member.hub.listener.count; j++)
			make_narrow(p->member.hub.listener.fd[j]);
	}
}

void merging_run(struct merging *g)
{
	(void)uv_timer_start(&g->guard, on_guard, LIMIT_MS, 0);
	(void)uv_timer_start(&g->tick, on_tick, TICK_MS, TICK_MS);
	if (g->open > 0)
		(void)uv_run(&g->loop, UV_RUN_DEFAULT);
	(void)uv_timer_stop(&g->guard);
	(void)uv_timer_stop(&g->tick);
}

void merging_pause(struct merging *g)
{
	uv_stop(&g->loop);
}

void merging_done(struct merging *g)
{
	assert_int_equal(g->open, 0);
	uv_close((uv_handle_t *)&g->guard, NULL);
	uv_close((uv_handle_t *)&g->tick, NULL);
	assert_int_equal(uv_run(&g->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&g->loop), 0);
	for (unsigned i = 0; i < g->nodes; i++) {
		assert_int_equal(g->party[i].closed, i < g->parties);
		text_done(&g->party[i].said);
		arena_done(&g->party[i].memory);
		arena_done(&g->party[i].arena);
	}
}

void assert_all_heard(const struct merging *g, unsigned node)
{
	const struct launcher *p = &g->party[node];

	assert_int_equal(all_sent(p), p->amount);
	assert_int_equal(g->heard[node][1], p->sent[1]);
	assert_int_equal(g->heard[node][2], p->sent[2]);
}
