/* test_hub_join.c - whom node rank 0's launcher takes, whom it turns away, and what is said of it.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"

enum { FIRST = 3, LIMIT_MS = 60000, ANY = -1 };

/* A launcher that dials; without a name: none. */
struct who {
	const char *name;
	int rank; /* ANY: it has none */
	unsigned nnodes, nproc;
	const char *run_id, *job;
	unsigned max_restarts;
	enum store_wish store;
};

struct row {
	const char *says;
	unsigned nnodes;
	struct who
		first[FIRST]; /* before the job starts, which is when all have come, or are late */
	struct who last;      /* comes when the job has started, or was refused */
	bool unranked;        /* the hub has no rank, either */
	bool required, stopping; /* --control required; the last one comes when it is being ended */
	const char *run_id, *job;
	int failed;        /* of the hub */
	const char *told;  /* by the hub, of all that it says */
	const char *heard; /* by the first node */
	bool told_once;
	const char *never_told;
	enum refusal why; /* of the last one, and its words; NULL: it is not refused */
	const char *refusal;
};

struct hub_fixture;

struct fake_peer {
	struct link link;
	struct hub_fixture *fixture;
	const struct who *who;
	bool closed;
	struct message_refused refused;
	char heard[MESSAGE_TEXT_SIZE];
};

struct hub_fixture {
	const struct row *row;
	uv_loop_t loop;
	uv_timer_t guard;
	struct member member;
	struct bus bus;
	struct member_config config;
	struct arena arena, memory;
	struct fake_peer peers[FIRST + 1];
	struct text said;
	int failed;
	bool ended;
};

static void finish(struct hub_fixture *s)
{
	if (s->ended)
		return;
	s->ended = true;
	for (unsigned i = 0; i <= FIRST; i++)
		if (s->peers[i].who)
			link_close(&s->peers[i].link, false, NULL);
	member_close(&s->member);
	uv_close((uv_handle_t *)&s->guard, NULL);
}

static void on_ready(struct link *l)
{
	struct fake_peer *p = l->owner;
	struct message_join j = {
		.node_rank = p->who->rank == ANY ? NODE_RANK_UNKNOWN : (unsigned)p->who->rank,
		.nnodes = p->who->nnodes ? p->who->nnodes : p->fixture->row->nnodes,
		.nproc = p->who->nproc ? p->who->nproc : 1,
		.max_restarts = p->who->max_restarts,
		.store = p->who->store,
		.run_hash = message_hash(p->who->run_id),
		.job_hash = message_hash(p->who->job),
		.version = LAUNCHD_VERSION,
		.reached = "127.0.0.1",
	};

	(void)strncpy(j.name, p->who->name, sizeof j.name - 1);
	(void)strncpy(j.job, p->who->job ? p->who->job : "", sizeof j.job - 1);
	(void)strncpy(j.run_id, p->who->run_id ? p->who->run_id : "", sizeof j.run_id - 1);
	party_send(&p->link, &(struct message){ MESSAGE_JOIN, .join = j });
}

static void on_message(struct link *l, unsigned type, const unsigned char *at, size_t len)
{
	struct fake_peer *p = l->owner;
	struct arena arena = { 0 };
	struct message m;

	assert_int_equal(message_get(type, at, len, &arena, &m), 0);
	if (type == MESSAGE_WELCOME)
		party_send(l, &(struct message){ .type = MESSAGE_READY });
	else if (type == MESSAGE_WAITING)
		memcpy(p->heard, m.waiting, sizeof p->heard);
	else if (type == MESSAGE_REFUSED)
		p->refused = m.refused;
	arena_done(&arena);
}

static void on_link_closed(struct link *l, const char *why)
{
	struct fake_peer *p = l->owner;

	(void)why;
	p->closed = true;
	if (p == &p->fixture->peers[FIRST])
		finish(p->fixture);
}

static void dial(struct hub_fixture *s, struct fake_peer *p, const struct who *who)
{
	struct address to;
	struct failure why = { 0 };

	*p = (struct fake_peer){ .fixture = s, .who = who };
	p->link = (struct link){ .owner = p,
		.on_ready = on_ready,
		.on_message = on_message,
		.on_closed = on_link_closed };
	assert_int_equal(address_parse("127.0.0.1", (uint16_t)hub_port(&s->member.hub), &to), 0);
	assert_int_equal(link_dial(&p->link, &s->loop, &to, &s->member.party.auth, &why), 0);
}

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	(void)owner, (void)m, (void)why;
	return 0;
}

