/* leaf_fixture.h - a leaf in a trial's cgroup, for test_cgroup.c and test_cgroup_kill.c. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_LEAF_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_LEAF_FIXTURE_H

#include "tests/unit/daemon/workers/cgroup_fixture.h"

#include "daemon/workers/cgroup.h"

enum { BOUND_MS = 20000 }; /* of every removal that must succeed; it takes a millisecond */

/* Of the calling process; children have their own copy. */
extern struct cgroup_leaf leaf;

/* Makes the trial's cgroup one that is delegated to nobody; skips the test where it can't be. */
void delegated_make(void);

/* Makes the leaf, by the code under test alone. As cgroup_leaf_make(). */
int leaf_make(void);

/* The end of the name of the cgroup in it in which a supervisor lives, with the slash. */
const char *leaf_name(void);

/* Whether the name of a process's cgroup ends so. */
bool is_in(pid_t pid, const char *end);

/* A child in the leaf that runs `act`, which says by one byte that it has come to where the test
 * goes on. -1: it does not say so. */
pid_t leaf_fork(void (*act)(int tell));

/* An act: waits for its death. */
void act_idle(int tell);

#endif
