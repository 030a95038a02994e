/* test_silence.c - who is silent and who only sleeps, or has another clock. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/daemon/net/channel.h"

#ifndef CLONE_NEWTIME /* before glibc 2.33 */
#define CLONE_NEWTIME 0x80
#endif

enum { TIMEOUT_MS = CHANNEL_TIMEOUT_MS };

static void test_silent(void **state)
{
	struct channel c;
	uint64_t heard;

	(void)state;
	channel_make_beating(&c, "k");
	channel_run_ms(&c, TIMEOUT_MS / 2);
	channel_mute(&c); /* connected, but without a sign of life */
	channel_run_ms(&c, 20);
	heard = c.hub[0].link.heard_ns;
	channel_run_until(&c, CHANNEL_SILENT, 1);
	assert_true(c.hub[0].link.heard_ns == heard);
	assert_in_range(c.hub[0].silent_ms, TIMEOUT_MS, 10 * TIMEOUT_MS);
	channel_run_ms(&c, TIMEOUT_MS);
	assert_int_equal(c.hub[0].silent, 1); /* once */
	channel_done(&c);
}

/* Its datagrams got nowhere, and those of the peer come: one of them says so. */
static void test_told(void **state)
{
	struct channel c;

	(void)state;
	channel_make_beating(&c, "k");
	channel_run_ms(&c, TIMEOUT_MS / 2);
	c.hub[0].link.beats.lost = true;
	beat_answer(&c.hub_beat, &c.hub[0].link);
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	assert_string_equal(c.dialer[0].why, "its heartbeats arrive, but ours no longer reach it");
	assert_int_equal(c.dialer[0].link.end, LINK_END_OURS);
	assert_nobody_silent(&c);
	channel_done(&c);
}

/* Several go silent at once, and the owner ends each of them when it is told. */
static void close_it(struct beat *b, struct link *l, uint64_t silent_ms)
{
	(void)b, (void)silent_ms;
	((struct end *)l->owner)->silent++;
	link_close(l, false, "silent");
}

static void test_all_silent(void **state)
{
	struct channel c;

	(void)state;
	channel_make_beating(&c, "k");
	for (unsigned i = 1; i < CHANNEL_ENDS; i++)
		channel_dial(&c, i);
	channel_run_until(&c, CHANNEL_READY, CHANNEL_ENDS);
	assert_int_equal(c.hub_beat.links, CHANNEL_ENDS);
	channel_mute(&c);
	c.hub_beat.on_silent = close_it;
	channel_run_until(&c, CHANNEL_CLOSED, CHANNEL_ENDS);
	for (unsigned i = 0; i < CHANNEL_ENDS; i++) {
		assert_int_equal(c.hub[i].silent, 1);
		assert_string_equal(c.hub[i].why, "silent");
	}
	assert_int_equal(c.hub_beat.links, 0);
	assert_false(uv_is_active((uv_handle_t *)&c.hub_beat.timer)); /* nothing wakes up */
	channel_done(&c);
}