static void on_stop(void *owner, const struct stop *stop)
{
	(void)owner, (void)stop; /* the workers take their time */
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
	const struct stop asked = { .urgency = URGENCY_STOP,
		.signal = SIGTERM,
		.cause = { .kind = CAUSE_SIGNAL, .signal = SIGTERM, .at_ns = 1 } };
	struct hub_fixture *s = owner;

	(void)attempt, (void)master_port;
	if (s->row->stopping)
		member_asked(&s->member, &asked);
	if (s->row->last.name)
		dial(s, &s->peers[FIRST], &s->row->last);
	else
		finish(s);
}

static void on_over(void *owner, const struct job_end *end)
{
	(void)owner, (void)end;
	fail();
}

static void say(struct hub_fixture *s, enum note_level level, const char *text)
{
	text_printf(&s->said, "%s: %s\n", note_word(level), text);
}

static void on_failed(void *owner, const struct failure *why)
{
	struct hub_fixture *s = owner;

	s->failed = why->code;
	say(s, NOTE_WARNING, why->text);
	if (!s->peers[FIRST].who || s->peers[FIRST].closed)
		finish(s);
}

static void on_closed(void *owner)
{
	(void)owner;
}

static void on_note(void *owner, const struct event *e)
{
	struct hub_fixture *s = owner;

	say(owner, e->note.level, e->note.text);
	if (strstr(e->note.text, "there is no job"))
		dial(s, &s->peers[FIRST], &s->row->last);
}

static void on_node_joined(void *owner, const struct event *e)
{
	struct hub_fixture *s = owner;

	text_printf(&s->said, "joined: node %u, %s\n", e->other.rank, e->other.name);
}

static void on_node_lost(void *owner, const struct event *e)
{
	struct hub_fixture *s = owner;

	text_printf(
		&s->said, "lost: node %u, %s: %s\n", e->other.rank, e->other.name, e->other.detail);
}

static const struct observer observer = {
	.on = {
		[EVENT_NOTE] = on_note,
		[EVENT_NODE_JOINED] = on_node_joined,
		[EVENT_NODE_LOST] = on_node_lost,
	},
};

static const struct member_events events = {
	.met = on_met,
	.stop = on_stop,
	.forward = on_forward,
	.pause = on_pause,
	.start = on_start,
	.over = on_over,
	.failed = on_failed,
	.closed = on_closed,
};

static void on_guard(uv_timer_t *t)
{
	(void)t;
	fail_msg("it takes too long");
}

