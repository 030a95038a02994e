/* test_child.c - what a process finds inside when it begins: its session, signals, limits, files.
 */
#include "tests/unit/daemon/workers/spawn_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/place/placing.h"

static void test_session(void **state)
{
	const char *text = bench_facts(*state);

	assert_contains(text, "leader=1 group=1 ");
	assert_contains(text, "death=9 ");
	assert_contains(text, "mark=seven\n");
}

static void on_usr2(int signal)
{
	(void)signal;
}

/* Signals are blocked, handled, ignored by whoever started us and by us; of all that a worker
 * keeps only what was ignored on entry, but for CHLD and TERM. */
static void test_signals(void **state)
{
	static const int ignored[] = { SIGHUP, SIGUSR1, SIGCHLD, SIGTERM };
	struct bench *b = *state;
	sigset_t some, after;
	const char *text;
	char expected[64];

	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	sigaddset(&some, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &some, NULL);
	(void)signal(SIGPIPE, SIG_IGN); /* as process_init() does */
	(void)signal(SIGUSR2, on_usr2);
	for (size_t i = 0; i < 4; i++) {
		sigaddset(&b->inherited.ignored, ignored[i]);
		if (ignored[i] != SIGCHLD) /* process_init() has reset it */
			(void)signal(ignored[i], SIG_IGN);
	}
	text = bench_facts(b);
	(void)sigprocmask(SIG_BLOCK, NULL, &after);
	(void)snprintf(expected, sizeof expected, "blocked=0 ignored=%x ",
		1u << (SIGHUP - 1) | 1u << (SIGUSR1 - 1));
	assert_contains(text, expected);
	assert_int_equal(sigismember(&after, SIGUSR2), 1); /* ours is as it was */
	assert_int_equal(sigismember(&after, SIGTERM), sigismember(&b->mask, SIGTERM));
}

/* PIPE that was ignored on entry stays so. */
static void test_pipe_ignored(void **state)
{
	struct bench *b = *state;
	char expected[64];

	(void)signal(SIGPIPE, SIG_IGN);
	sigaddset(&b->inherited.ignored, SIGPIPE);
	(void)snprintf(expected, sizeof expected, "ignored=%x ", 1u << (SIGPIPE - 1));
	assert_contains(bench_facts(b), expected);
}

static void test_descriptors(void **state)
{
	struct bench *b = *state;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	b->extra = fcntl(null, F_DUPFD, 200); /* as a careless parent leaves it */
	(void)close(null);
	assert_true(b->extra >= 200);
	assert_int_equal(spawn_seal_descriptors(), 0);
	assert_true(fcntl(b->extra, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC, 0);
	assert_contains(bench_facts(b), "fds=3 highest=2 ");
}

static void test_limits(void **state)
{
	struct bench *b = *state;
	struct rlimit raised = b->nofile, now;
	char expected[80];

	raised.rlim_cur = raised.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &raised), 0);
	b->inherited.nofile.rlim_cur = 77;
	(void)snprintf(expected, sizeof expected, "soft=77 hard=%llu ",
		(unsigned long long)b->nofile.rlim_max);
	assert_contains(bench_facts(b), expected);
	(void)getrlimit(RLIMIT_NOFILE, &now);
	assert_true(now.rlim_cur == raised.rlim_max); /* ours is as it was */
}

/* A kernel may have none, and a container's sandbox may forbid them. */
static bool has_memory_policies(void)
{
	return syscall(SYS_set_mempolicy, 0, NULL, 0) == 0; /* the default, which we have */
}

/* One of the CPUs that we may use, and memory of the first node. */
static void test_place(void **state)
{
	struct bench *b = *state;
	struct arena arena = { 0 };
	struct worker_place place = { .cpus = bits_make(&arena, CPU_SETSIZE),
		.memory = has_memory_policies() ? MEMORY_PREFER : MEMORY_LEFT,
		.nodes = bits_make(&arena, 1) };
	cpu_set_t ours, after;
	const char *text;
	unsigned cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
	while (!CPU_ISSET(cpu, &ours))
		cpu++;
	bits_add(&place.cpus, cpu);
	bits_add(&place.nodes, 0);
	b->place = &place;
	text = bench_facts(b);
	assert_contains(text, "cpus=1 ");
	if (has_memory_policies() && !strstr(text, "memory=? ")) /* a /proc without numa_maps */
		assert_contains(text, "memory=prefer:0 ");
	assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
	assert_true(CPU_EQUAL(&ours, &after)); /* ours is as it was */
	arena_done(&arena);
}

/* What the kernel refuses is named, and nothing runs. */
static void test_no_place(void **state)
{
	static const struct {
		enum memory_how memory;
		unsigned cpu, node;
		const char *part;
	} cases[] = {
		{ MEMORY_LEFT, BITS_MAX - 1, 0, "sched_setaffinity: Invalid argument" },
		{ MEMORY_BIND, 0, 900, "set_mempolicy: Invalid argument" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena arena = { 0 };
		struct failure why = { 0 };
		struct worker_place place = { .memory = cases[i].memory };

		if (cases[i].memory != MEMORY_LEFT && !has_memory_policies())
			continue;
		if (cases[i].cpu) {
			place.cpus = bits_make(&arena, cases[i].cpu + 1);
			bits_add(&place.cpus, cases[i].cpu);
		} else {
			place.nodes = bits_make(&arena, cases[i].node + 1);
			bits_add(&place.nodes, cases[i].node);
		}
		b->place = &place;
		b->why = why;
		assert_int_equal(bench_spawn(b, NULL, "facts", NULL), -EINVAL);
		assert_contains(b->why.text, cases[i].part);
		assert_false(b->p.refused);
		arena_done(&arena);
	}
}

/* The launcher dies without a word; its worker goes with it, and so ends the pipe it holds. */
static void test_parent_death(void **state)
{
	struct bench *b = *state;
	int pair[2];
	char text[16];
	pid_t launcher;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	b->extra = pair[0];
	b->stdio[1].how = STDIO_INHERIT;
	launcher = fork();
	assert_true(launcher >= 0);
	if (launcher == 0) {
		(void)dup2(pair[1], STDOUT_FILENO);
		if (bench_spawn(b, NULL, "wait", NULL) == 0)
			(void)pause();
		_exit(1);
	}
	(void)close(pair[1]);
	b->p.pid = launcher; /* bench_done() ends it */
	await(b->extra);
	assert_int_equal(read(b->extra, text, sizeof text), 6); /* "ready\n" */
	bench_reap(b);
	await(b->extra);
	assert_int_equal(read(b->extra, text, sizeof text), 0);
	assert_int_equal(waitpid(-1, NULL, 0) > 0, 1); /* the worker, which came to us */
}

TESTS(child)
{
	static struct suite s;

	if (!bench_find_probe())
		return 2;
#define TEST(says, test) suite_add(&s, says, test, bench_make, bench_done)
	TEST("a session and group of its own, KILL when we end, its own environment", test_session);
	TEST("default signals but for those ignored on entry, and none blocked", test_signals);
	TEST("PIPE stays ignored where it was on entry", test_pipe_ignored);
	TEST("no descriptor but 0, 1 and 2", test_descriptors);
	TEST("the limit of open files is the inherited one", test_limits);
	TEST("the CPUs and the memory that it is given", test_place);
	TEST("a place that the kernel refuses", test_no_place);
	TEST("a worker dies with its launcher", test_parent_death);
	return suite_run(&s);
}
