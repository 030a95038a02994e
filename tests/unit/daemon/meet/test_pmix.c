/* test_pmix.c - the meeting by PMIx from the launcher's side, whatever PMIx does (fake_pmix.c). */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/meet/pmix.h"
#include "daemon/plan/topology.h"

static const struct offer_row {
	const char *says;
	const char *env[5];
	bool offered;
} offers[] = {
	{ "as mpirun has it", { "PMIX_NAMESPACE=1", "PMIX_RANK=0", "PMIX_SERVER_URI41=x" }, true },
	{ "an older server", { "PMIX_SERVER_URI2=x", "PMIX_RANK=0", "PMIX_NAMESPACE=1" }, true },
	{ "nothing", { NULL }, false },
	{ "no server", { "PMIX_NAMESPACE=1", "PMIX_RANK=0" }, false },
	{ "no rank", { "PMIX_NAMESPACE=1", "PMIX_SERVER_URI2=x" }, false },
	{ "no job", { "PMIX_RANK=1", "PMIX_SERVER_URI2=x" }, false },
	{ "something like it", { "PMIX_NAMESPACE=1", "PMIX_RANK=0", "XPMIX_SERVER_URI2=x" },
		false },
};

static void test_offered(void **state)
{
	const struct offer_row *row = *state;

	assert_int_equal(pmix_is_offered(row->env), row->offered);
}

struct bench {
	struct pmix_exchange x;
	uv_loop_t loop;
	uv_timer_t later;
	unsigned done, failed;
	bool unavailable;
	char text[1024];
};

static void on_done(struct pmix_exchange *x, const void *of_rank0, size_t len)
{
	struct bench *b = x->owner;

	b->done++;
	assert_true(len < sizeof b->text);
	memcpy(b->text, of_rank0, len);
	pmix_close(x);
}

static void on_failed(struct pmix_exchange *x, const char *why, bool unavailable)
{
	struct bench *b = x->owner;

	b->failed++;
	b->unavailable = unavailable;
	strncpy(b->text, why, sizeof b->text - 1);
	pmix_close(x);
	pmix_close(x);
}

static void bench_make(struct bench *b, const char *fake)
{
	*b = (struct bench){ .x = { .on_done = on_done, .on_failed = on_failed, .owner = b } };
	assert_int_equal(setenv("FAKE_PMIX", fake, 1), 0);
	assert_int_equal(uv_loop_init(&b->loop), 0);
}