static void make(struct hub_fixture *s, const struct row *row)
{
	*s = (struct hub_fixture){ .row = row };
	s->config = (struct member_config){ .way = MEET_STATIC,
		.required = row->required ? "--control required" : NULL,
		.nnodes_from = "NNODES",
		.nnodes = row->nnodes,
		.nproc = 1,
		.node_rank_known = !row->unranked,
		.name = "n0",
		.run_id = row->run_id,
		.job = row->job,
		.hub_addr = "127.0.0.1",
		.master_addr = "127.0.0.1",
		.master_port = 29500,
		.join_timeout_ms = LIMIT_MS,
		.node_timeout_ms = LIMIT_MS,
		.grace_ms = 1000,
		.arena = &s->arena };
	assert_int_equal(uv_loop_init(&s->loop), 0);
	(void)uv_timer_init(&s->loop, &s->guard);
	(void)uv_timer_start(&s->guard, on_guard, LIMIT_MS, 0);
	bus_add(&s->bus, &observer, s);
	member_start(&s->member, &s->loop, &s->config, &events, s, &s->bus, &s->memory);
	while (s->member.role != MEMBER_HUB)
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

/* Who has not joined when these have is late. */
static void let_join(struct hub_fixture *s)
{
	unsigned count = 1;

	for (unsigned i = 0; i < FIRST; i++) {
		if (!s->row->first[i].name)
			continue;
		dial(s, &s->peers[i], &s->row->first[i]);
		count++;
	}
	while (s->member.hub.joined < count && !s->failed)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
	if (s->failed)
		return;
	s->member.party.deadline_ms = uv_now(&s->loop) + 1;
	hub_wait(&s->member.hub);
}

#define IS(n, r) .name = (n), .rank = (r)
#define HERE     "; this launcher listened on n0, port "
#define LATE     "the job has started without this node, which arrived after --join-timeout"

/* clang-format off */
static const struct row rows[] = {
	{ "a node that is one too many hears who the others are", 3,
		{ { IS("n10", 2) }, { IS("n2", 1) } }, .last = { IS("n3", ANY) },
		.why = REFUSED_RUNNING, .refusal = "the job already has all of its 3 nodes (n0, n2, n10)" },
	{ "so does one of a rank that another has", 2, { { IS("n1", 1) } }, .last = { IS("n3", 1) },
		.why = REFUSED_RUNNING, .refusal = "the job already has all of its 2 nodes (n0, n1)" },
	{ "and one of a job of another size", 2, { { IS("n1", 1) } }, .last = { IS("n3", 7), .nnodes = 9 },
		.why = REFUSED_RUNNING, .refusal = "the job already has all of its 2 nodes (n0, n1)" },
	{ "a node that is there can't come twice", 2, { { IS("n1", 1) } }, .last = { IS("n1", 1) },
		.why = REFUSED_RUNNING, .refusal = "and node 1 has a launcher in it that is alive, on this host" },
	{ "nor while another one has not come", 3, { { IS("n1", 1) } }, .last = { IS("n1", 1) },
		.why = REFUSED_RUNNING, .refusal = "and node 1 has a launcher in it that is alive, on this host" },
	{ "a node that never came is one that the others miss", 3, { { IS("n1", 1) } },
		.last = { IS("n2", 2) }, .told = "note: node 2 arrived after --join-timeout: n2 "
			"(127.0.0.1:",
		.why = REFUSED_UNABLE, .refusal = LATE },
	{ "also if it has no rank, of which it must say the rest itself", 3, { { IS("n1", 1) } },
		.last = { IS("n2", ANY) }, .told = "note: a node arrived after --join-timeout: n2 "
			"(127.0.0.1:",
		.why = REFUSED_UNABLE, .refusal = LATE },
	{ "it has another number of workers", 3, { { IS("n1", 1) } }, .last = { IS("n2", 2), .nproc = 2 },
		.why = REFUSED_RUNNING, .refusal = LATE ": its number of workers differs" },
	{ "another one has", 3, { { IS("n1", 1), .nproc = 2 } }, .last = { IS("n2", 2) },
		.why = REFUSED_RUNNING, .refusal = LATE ": its number of workers differs" },
	{ "the job is ending", 3, { { IS("n1", 1) } }, .last = { IS("n2", 2) }, .stopping = true,
		.why = REFUSED_RUNNING, .refusal = LATE ", and is ending" },
	{ "a node rank that the job does not have", 2, { { IS("n1", 2) } }, .failed = -EINVAL,
		.told = ") has node rank 2, but the job has 2 nodes\n" },
	{ "who is missing is known by its rank, and who is here by name", 3, { { IS("n2", 2) } },
		.required = true, .failed = -ETIMEDOUT,
		.told = ": node 1 did not join within 60 s (--join-timeout); joined: n0, n2" HERE },
	{ "a job that starts without one says so", 2, { { .name = NULL } },
		.told = "warning: node 1 did not join within 60 s (--join-timeout); joined: n0; "
			"the job starts anyway, but won't notice if it fails\n" },
	{ "without two", 3, { { .name = NULL } },
		.told = "nodes 1, 2 did not join within 60 s (--join-timeout); joined: n0; the "
			"job starts anyway, but won't notice if they fail\n" },
	{ "nodes without ranks: who is missing has no name", 4,
		{ { IS("n10", ANY) }, { IS("n2", ANY) } }, .required = true, .failed = -ETIMEDOUT,
		.told = ": 1 of 4 nodes did not join within 60 s (--join-timeout); joined: n0, "
			"n2, n10" HERE },
	{ "some with ranks, some without", 4, { { IS("n10", 1) }, { IS("n2", ANY) } },
		.required = true, .failed = -ETIMEDOUT,
		.told = ": 1 of 4 nodes did not join within 60 s (--join-timeout); joined: n0, "
			"n10, n2" HERE },
	{ "two of them are missing", 3, { { .name = NULL } }, .unranked = true, .required = true,
		.failed = -ETIMEDOUT,
		.told = ": 2 of 3 nodes did not join within 60 s (--join-timeout); joined: n0" HERE },
	{ "another number of restarts than node rank 0's counts for nothing, which is said once", 3,
		{ { IS("n1", 1), .max_restarts = 3 }, { IS("n2", 2), .max_restarts = 3 } },
		.told = " has --max-restarts 3, but node rank 0's value applies: 0\n", .told_once = true,
		.heard = " has --max-restarts 3, but node rank 0's value applies: 0" },
	{ "another store", 2, { { IS("n1", 1), .store = STORE_WISH_AGENT } },
		.told = " has --store agent, but node rank 0's value applies: rank0\n",
		.heard = "n1 (127.0.0.1:" },
	{ "both", 2, { { IS("n1", 1), .store = STORE_WISH_AGENT, .max_restarts = 1 } },
		.told = " has --max-restarts 1 and --store agent, but node rank 0's values apply: 0, "
			"rank0\n", .heard = "n1 (127.0.0.1:" },
	{ "the same store, and no wish", 3,
		{ { IS("n1", 1), .store = STORE_WISH_RANK0 }, { IS("n2", 2) } },
		.never_told = "node rank 0's value" },
	{ "who has joined is told with the rank, and who leaves when all is over is not lost", 2,
		{ { IS("n1", 1) } }, .told = "joined: node 1, n1\n", .never_told = "lost:" },
	{ "nodes without ranks are told when they have them", 3,
		{ { IS("n10", ANY) }, { IS("n2", ANY) } },
		.told = "joined: node 1, n2\njoined: node 2, n10\n", .never_told = "lost:" },
	{ "a launcher of another job is no late node", 2, { { .name = NULL } }, .run_id = "A",
		.last = { IS("n1", 1), .run_id = "B" }, .why = REFUSED_JOB,
		.told = "warning: a launcher of job \"B\" was turned away: n1 (127.0.0.1:",
		.refusal = "this port belongs to job \"A\" (--rdzv-id): give job \"B\" another "
			"--rdzv-endpoint or --control-port" },
	{ "nor is one of another step", 2, { { .name = NULL } }, .job = "srun's job 17.0",
		.last = { IS("n1", 1), .job = "srun's job 17.1" }, .why = REFUSED_JOB,
		.told = "warning: a launcher of srun's job 17.1 was turned away: n1 (127.0.0.1:",
		.refusal = "this port belongs to srun's job 17.0: give srun's job 17.1 another "
			"--rdzv-endpoint or --control-port" },
	{ "nor is one that flags have given its rank", 2, { { .name = NULL } }, .job = "srun's job 17.0",
		.last = { IS("n1", 1) }, .why = REFUSED_JOB,
		.told = "warning: a launcher of a job without --rdzv-id was turned away: n1 (127.0.0.1:",
		.refusal = "or if they are one job the same --rdzv-id" },
	{ "one of the same step is", 2, { { IS("n1", 1), .job = "srun's job 17.0" } }, .job = "srun's job 17.0",
		.told = "joined: node 1, n1\n", .never_told = "turned away" },
	{ "so does the third node where two have one rank", 3, { { IS("n1", 1) }, { IS("n2", 1) } },
		.last = { IS("n3", 2) }, .failed = -EINVAL, .told = "warning: there is no job: two launchers have node rank 1",
		.why = REFUSED_JOB, .refusal = "two launchers have node rank 1" },
	{ "whoever comes after a refusal hears it, too", 3, { { IS("n1", 1), .nnodes = 2 } },
		.last = { IS("n2", 2) }, .failed = -EINVAL,
		.told = "warning: there is no job: n1 (127.0.0.1:", .never_told = "joined:",
		.why = REFUSED_JOB, .refusal = "says that the job has 2 nodes, but n0 (node 0) says 3" },
};
/* clang-format on */

static void test_hub_join(void **state)
{
	const struct row *row = *state;
	struct hub_fixture s;

	make(&s, row);
	let_join(&s);
	assert_int_equal(uv_run(&s.loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(s.failed, row->failed);
	assert_contains(text_string(&s.said), row->told ? row->told : "");
	if (row->told_once)
		assert_null(strstr(strstr(text_string(&s.said), row->told) + 1, row->told));
	if (row->never_told)
		assert_null(strstr(text_string(&s.said), row->never_told));
	assert_contains(s.peers[0].heard, row->heard ? row->heard : "");
	assert_contains(s.peers[FIRST].refused.text, row->refusal ? row->refusal : "");
	assert_int_equal(s.peers[FIRST].refused.why, row->why);
	for (unsigned i = 0; i <= FIRST; i++)
		assert_int_equal(s.peers[i].closed, s.peers[i].who != NULL);
	assert_int_equal(uv_loop_close(&s.loop), 0);
	text_done(&s.said);
	arena_done(&s.memory);
	arena_done(&s.arena);
}

TESTS(hub_join)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN);
	SUITE_ROWS(&s, test_hub_join, rows);
	return suite_run(&s);
}
