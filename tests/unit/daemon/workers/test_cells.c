/* test_cells.c - attempts' and workers' cgroups: real ones, in which processes are born. */
#include "tests/unit/daemon/workers/leaf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/process.h"
#include "daemon/workers/cells.h"
#include "daemon/workers/spawn.h"

static struct cells cells;
static const struct worker_limits no_limits;

static bool is_there(const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", leaf.path, name);
	return access(path, F_OK) == 0;
}

static const char *part_none(void)
{
	struct cgroup_leaf none = CGROUP_LEAF_NONE;

	HOLDS(cells_open(&cells, &none, 0, 0, 2, &no_limits) == 0 && cells.dir < 0,
		"without a leaf, none");
	HOLDS(cells_add(&cells, 0) == -ENOENT, "nothing is made for a worker");
	cells_kill(&cells);
	cells_close(&cells);
	return NULL;
}

static void test_none(void **state)
{
	(void)state;
	assert_null(part_none());
}

/* A program that waits for its death. */
static pid_t start_in(int cgroup, bool must_go, struct failure *why)
{
	static const char *const argv[] = { "sleep", "1000", NULL }, *const env[] = { NULL };
	static struct inherited inherited;
	const struct stdio stdio[3] = { { .how = STDIO_INHERIT } };
	const struct spawn how = { .program = "/bin/sleep",
		.argv = (char *const *)(uintptr_t)argv,
		.env = (char *const *)(uintptr_t)env,
		.stdio = stdio,
		.inherited = &inherited,
		.cgroup = cgroup,
		.must_go = must_go };
	struct spawned p;

	if (spawn_process(&how, &p, why) < 0)
		return -1;
	fd_closep(&p.pidfd);
	return p.pid;
}

static const char *part_births(void)
{
	struct failure why = { 0 };
	int dirs[2], status;
	pid_t pids[2];

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(cells_open(&cells, &leaf, 3, 6, 2, &no_limits) == 0, "an attempt's can be made");
	for (unsigned i = 0; i < 2; i++) {
		dirs[i] = cells_add(&cells, 6 + i);
		HOLDS(dirs[i] >= 0 && fcntl(dirs[i], F_GETFD) & FD_CLOEXEC, "a worker's, too");
		pids[i] = start_in(dirs[i], true, &why);
		HOLDS(pids[i] > 0, "a program starts in it");
		(void)close(dirs[i]);
	}
	HOLDS(is_in(pids[0], "/attempt-3/rank-6") && is_in(pids[1], "/attempt-3/rank-7"),
		"each in its own");
	HOLDS(cells_add(&cells, 6) == -EEXIST, "nobody gets another one's");
	cells_kill(&cells);
	for (unsigned i = 0; i < 2; i++)
		HOLDS(waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status),
			"all are killed");
	cells_close(&cells);
	HOLDS(!is_there("attempt-3") && is_there("supervisor"), "the attempt's is gone, no other");
	HOLDS(cells.dir < 0 && cells.kill < 0, "its descriptors are closed");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "the leaf can be removed");
	return NULL;
}

static void test_births(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_births);
}

/* Its directory is gone before the start: nobody can be born there. */
static const char *part_missing(void)
{
	struct failure why = { 0 };
	pid_t pid;
	int dir;

	HOLDS(leaf_make() == 0 && cells_open(&cells, &leaf, 0, 0, 1, &no_limits) == 0,
		"there is a leaf");
	dir = cells_add(&cells, 0);
	HOLDS(dir >= 0 && unlinkat(cells.dir, "rank-0", AT_REMOVEDIR) == 0, "it goes again");
	HOLDS(start_in(dir, true, &why) < 0 && why.code < 0, "who must be there is not started");
	why = (struct failure){ 0 };
	pid = start_in(dir, false, &why);
	HOLDS(pid > 0 && !is_in(pid, "/rank-0"), "who need not is started elsewhere");
	process_undo(pid);
	(void)close(dir);
	cells_close(&cells);
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "the leaf can be removed");
	return NULL;
}

static void test_missing(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_missing);
}

/* A process that nobody has killed yet, and what workers have made. */
static const char *part_close(void)
{
	struct failure why = { 0 };
	int dir;

	HOLDS(leaf_make() == 0 && cells_open(&cells, &leaf, 0, 0, 1, &no_limits) == 0,
		"there is a leaf");
	dir = cells_add(&cells, 0);
	HOLDS(dir >= 0 && mkdirat(dir, "of a worker", 0755) == 0, "a worker divides its own");
	HOLDS(start_in(dir, true, &why) > 0, "a program starts in it");
	(void)close(dir);
	cells_close(&cells);
	HOLDS(waitpid(-1, NULL, 0) > 0, "closing ends it");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0 &&
			access(trial_path("cgroup.kill"), F_OK) == 0,
		"all goes with the leaf, at the latest");
	return NULL;
}

static void test_close(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_close);
}

TESTS(cells)
{
	static struct suite s;

	suite_add(&s, "without a leaf there is nothing to do", test_none, NULL, NULL);
	suite_add(&s, "each worker is born in its own", test_births, NULL, trial_done);
	suite_add(&s, "one that can't be entered", test_missing, NULL, trial_done);
	suite_add(&s, "closing ends and removes all of it", test_close, NULL, trial_done);
	return suite_run(&s);
}
