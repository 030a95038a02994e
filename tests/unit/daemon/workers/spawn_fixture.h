/* spawn_fixture.h - a place to start processes in, for test_spawn.c and test_child.c. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_SPAWN_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_SPAWN_FIXTURE_H

#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "daemon/os/process.h"
#include "daemon/workers/child.h"
#include "daemon/workers/spawn.h"

/* All that a test may leave behind when it fails in the middle; bench_done() ends it. */
struct bench {
	struct inherited inherited;
	struct failure why;
	struct spawned p;
	struct stdio stdio[3];
	const struct worker_place *place;
	sigset_t mask;
	struct sigaction actions[32];
	struct rlimit nofile;
	int extra; /* a descriptor of the test's; -1: none */
	int epoll; /* that the process joins, with the bench as its data; 0: none */
	char dir[64];
};

int bench_make(void **state);
int bench_done(void **state);

/* Finds the program probe; false: the tests can't run. */
bool bench_find_probe(void);

/* Starts a program with two arguments; NULL: the probe. */
int bench_spawn(struct bench *b, const char *program, const char *act, const char *arg);

/* Waits until fd can be read or has ended. */
void await(int fd);

/* Everything up to the end of a pipe. */
void read_all(int fd, char *ret, size_t size);

/* Waits for the process's end, reaps it, and tells. */
siginfo_t bench_ending(struct bench *b);

/* Ends and reaps the process, if there is one. */
void bench_reap(struct bench *b);

/* What a probe says of itself. */
const char *bench_facts(struct bench *b);

#endif
