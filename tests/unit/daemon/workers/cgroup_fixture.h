/* cgroup_fixture.h - a cgroup of the test's own, and processes in it that try something.
 *
 * Only root can make one where nobody has delegated anything: elsewhere such tests are skipped. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_CGROUP_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_CGROUP_FIXTURE_H

#include "tests/unit/unit.h"

#include <limits.h>
#include <sys/types.h>

#include "daemon/os/cgroup_paths.h"

enum { NOBODY = 65534 };

/* Which tree: a member of struct cgroup_paths. */
enum tree_kind { TREE_UNIFIED, TREE_MEMORY };

/* Makes an empty cgroup below the one we are in; skips the test where that can't be. */
void trial_make(enum tree_kind kind);

/* Its directory, or a file or cgroup in it. Static: valid until the next call but three. */
const char *trial_path(const char *name);

/* Writes to a file of it; fails the test if that fails. */
void trial_write(const char *name, const char *text);

/* Makes it the user's as systemd does: the directory, and cgroup.procs if procs_too. */
void trial_give(uid_t uid, bool procs_too);

/* Runs `part` in a new process in the cgroup, as the user, and waits for its end. What it returns
 * is NULL, or the sentence that does not hold, which fails the test. */
void trial_run(uid_t uid, const char *(*part)(void));

/* Teardown: kills what is in the cgroup, reaps, removes it. */
int trial_done(void **state);

/* In a part: returns what does not hold. */
#define HOLDS(condition, sentence) \
	do { \
		if (!(condition)) \
			return sentence; \
	} while (0)

#endif