/* Runs to the end, at which nothing may be left. */
static void bench_run(struct bench *b)
{
	assert_int_equal(uv_run(&b->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(b->x.helper.state, HELPER_NONE);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

enum { UNAVAILABLE = 1, FAILED };

static const struct meeting_row {
	const char *says, *fake, *part;
	int fails;
} meetings[] = {
	{ "all goes well", "", "the card", 0 },
	{ "the process is one of its own", "Init:inspect", "the card", 0 },
	{ "a server is left by and by", "Init:connect", "the card", 0 },
	{ "... also after a failure", "Init:connect,Get:error", "PMIx_Get: UNREACHABLE (-25)",
		FAILED },
	{ "a fence that is over at once", "Fence:now", "the card", 0 },
	{ "much that is printed", "Init:flood,Fence:flood", "the card", 0 },
	{ "a server that is gone", "Init:error",
		"the launchers of this job can't meet by PMIx: PMIx_Init: UNREACHABLE (-25)",
		UNAVAILABLE },
	{ "what is printed is said, and harms no terminal", "Init:chatter,Init:error",
		"PMIx_Init: UNREACHABLE (-25); it printed: \\x1b[1mno server", UNAVAILABLE },
	{ "PMIx_Init dies", "Init:die", "its process was killed by SIGABRT in PMIx_Init",
		UNAVAILABLE },
	{ "PMIx_Init exits", "Init:exit", "its process exited with code 7 in PMIx_Init",
		UNAVAILABLE },
	{ "PMIx_Init hangs", "Init:hang", "PMIx_Init did not finish within 2.2 s", UNAVAILABLE },
	{ "PMIx_Put fails", "Put:error", "PMIx_Put: UNREACHABLE (-25)", FAILED },
	{ "PMIx_Commit fails", "Commit:error", "PMIx_Commit: UNREACHABLE (-25)", FAILED },
	{ "the fence is refused", "Fence:refused", "PMIx_Fence: ANOTHER (-47)", FAILED },
	{ "the fence fails", "Fence:error", "PMIx_Fence: UNREACHABLE (-25)", FAILED },
	{ "somebody never comes", "Fence:never",
		"not all launchers of this job reached PMIx_Fence within 0.2 s", FAILED },
	{ "somebody never comes, and nobody can leave", "Fence:never,Finalize:hang",
		"not all launchers of this job reached PMIx_Fence within 0.2 s", FAILED },
	{ "rank 0 has said nothing", "Get:error", "PMIx_Get: UNREACHABLE (-25)", FAILED },
	{ "rank 0 has said something else", "Get:string", "PMIx_Get: ANOTHER", FAILED },
	{ "rank 0 has said too much", "Get:long", "PMIx_Get: ANOTHER", FAILED },
	{ "PMIx_Get hangs", "Get:hang", "PMIx_Get did not finish within 2.2 s", FAILED },
	{ "PMIx_Finalize fails", "Finalize:error", "PMIx_Finalize: UNREACHABLE", FAILED },
	{ "PMIx_Finalize hangs", "Finalize:hang", "PMIx_Finalize did not finish within 2.2 s",
		FAILED },
};

static void test_meeting(void **state)
{
	const struct meeting_row *row = *state;
	struct failure why = { 0 };
	struct bench b;
	/* what ends by itself has all the time it needs */
	uint64_t timeout_ms = strstr(row->part, "within") ? 200 : 60000;

	bench_make(&b, row->fake);
	assert_outcome(pmix_start(&b.x, &b.loop, "the card", 9, timeout_ms, &why), 0, &why, NULL);
	bench_run(&b);
	assert_contains(b.text, row->part);
	assert_int_equal(b.done, row->fails == 0);
	assert_int_equal(b.failed, row->fails != 0);
	assert_int_equal(b.unavailable, row->fails == UNAVAILABLE);
}

static void on_later(uv_timer_t *t)
{
	struct bench *b = t->data;

	pmix_close(&b->x);
	pmix_close(&b->x);
	uv_close((uv_handle_t *)t, NULL);
}

static void test_close_at(const char *fake, uint64_t ms)
{
	struct failure why = { 0 };
	struct bench b;
	pid_t child;

	bench_make(&b, fake);
	b.later.data = &b;
	assert_int_equal(uv_timer_init(&b.loop, &b.later), 0);
	assert_outcome(pmix_start(&b.x, &b.loop, "x", 2, 60000, &why), 0, &why, NULL);
	child = b.x.helper.child;
	assert_int_equal(uv_timer_start(&b.later, on_later, ms, 0), 0);
	bench_run(&b);
	assert_int_equal(b.done + b.failed, 0);
	assert_int_equal(kill(child, 0), -1);
}

static void test_close_early(void **state)
{
	(void)state;
	test_close_at("Init:hang", 0);
}

static void test_close_in_fence(void **state)
{
	(void)state;
	test_close_at("Fence:never", 100);
}

static void test_too_long(void **state)
{
	static const char bytes[PMIX_BYTES_MAX + 1];
	struct failure why = { 0 };
	struct bench b;

	(void)state;
	bench_make(&b, "");
	assert_outcome(pmix_start(&b.x, &b.loop, bytes, sizeof bytes, 1, &why), -EMSGSIZE, &why,
		"can't start a process to meet the other launchers");
	pmix_close(&b.x);
	bench_run(&b);
	assert_int_equal(b.done + b.failed, 0);
}

static void test_never_started(void **state)
{
	struct pmix_exchange x = { 0 };

	(void)state;
	pmix_close(&x);
}

/* Beside this program lies lib/libpmix.so.2. */
static int use_fake(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n < 0)
		return -1;
	path[n] = '\0';
	*strrchr(path, '/') = '\0';
	return setenv("OPAL_PREFIX", path, 1);
}

TESTS(pmix)
{
	static struct suite s;

	if (use_fake() < 0)
		return 1;
	SUITE_ROWS(&s, test_offered, offers);
	SUITE_ROWS(&s, test_meeting, meetings);
	suite_add(&s, "closed before it has begun, it is silent", test_close_early, NULL, NULL);
	suite_add(&s, "closed while it waits, it is silent", test_close_in_fence, NULL, NULL);
	suite_add(&s, "more bytes than go in are refused", test_too_long, NULL, NULL);
	suite_add(&s, "what never started can be closed", test_never_started, NULL, NULL);
	return suite_run(&s);
}