static void nap(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* All nodes sleep: the whole process is stopped, twice as long as the time-out. */
static void test_all_sleep(void **state)
{
	pid_t waker, self = getpid();
	struct channel c;

	(void)state;
	channel_make_beating(&c, "k");
	channel_run_ms(&c, TIMEOUT_MS / 2);
	waker = fork();
	if (waker == 0) {
		(void)kill(self, SIGSTOP);
		nap(2 * TIMEOUT_MS);
		(void)kill(self, SIGCONT);
		_exit(0);
	}
	assert_true(waker > 0);
	channel_run_ms(&c, 2 * TIMEOUT_MS + TIMEOUT_MS / 2);
	assert_int_equal(waitpid(waker, NULL, 0), waker);
	assert_nobody_silent(&c);
	assert_true(c.hub_beat.fresh_ns != 0); /* it has slept indeed */
	channel_run_ms(&c, 2 * TIMEOUT_MS);
	assert_nobody_silent(&c);
	channel_done(&c);
}

/* A node of its own: 0 when its link was closed by the hub, and the hub never silent to it. */
static _Noreturn void be_dialer(const struct channel *hub)
{
	static struct channel c;

	channel_make(&c, "k", "k", channel_hear_nothing);
	channel_beat(&c, TIMEOUT_MS);
	c.address = hub->address;
	channel_dial(&c, 0);
	channel_run_until(&c, CHANNEL_DIALERS_CLOSED, 1);
	_exit(c.dialer[0].silent == 0 && c.dialer[0].ready == 1 ? 0 : 1);
}

static const struct sleep_row {
	const char *says;
	unsigned ms; /* 0: until it is reported as silent */
} sleeps[] = {
	{ "a node sleeps for half of the time-out", TIMEOUT_MS / 2 },
	{ "a node sleeps for longer", 0 },
};

static void test_sleep(void **state)
{
	const struct sleep_row *row = *state;
	int status = -1;
	struct channel c;
	pid_t node;

	channel_make(&c, "k", "k", channel_hear_nothing);
	channel_beat(&c, TIMEOUT_MS);
	node = fork();
	if (node == 0)
		be_dialer(&c);
	assert_true(node > 0);
	while (!c.hub[0].ready)
		channel_run_ms(&c, 20);
	channel_run_ms(&c, TIMEOUT_MS / 2);
	(void)kill(node, SIGSTOP);
	if (row->ms)
		channel_run_ms(&c, row->ms);
	else
		channel_run_until(&c, CHANNEL_SILENT, 1);
	(void)kill(node, SIGCONT);
	channel_run_ms(&c, TIMEOUT_MS);
	assert_int_equal(c.hub[0].silent, row->ms ? 0 : 1);
	assert_int_equal(c.hub[0].link.state, LINK_OPEN);
	link_close(&c.hub[0].link, true, NULL);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(waitpid(node, &status, 0), node);
	assert_int_equal(status, 0);
	channel_done(&c);
}

enum { AHEAD_S = 1000, NO_RIGHTS = 77 };

/* A node whose clock is ahead by AHEAD_S. */
static _Noreturn void be_ahead(const struct channel *hub)
{
	int fd, status = -1;
	char text[32];
	pid_t node;

	(void)snprintf(text, sizeof text, "monotonic %d 0", (int)AHEAD_S);
	if (unshare(CLONE_NEWTIME) < 0)
		_exit(NO_RIGHTS);
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(NO_RIGHTS);
	node = fork();
	if (node == 0)
		be_dialer(hub);
	(void)waitpid(node, &status, 0);
	_exit(status == 0 ? 0 : 1);
}

static void test_other_clock(void **state)
{
	const struct link *l;
	int status = -1;
	struct channel c;
	int64_t off;
	pid_t node;

	(void)state;
	channel_make(&c, "k", "k", channel_hear_nothing);
	channel_beat(&c, TIMEOUT_MS);
	node = fork();
	if (node == 0)
		be_ahead(&c);
	assert_true(node > 0);
	while (!c.hub[0].ready && waitpid(node, &status, WNOHANG) == 0)
		channel_run_ms(&c, 20);
	if (!c.hub[0].ready) {
		channel_done(&c);
		assert_int_equal(WEXITSTATUS(status), NO_RIGHTS);
		needs(false, "root's right to make time namespaces");
	}
	channel_run_ms(&c, TIMEOUT_MS);
	l = &c.hub[0].link;
	off = clock_offset_ns(&l->clock) - AHEAD_S * INT64_C(1000000000);
	assert_true((uint64_t)(off < 0 ? -off : off) <= clock_error_ns(&l->clock, uv_hrtime()));
	assert_true(clock_error_ns(&l->clock, uv_hrtime()) < INT64_C(1000000000));
	assert_int_equal(c.hub[0].silent, 0);
	link_close(&c.hub[0].link, true, NULL);
	channel_run_until(&c, CHANNEL_HUBS_CLOSED, 1);
	assert_int_equal(waitpid(node, &status, 0), node);
	assert_int_equal(status, 0);
	channel_done(&c);
}

TESTS(silence)
{
	static struct suite s;

	(void)signal(SIGPIPE, SIG_IGN); /* as the program does */
	suite_add(&s, "who is silent is reported, in time and once", test_silent, NULL, NULL);
	suite_add(&s, "whom the peer takes for lost is told", test_told, NULL, NULL);
	suite_add(&s, "all of them silent at once", test_all_silent, NULL, NULL);
	suite_add(&s, "all sleep, nobody is blamed", test_all_sleep, NULL, NULL);
	SUITE_ROWS(&s, test_sleep, sleeps);
	suite_add(&s, "a peer's clock is known to within the round trip", test_other_clock, NULL,
		NULL);
	return suite_run(&s);
}
