/* test_checkup.c - the check of several nodes, each a process here, with phases that do as a test
 * wants; they meet in a real store. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/check/checkup.h"
#include "daemon/store/store.h"
#include "daemon/store/visit.h"

/* Rows that reach a limit use BRIEF_MS: on a slow machine the other nodes still answer in time. */
enum { NODES = 3, BRIEF_MS = 2000, LONG_MS = 60000, MEMORY = 64 << 20 };

enum deed {
	DEED_GOOD,
	DEED_BAD,
	DEED_UNKNOWN,
	DEED_UNABLE,
	DEED_HANGS,
	DEED_DIES,
	DEED_MUTE,   /* its whole process never begins */
	DEED_ABSENT, /* and nobody expects it to */
	DEED_MEETS,  /* by the store, while it measures */
};

/* Of each node in each of the two phases. */
static enum deed deeds[2][NODES];

static int meet(const struct phase_input *in, struct failure *why)
{
	char key[128];
	int64_t sum;
	int rc;

	(void)snprintf(key, sizeof key, "%scount", in->keys);
	rc = visit_add(in->visit, key, 1, &sum, why);
	if (rc == 0 && sum == NODES) {
		(void)snprintf(key, sizeof key, "%sall", in->keys);
		rc = visit_set(in->visit, key, "", 0, why);
	}
	(void)snprintf(key, sizeof key, "%sall", in->keys);
	return rc < 0 ? rc : visit_wait(in->visit, key, LONG_MS, why);
}

static int measure(
	const struct phase_input *in, enum deed deed, struct text *ret, struct failure *why)
{
	if (deed == DEED_UNABLE)
		return failure_set(why, -ENODEV, "there is no such device");
	if (deed == DEED_DIES)
		(void)raise(SIGKILL);
	while (deed == DEED_HANGS)
		(void)pause();
	if (deed == DEED_MEETS && meet(in, why) < 0)
		return why->code;
	text_printf(ret, "%d", (int)deed);
	return 0;
}

static int measure_first(const struct phase_input *in, struct text *ret, struct failure *why)
{
	return measure(in, deeds[0][in->node], ret, why);
}

static int measure_second(const struct phase_input *in, struct text *ret, struct failure *why)
{
	return measure(in, deeds[1][in->node], ret, why);
}

static bool judge_fails;

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	struct finding f = { .check = "thing", .subject = "GPU 2", .text = "it is broken" };

	if (judge_fails)
		return failure_set(why, -EIO, "no judge");
	for (unsigned i = 0; i < in->nnodes; i++) {
		int deed = told[i] ? atoi(told[i]) : DEED_GOOD;

		f.health = deed == DEED_BAD  ? HEALTH_BAD :
			deed == DEED_UNKNOWN ? HEALTH_UNKNOWN :
					       HEALTH_GOOD;
		charges_add(ret, i, &f);
	}
	return 0;
}

static struct phase first = { .name = "first", .measure = measure_first, .judge = judge };
static struct phase second = { .name = "second", .measure = measure_second, .judge = judge };
static const struct phase *const both[] = { &first, &second };

static bool reaches_a_limit(void)
{
	for (unsigned i = 0; i < 2 * NODES; i++)
		if (deeds[i / NODES][i % NODES] == DEED_HANGS ||
			deeds[i / NODES][i % NODES] == DEED_MUTE)
			return true;
	return false;
}

static void checkup_set_limits(void)
{
	first.limit_ms = second.limit_ms = reaches_a_limit() ? BRIEF_MS : LONG_MS;
}

struct fixture {
	uv_loop_t loop;
	struct store store;
	struct checkup_answer *answers[NODES]; /* shared with its process */
	int ended[2];
};

