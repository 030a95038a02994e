/* test_hub.c - node rank 0's launcher among nodes that do what no launcher does, or not in time. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"

enum { PEERS = 2, LIMIT_MS = 60000, FLOOD = 400000 };

struct hub_fixture;

struct fake_peer {
	struct link link;
	struct hub_fixture *fixture;
	unsigned node, closed, heard[MESSAGE_END];
	char refusal[MESSAGE_TEXT_SIZE];
};

/* What the second node does that is wrong. */
enum deed {
	DEED_NONE,
	DEED_REFUSES,    /* it has no plan */
	DEED_GOES,       /* after the welcome */
	DEED_NO_WORKERS, /* says that it has none */
	DEED_ASKS_EARLY, /* ends a job that has not begun, and has no rank */
	DEED_TALKS,      /* without end, when the job runs */
	DEED_DOES_NOT_READ,
	DEED_OWN_PLAN, /* node rank 0's can't be made */
	DEED_FAILS,    /* its worker does, with words */
};

struct hub_fixture {
	enum deed deed;
	uv_loop_t loop;
	uv_timer_t guard, talking;
	struct member member;
	struct member_config config;
	struct arena arena, memory;
	struct fake_peer peers[PEERS];
	unsigned met, started, stopped, over, closed;
	int failed;
	char why[768], lines[64], log[64]; /* the culprit's last words */
	struct cause cause;
	size_t queried;
	bool told[PEERS + 1]; /* how a node is */
};

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	struct hub_fixture *s = owner;

	s->met++;
	assert_int_equal(m->nnodes, PEERS + 1);
	assert_int_equal(s->started, 0);
	return s->deed == DEED_OWN_PLAN ? failure_set(why, -EINVAL, "it can't be made") : 0;
}

static void end_here(struct hub_fixture *s)
{
	static struct outcome o = { .end = { .how = ENDED_SIGNAL, .value = SIGTERM },
		.asked = ASKED_TO_STOP }; /* it is borrowed */
	struct node_end end = { .outcomes = &o, .count = 1, .cause = s->cause };

	member_ended(&s->member, &end, NULL, 0);
}

static void on_stop(void *owner, const struct stop *stop)
{
	struct hub_fixture *s = owner;

	s->stopped++;
	s->cause = stop->cause;
	end_here(s);
}

static void on_forward(void *owner, int signal)
{
	(void)owner, (void)signal;
}

static void on_pause(void *owner, const struct job_end *end, uint64_t delay_ms)
{
	(void)owner, (void)end, (void)delay_ms;
	fail();
}

static void on_start(void *owner, unsigned attempt, unsigned master_port)
{
	struct hub_fixture *s = owner;
	bool asked[PEERS + 1] = { true, false, false };

	s->started++;
	s->queried = member_query(&s->member, 17, asked);
	assert_int_equal(attempt, 0);
	assert_int_equal(master_port, 29500);
	assert_true(!asked[0] && asked[1] && asked[2]);
	for (int i = 0; s->deed == DEED_DOES_NOT_READ && i < FLOOD; i++)
		member_forward(&s->member, SIGUSR1);
}

static void finish(struct hub_fixture *s)
{
	for (unsigned i = 0; i < PEERS; i++)
		link_close(&s->peers[i].link, false, NULL);
	member_close(&s->member);
}

static void on_over(void *owner, const struct job_end *end)
{
	struct hub_fixture *s = owner;

	s->over++;
	(void)snprintf(s->why, sizeof s->why, "%s", end->verdict.text);
	if (end->evidence) {
		(void)snprintf(s->lines, sizeof s->lines, "%s", end->evidence->words.lines);
		(void)snprintf(s->log, sizeof s->log, "%s", end->evidence->words.log);
	}
	member_close(&s->member);
}

static void on_failed(void *owner, const struct failure *why)
{
	struct hub_fixture *s = owner;

	assert_int_equal(s->failed, 0);
	s->failed = why->code;
	(void)snprintf(s->why, sizeof s->why, "%s", why->text);
	member_close(&s->member);
}

static void on_closed(void *owner)
{
	struct hub_fixture *s = owner;

	s->closed++;
	link_close(&s->peers[1].link, false, NULL); /* one that does not read does not see it */
	uv_close((uv_handle_t *)&s->guard, NULL);
	uv_close((uv_handle_t *)&s->talking, NULL);
}

static const struct bus no_bus;

static void on_status(void *owner, unsigned node, const struct message_status *told)
{
	struct hub_fixture *s = owner;

	assert_in_range(node, 1, PEERS);
	assert_int_equal(told->query, 17);
	assert_int_equal(told->len, node);
	assert_memory_equal(told->at, "{}", node);
	s->told[node] = true;
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
	.status = on_status,
};

static void ask(struct fake_peer *p)
{
	const struct stop stop = { .urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .at_ns = uv_hrtime() } };

	party_send(&p->link, &(struct message){ MESSAGE_STOP, .stop = stop });
}

