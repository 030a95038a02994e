/* test_talks.c - see talks.h: processes of ours that talk over TCP, looked at. */
#include "daemon/witness/talks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "tests/unit/unit.h"

enum { SENT = 32 << 10, WORKERS = 2, MANY = TALKS_MAX + 4 };

/* Both ends of a connection. */
static void connect_pair(int ret[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	autoclose listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ret[0], (struct sockaddr *)&at, sizeof at), 0);
	ret[1] = accept(listener, NULL, NULL);
	assert_true(ret[1] >= 0);
}

static unsigned port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t size = sizeof at;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	return ntohs(at.sin_port);
}

/* A process that has only this socket, as its own child has, and does nothing with it. */
static pid_t start(int fd, const int all[4], bool by_child)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 4; i++)
			if (all[i] != fd)
				(void)close(all[i]);
		if (fork() > 0 && by_child)
			(void)close(fd);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	for (int i = 0; i < 2; i++) /* both are there */
		assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void send_all(int fd)
{
	static char bytes[SENT];

	assert_int_equal(send(fd, bytes, sizeof bytes, 0), sizeof bytes);
}

static const struct row {
	const char *says;
	bool by_child, to_peer, to_store;
	bool counts;
} rows[] = {
	{ "somebody sends to a worker, whose child has that socket, too", false, false, false,
		true },
	{ "somebody sends to its child", true, false, false, true },
	{ "it hears from another worker", false, true, false, false },
	{ "it hears from the store", false, false, true, false },
};

/* Of two workers the first one hears; the second one has another connection, or the other end. */
static void test_net(void **state)
{
	const struct row *row = *state;
	static struct looked workers[WORKERS];
	struct worker_sample samples[WORKERS], more[WORKERS];
	struct talks talks = { 0 };
	int all[4];
	uint64_t got;

	for (int i = 0; i < 4; i += 2)
		connect_pair(all + i);
	talks.store_port = row->to_store ? port_of(all[0]) : 0;
	workers[0] = (struct looked){ .pid = start(all[1], all, row->by_child) };
	workers[1] = (struct looked){ .pid = start(all[row->to_peer ? 0 : 3], all, false) };
	for (unsigned i = 0; i < WORKERS; i++)
		look_at_worker(&workers[i], (uint64_t)monotonic_ms(), MEMORY_LEFT, &samples[i]);
	assert_int_equal(samples[0].kids, 1);
	needs(talks_add(&talks, workers, samples, WORKERS) == 0, "needs sock_diag");
	assert_int_equal(samples[0].talk_count, !row->by_child && !row->to_store);
	send_all(all[0]);
	for (unsigned i = 0; i < WORKERS; i++)
		look_at_worker(&workers[i], (uint64_t)monotonic_ms(), MEMORY_LEFT, &more[i]);
	assert_int_equal(talks_add(&talks, workers, more, WORKERS), 0);
	got = more[0].net_bytes - samples[0].net_bytes;
	assert_true(row->counts ? got > 0 && got <= SENT : got == 0);
	assert_true(more[1].net_bytes == samples[1].net_bytes);
	talks_done(&talks);
	for (unsigned i = 0; i < WORKERS; i++) {
		for (unsigned k = 0; k < workers[i].kid_count; k++)
			(void)kill(workers[i].kids[k].pid, SIGKILL);
		(void)kill(workers[i].pid, SIGKILL);
		assert_int_equal(waitpid(workers[i].pid, NULL, 0), workers[i].pid);
	}
	for (int i = 0; i < 4; i++)
		(void)close(all[i]);
}

/* A process that has one end of each. */
static pid_t start_with(int pairs[MANY][2])
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < MANY; i++)
			(void)close(pairs[i][0]);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void send_byte(int fd)
{
	const struct timespec apart = { .tv_nsec = 30000000 }; /* of the kernel's ticks */

	(void)nanosleep(&apart, NULL);
	assert_int_equal(send(fd, "", 1, 0), 1);
}

/* Of many connections the one with which it waits for somebody is kept, though all others are
 * younger: these have answered. */
static void test_many(void **state)
{
	struct looked worker = { 0 };
	struct worker_sample s;
	struct talks talks = { 0 };
	int pairs[MANY][2];
	unsigned asking = 0;

	(void)state;
	for (int i = 0; i < MANY; i++)
		connect_pair(pairs[i]);
	worker.pid = start_with(pairs);
	send_byte(pairs[0][1]);
	for (int i = 1; i < MANY; i++)
		send_byte(pairs[i][0]);
	look_at_worker(&worker, (uint64_t)monotonic_ms(), MEMORY_LEFT, &s);
	needs(talks_add(&talks, &worker, &s, 1) == 0, "needs sock_diag");
	assert_int_equal(s.talk_count, TALKS_MAX);
	for (unsigned i = 0; i < s.talk_count; i++)
		asking += s.talks[i].sent_ms < s.talks[i].heard_ms;
	assert_int_equal(asking, 1);
	talks_done(&talks);
	(void)kill(worker.pid, SIGKILL);
	assert_int_equal(waitpid(worker.pid, NULL, 0), worker.pid);
	for (int i = 0; i < MANY; i++) {
		(void)close(pairs[i][0]);
		(void)close(pairs[i][1]);
	}
}

TESTS(talks)
{
	static struct suite s;

	SUITE_ROWS(&s, test_net, rows);
	suite_add(&s, "many connections", test_many, NULL, NULL);
	return suite_run(&s);
}