static void make(struct fixture *f)
{
	const struct store_config c = { .addr = "127.0.0.1", .memory_max = MEMORY };
	struct failure why = { 0 };

	assert_int_equal(uv_loop_init(&f->loop), 0);
	assert_outcome(store_open(&f->store, &f->loop, &c, &why), 0, &why, NULL);
	assert_int_equal(pipe(f->ended), 0);
	for (unsigned i = 0; i < NODES; i++) {
		f->answers[i] = mmap(NULL, checkup_answer_size(NODES), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		assert_true(f->answers[i] != MAP_FAILED);
	}
}

static void on_store_closed(struct store *s)
{
	(void)s;
}

static void done(struct fixture *f)
{
	store_close(&f->store, on_store_closed);
	(void)uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	(void)close(f->ended[0]);
	for (unsigned i = 0; i < NODES; i++)
		(void)munmap(f->answers[i], checkup_answer_size(NODES));
}

static pid_t begin_node(const struct fixture *f, const struct checkup_input *in)
{
	struct failure why = { 0 };
	pid_t child = fork();

	assert_true(child >= 0);
	if (child != 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (checkup_run(in, f->answers[in->node], &why) < 0)
		(void)snprintf(f->answers[in->node]->helper.text,
			sizeof f->answers[in->node]->helper.text, "%.500s", why.text);
	_exit(0);
}

/* The store works until all nodes' processes have ended, which then hold no end of the pipe. */
static void work(struct fixture *f)
{
	struct pollfd p = { .fd = f->ended[0], .events = POLLIN };

	(void)close(f->ended[1]);
	for (unsigned ms = 0; poll(&p, 1, 1) == 0; ms++) {
		assert_true(ms < LONG_MS);
		(void)uv_run(&f->loop, UV_RUN_NOWAIT);
	}
}

static void run_nodes(struct fixture *f, bool stop)
{
	bool absent[NODES];
	pid_t children[NODES];

	for (unsigned i = 0; i < NODES; i++)
		absent[i] = deeds[0][i] == DEED_ABSENT;
	for (unsigned i = 0; i < NODES; i++) {
		const struct checkup_input in = { .phases = both,
			.wanted = 3,
			.stop = stop,
			.attempt = 1,
			.node = i,
			.nnodes = NODES,
			.host = "127.0.0.1",
			.port = store_port(&f->store),
			.absent = absent };

		children[i] = absent[i] || deeds[0][i] == DEED_MUTE ? 0 : begin_node(f, &in);
	}
	work(f);
	for (unsigned i = 0; i < NODES; i++)
		assert_true(children[i] == 0 || waitpid(children[i], NULL, 0) == children[i]);
	checkup_trust(f->answers[0], NODES);
}

static const struct row {
	const char *says;
	enum deed deeds[2][NODES];
	bool stop, judge_fails;
	enum health healths[NODES];
	unsigned judged, mute;
	const char *doubts; /* each with how many nodes have it, and the first of them */
} rows[] = {
	{ "all are good", .judged = 2, .doubts = "" },
	{ "they meet in the store while they measure",
		{ { DEED_MEETS, DEED_MEETS, DEED_MEETS }, { DEED_MEETS, DEED_MEETS, DEED_MEETS } },
		.judged = 2, .doubts = "" },
	{ "one is bad: nothing follows", { { DEED_GOOD, DEED_BAD, DEED_GOOD } }, .stop = true,
		.healths = { HEALTH_GOOD, HEALTH_BAD, HEALTH_GOOD }, .judged = 1, .doubts = "" },
	{ "one is bad, which is only reported",
		{ { DEED_GOOD, DEED_BAD, DEED_GOOD }, { DEED_GOOD, DEED_BAD, DEED_BAD } },
		.healths = { HEALTH_GOOD, HEALTH_BAD, HEALTH_BAD }, .judged = 2, .doubts = "" },
	{ "one is bad in the last phase", { { 0 }, { DEED_BAD, DEED_GOOD, DEED_GOOD } },
		.stop = true, .healths = { HEALTH_BAD }, .judged = 2, .doubts = "" },
	{ "what is not known of two is said once", { { DEED_UNKNOWN, DEED_GOOD, DEED_UNKNOWN } },
		.stop = true, .healths = { HEALTH_UNKNOWN, HEALTH_GOOD, HEALTH_UNKNOWN },
		.judged = 2, .doubts = "2 from 0: GPU 2: it is broken\n" },
	{ "one can't measure", { { DEED_GOOD, DEED_UNABLE, DEED_GOOD } }, .stop = true,
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 1: first: there is no such device\n" },
	{ "one dies", { { DEED_GOOD, DEED_GOOD, DEED_DIES } },
		.healths = { HEALTH_GOOD, HEALTH_GOOD, HEALTH_UNKNOWN }, .judged = 2, .mute = 1,
		.doubts = "1 from 2: first: its process was killed by SIGKILL\n" },
	{ "one hangs", { { DEED_GOOD, DEED_HANGS, DEED_GOOD } },
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 1: first: it did not end within 2 s\n" },
	{ "node rank 0 itself hangs", { { DEED_HANGS, DEED_GOOD, DEED_GOOD } },
		.healths = { HEALTH_UNKNOWN, HEALTH_GOOD, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 0: first: it did not end within 2 s\n" },
	{ "who hangs hides nobody who is bad", { { DEED_GOOD, DEED_HANGS, DEED_BAD } },
		.stop = true, .healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_BAD }, .judged = 1,
		.mute = 1, .doubts = "1 from 1: first: it did not end within 2 s\n" },
	{ "one never comes", { { DEED_GOOD, DEED_MUTE, DEED_GOOD } },
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 1: first: it did not answer within 2 s\n"
			  "1 from 1: second: it did not answer within 2 s\n" },
	{ "one is not waited for",
		{ { DEED_GOOD, DEED_ABSENT, DEED_GOOD }, { DEED_GOOD, DEED_ABSENT, DEED_GOOD } },
		.healths = { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_GOOD }, .judged = 2, .mute = 1,
		.doubts = "1 from 1: first: its launchd has not joined the job\n"
			  "1 from 1: second: its launchd has not joined the job\n" },
	{ "nobody can judge", .judge_fails = true, .stop = true,
		.healths = { HEALTH_UNKNOWN, HEALTH_UNKNOWN, HEALTH_UNKNOWN }, .judged = 2,
		.doubts = "3 from 0: first: no judge\n3 from 0: second: no judge\n" },
};

static void assert_answer(const struct row *row, const struct checkup_answer *a)
{
	struct text doubts = { 0 };

	assert_int_equal(a->judged, row->judged);
	assert_int_equal(a->mute, row->mute);
	for (unsigned i = 0; i < NODES; i++) {
		assert_int_equal(a->node[i].health, row->healths[i]);
		if (row->healths[i] == HEALTH_BAD)
			assert_string_equal(a->node[i].reason.text, "it is broken");
	}
	for (unsigned i = 0; i < a->doubts; i++) {
		text_printf(&doubts, "%u from %u: ", a->doubt[i].nodes, a->doubt[i].first);
		finding_add(&doubts, &a->doubt[i].finding);
		text_add(&doubts, "\n");
	}
	assert_string_equal(text_string(&doubts), row->doubts);
	text_done(&doubts);
}

static void test_nodes(void **state)
{
	const struct row *row = *state;
	struct fixture f;

	memcpy(deeds, row->deeds, sizeof deeds);
	checkup_set_limits();
	judge_fails = row->judge_fails;
	make(&f);
	run_nodes(&f, row->stop);
	assert_answer(row, f.answers[0]);
	for (unsigned i = 0; i < NODES; i++)
		assert_string_equal(f.answers[i]->helper.text, "");
	done(&f);
}

/* The only node, or one that has no channel to the others. */
static void test_alone(void **state)
{
	struct checkup_answer *a = calloc(1, checkup_answer_size(1));
	const struct checkup_input in = {
		.phases = both, .wanted = 3, .nnodes = 1, .host = "", .stop = true
	};
	struct failure why = { 0 };

	(void)state;
	judge_fails = false;
	memset(deeds, 0, sizeof deeds);
	deeds[0][0] = DEED_HANGS;
	deeds[1][0] = DEED_BAD;
	checkup_set_limits();
	assert_int_equal(checkup_run(&in, a, &why), 0);
	checkup_trust(a, 1);
	assert_int_equal(a->judged, 2);
	assert_int_equal(a->mute, 1);
	assert_int_equal(a->node[0].health, HEALTH_BAD);
	assert_int_equal(a->doubts, 1);
	free(a);
}

static void test_unreached(void **state)
{
	struct checkup_answer *a = calloc(1, checkup_answer_size(NODES));
	const struct checkup_input in = { .phases = both,
		.wanted = 3,
		.node = 1,
		.nnodes = NODES,
		.host = "127.0.0.1",
		.port = 1 };
	struct failure why = { 0 };

	(void)state;
	assert_int_equal(checkup_run(&in, a, &why), -ECONNREFUSED);
	assert_string_equal(
		why.text, "the store at 127.0.0.1, port 1, can't be reached: Connection refused");
	free(a);
}

/* A child that has overwritten all. */
static void test_trust(void **state)
{
	struct checkup_answer *a = malloc(checkup_answer_size(NODES));

	(void)state;
	assert_non_null(a);
	memset(a, 0xff, checkup_answer_size(NODES));
	checkup_trust(a, NODES);
	assert_int_equal(a->doubts, DOUBTS_MAX);
	for (unsigned i = 0; i < DOUBTS_MAX; i++) {
		assert_int_equal(a->doubt[i].first, 0);
		assert_int_equal(
			strlen(a->doubt[i].finding.text), sizeof a->doubt[i].finding.text - 1);
	}
	for (unsigned i = 0; i < NODES; i++)
		assert_int_equal(a->node[i].health, HEALTH_GOOD);
	free(a);
}

static uint64_t more_ms(const struct settings *s)
{
	(void)s;
	return 1000;
}

static void test_limit(void **state)
{
	const struct phase brief = { .name = "brief", .limit_ms = 300 },
			   longer = { .name = "longer", .limit_ms = 2000, .more_ms = more_ms };
	const struct phase *const all[] = { &brief, &longer };
	uint64_t one = checkup_limit_ms(all, 1, NULL), two = checkup_limit_ms(all, 2, NULL);

	(void)state;
	assert_int_equal(two - one, 3000 - brief.limit_ms);
	assert_true(checkup_limit_ms(all, 3, NULL) > one + 3000);
	assert_true(one > brief.limit_ms);
}

TESTS(checkup)
{
	static struct suite s;

	SUITE_ROWS(&s, test_nodes, rows);
	suite_add(&s, "a node that is alone", test_alone, NULL, NULL);
	suite_add(&s, "the store can't be reached", test_unreached, NULL, NULL);
	suite_add(&s, "what a child wrote may be anything", test_trust, NULL, NULL);
	suite_add(&s, "its limit is that of all phases", test_limit, NULL, NULL);
	return suite_run(&s);
}