static void on_ready(struct link *l)
{
	struct fake_peer *p = l->owner;
	enum deed deed = p->node == 2 ? p->fixture->deed : DEED_NONE;
	struct message_join j = { .node_rank = p->node,
		.nnodes = PEERS + 1,
		.nproc = 1,
		.name = "host",
		.version = LAUNCHD_VERSION,
		.reached = "127.0.0.1" };

	if (deed == DEED_NO_WORKERS)
		j.nproc = 0;
	if (p->fixture->deed == DEED_ASKS_EARLY) {
		j.node_rank = NODE_RANK_UNKNOWN;
		if (p->node == 1)
			return; /* it only looks on */
	}
	party_send(&p->link, &(struct message){ MESSAGE_JOIN, .join = j });
	if (deed == DEED_ASKS_EARLY)
		ask(p);
}

static void refuse(struct fake_peer *p)
{
	const struct message_refused m = { REFUSED_JOB, -ENODEV, "no such device here" };

	party_send(&p->link, &(struct message){ MESSAGE_REFUSED, .refused = m });
}

/* Words that would be kept for the verdict. */
static void talk(struct fake_peer *p)
{
	static char words[32 << 10];
	struct message_record r = { .rank = 2, .command = words };

	memset(words, 'x', sizeof words - 1);
	for (int i = 0; i < 4 && p->link.state == LINK_OPEN; i++) /* not faster than it is read */
		party_send(&p->link, &(struct message){ MESSAGE_RECORD, .record = r });
}

static void on_talking(uv_timer_t *t)
{
	talk(t->data);
}

/* Its one worker ends: by itself with words, or asked. */
static void end_there(struct fake_peer *p, bool failed)
{
	const struct message_record r = { .rank = p->node,
		.words = { failed ? "its last line\n" : "a line of another\n", "/log/2" } };
	struct outcome o = { .rank = p->node,
		.pid = 10,
		.asked = failed ? ASKED_NOTHING : ASKED_TO_STOP,
		.end = { ENDED_EXIT, failed ? 7 : 1, false },
		.ended_ns = uv_hrtime() };
	const struct node_end end = { .cause = { .kind = CAUSE_FAILURE, .at_ns = o.ended_ns } };

	party_send(&p->link, &(struct message){ MESSAGE_OUTCOMES, .outcomes = { 0, &o, 1 } });
	party_send(&p->link, &(struct message){ MESSAGE_RECORD, .record = r });
	party_send(&p->link, &(struct message){ MESSAGE_ENDED, .ended = end });
}

static void be_ready(struct fake_peer *p, enum deed deed)
{
	if (deed == DEED_DOES_NOT_READ)
		(void)uv_read_stop((uv_stream_t *)p->link.tcp);
	party_send(&p->link, &(struct message){ .type = MESSAGE_READY });
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct fake_peer *p = l->owner;
	enum deed deed = p->node == 2 ? p->fixture->deed : DEED_NONE;
	struct arena arena = { 0 };
	struct message m;

	assert_in_range(type, MESSAGE_JOIN, MESSAGE_END - 1);
	p->heard[type]++;
	if (type == MESSAGE_REFUSED && message_get(type, at, len, &arena, &m) == 0)
		(void)snprintf(p->refusal, sizeof p->refusal, "%s", m.refused.text);
	if (type == MESSAGE_WELCOME && deed == DEED_REFUSES)
		refuse(p);
	else if (type == MESSAGE_WELCOME && deed == DEED_GOES)
		link_close(l, false, NULL);
	else if (type == MESSAGE_WELCOME)
		be_ready(p, deed);
	else if (type == MESSAGE_QUERY)
		party_send(&p->link,
			&(struct message){ MESSAGE_STATUS, .status = { 17, "{}", p->node } });
	else if (type == MESSAGE_START && deed == DEED_TALKS)
		(void)uv_timer_start(&p->fixture->talking, on_talking, 1, 1);
	else if (type == MESSAGE_START && deed == DEED_FAILS)
		end_there(p, true);
	else if (type == MESSAGE_STOP && p->fixture->deed == DEED_FAILS && p->node == 1)
		end_there(p, false);
	else if (type == MESSAGE_START && deed == DEED_NONE && p->node == 2)
		ask(p);
	else if (type == MESSAGE_STOP && p->fixture->deed != DEED_FAILS)
		link_close(l, true, NULL); /* its workers' ends are not what is tested */
}

static void on_link_closed(struct link *l, const char *why)
{
	struct fake_peer *p = l->owner;

	(void)why;
	p->closed++;
	if (p->fixture->deed == DEED_NO_WORKERS && p->node == 2)
		finish(p->fixture);
}

static void on_guard(uv_timer_t *t)
{
	(void)t;
	fail_msg("it takes too long");
}

static void make(struct hub_fixture *s, enum deed deed)
{
	bool keyed = deed == DEED_DOES_NOT_READ;

	*s = (struct hub_fixture){ .deed = deed };
	s->config = (struct member_config){ .way = MEET_STATIC,
		.nnodes = PEERS + 1,
		.nproc = 1,
		.node_rank_known = deed != DEED_ASKS_EARLY,
		.name = "self",
		.hub_addr = "127.0.0.1",
		.master_addr = "127.0.0.1",
		.master_port = 29500,
		.key = { .there = keyed },
		.join_timeout_ms = LIMIT_MS,
		.node_timeout_ms = LIMIT_MS,
		.grace_ms = 1000,
		.arena = &s->arena };
	assert_int_equal(uv_loop_init(&s->loop), 0);
	(void)uv_timer_init(&s->loop, &s->guard);
	(void)uv_timer_init(&s->loop, &s->talking);
	s->guard.data = s;
	s->talking.data = &s->peers[1];
	(void)uv_timer_start(&s->guard, on_guard, LIMIT_MS, 0);
	member_start(&s->member, &s->loop, &s->config, &events, s, &no_bus, &s->memory);
	while (s->member.role != MEMBER_HUB)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void dial(struct hub_fixture *s)
{
	for (unsigned i = 0; i < PEERS; i++) {
		struct address to;
		struct failure why = { 0 };
		struct fake_peer *p = &s->peers[i];

		*p = (struct fake_peer){ .fixture = s, .node = i + 1 };
		p->link = (struct link){ .owner = p,
			.on_ready = on_ready,
			.on_message = on_message,
			.on_closed = on_link_closed };
		assert_int_equal(
			address_parse("127.0.0.1", (uint16_t)hub_port(&s->member.hub), &to), 0);
		assert_int_equal(
			link_dial(&p->link, &s->loop, &to, &s->member.party.auth, &why), 0);
	}
}

static const struct row {
	const char *says;
	enum deed deed;
	int failed;
	unsigned met, started, stopped, over, refused; /* refused: the first node */
	const char *why;
} rows[] = {
	{ "all is well until it is asked to end", DEED_NONE, 0, 1, 1, 1, 1, 0, "SIGTERM" },
	{ "a node has no plan", DEED_REFUSES, -ENODEV, 1, 0, 0, 0, 1, "node 2, host (127.0.0.1:" },
	{ "a node goes after the welcome", DEED_GOES, -ECONNRESET, 1, 0, 0, 0, 1, "node 2, host" },
	{ "a node without workers is none", DEED_NO_WORKERS, 0, 0, 0, 0, 0, 0, "" },
	{ "a request of a node that has no rank yet", DEED_ASKS_EARLY, 0, 0, 0, 0, 1, 0,
		"SIGTERM" },
	{ "a node that never ends to talk", DEED_TALKS, 0, 1, 1, 1, 1, 0,
		"it sent more data than a node may" },
	{ "node rank 0 has no plan", DEED_OWN_PLAN, -EINVAL, 1, 0, 0, 0, 1, "it can't be made" },
	{ "a worker of another node, and what it wrote last", DEED_FAILS, 0, 1, 1, 1, 1, 0,
		"root cause: rank 2 (local rank 0, pid 10) on host (node 2): exit code 7" },
	{ "a node that does not read", DEED_DOES_NOT_READ, 0, 1, 1, 1, 1, 0, "has not read" },
};

static void test_hub(void **state)
{
	const struct row *row = *state;
	struct hub_fixture s;

	make(&s, row->deed);
	dial(&s);
	assert_int_equal(uv_run(&s.loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(s.closed, 1);
	assert_int_equal(s.failed, row->failed);
	assert_int_equal(s.met, row->met);
	assert_int_equal(s.started, row->started);
	assert_int_equal(s.stopped, row->stopped);
	assert_int_equal(s.over, row->over);
	assert_contains(s.why, row->why);
	assert_int_equal(s.peers[0].heard[MESSAGE_REFUSED], row->refused);
	if (row->refused)
		assert_string_equal(s.peers[0].refusal, s.why);
	assert_string_equal(s.lines, row->deed == DEED_FAILS ? "its last line\n" : "");
	assert_string_equal(s.log, row->deed == DEED_FAILS ? "/log/2" : "");
	assert_int_equal(s.peers[0].heard[MESSAGE_START], row->started);
	assert_int_equal(s.peers[0].heard[MESSAGE_QUERY], row->started);
	assert_int_equal(s.queried, row->started ? PEERS : 0);
	if (row->deed != DEED_DOES_NOT_READ) /* else the job ends before it is heard */
		assert_int_equal(s.told[1], row->started);
	for (unsigned i = 0; i < PEERS; i++)
		assert_int_equal(s.peers[i].closed, 1);
	assert_int_equal(uv_loop_close(&s.loop), 0);
	arena_done(&s.memory);
	arena_done(&s.arena);
}

static void test_lives(void **state)
{
	(void)state;
	assert_life(&hub_life,
		(const char *const[]){ "meeting: preparing over closed",
			"preparing: running over closed", "running: over closed", "over: closed",
			"closed:", NULL });
	assert_life(&spoke_life,
		(const char *const[]){ "dialing: joining over closed",
			"joining: dialing ready over closed", "ready: running over lasting closed",
			"running: ended over lasting closed", "ended: running over lasting closed",
			"over: lasting closed", "lasting: closed", "closed:", NULL });
}

TESTS(hub)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN);
	SUITE_ROWS(&s, test_hub, rows);
	suite_add(&s, "the states of the hub and of a spoke", test_lives, NULL, NULL);
	return suite_run(&s);
}
