/* test_cgroup_kill.c - how a leaf ends, with all that is in it and nothing else. */
#include "tests/unit/daemon/workers/leaf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/monotonic.h"

/* Reaps all children; those of the dead, too, where this process is their reaper. */
static void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Everything that signals and a search of processes are bad at: it forks for ever, each process in
 * a session of its own, with its parent gone and every signal ignored. */
static void act_bomb(int tell)
{
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_IGN);
	for (int i = 0; i < 8; i++)
		if (fork() == 0)
			break;
	for (unsigned generation = 0;; generation++) {
		pid_t pid = fork();

		if (generation == 5)
			(void)!write(tell, "x", 1);
		if (pid != 0)
			_exit(0);
		(void)setsid();
	}
}

static const char *part_bomb(void)
{
	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(leaf_fork(act_bomb) > 0, "the bomb goes off");
	HOLDS(cgroup_leaf_kill(&leaf) == 0, "it can be killed");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "the leaf can be removed: nothing lives");
	return NULL;
}

static void test_bomb(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_bomb);
	reap_all(); /* ends only if none of them lives: they are ours */
}

/* A worker that divides the leaf, and has processes at every level, one of them frozen. */
static void act_divide(int tell)
{
	char path[PATH_MAX + 64];
	int len = snprintf(path, sizeof path, "%s", leaf.path);
	int fd;

	for (int i = 0; i < 4; i++) {
		len += snprintf(path + len, sizeof path - (size_t)len, "/sub %d", i);
		if (mkdir(path, 0755) < 0 || fork() == 0)
			break;
		(void)snprintf(path + len, sizeof path - (size_t)len, "/cgroup.procs");
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(1);
		path[len] = '\0';
	}
	if (strstr(path, "/sub 3")) {
		(void)snprintf(path + len, sizeof path - (size_t)len, "/cgroup.freeze");
		fd = open(path, O_WRONLY | O_CLOEXEC);
		(void)!write(tell, "x", 1);
		(void)!write(fd, "1", 1);
	}
	for (;;)
		(void)pause();
}

static const char *part_divided(void)
{
	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(leaf_fork(act_divide) > 0, "a worker divides it");
	HOLDS(cgroup_leaf_kill(&leaf) == 0, "all of it can be killed");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "all of it can be removed");
	return NULL;
}

static void test_divided(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_divided);
	reap_all();
}

/* The survivor inside: the supervisor whose guard was killed. */
static const char *survive(void)
{
	char path[PATH_MAX];
	struct stat st;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	(void)snprintf(path, sizeof path, "%s", leaf.path);
	HOLDS(cgroup_leaf_kill(&leaf) == -EBUSY, "from inside it would kill itself");
	HOLDS(cgroup_leaf_leave(&leaf) == 0 && !leaf.inside, "it can leave");
	HOLDS(cgroup_leaf_leave(&leaf) == 0, "leaving twice does nothing");
	HOLDS(is_in(pid, leaf_name()) && !is_in(getpid(), leaf_name()), "its children stay");
	HOLDS(cgroup_leaf_kill(&leaf) == 0, "then it can kill");
	HOLDS(waitpid(pid, NULL, 0) == pid, "the child is dead");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "and remove the leaf");
	HOLDS(stat(path, &st) < 0 && !leaf.path, "which is gone");
	return NULL;
}

static const char *part_survivor(void)
{
	int status;
	pid_t pid;

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	pid = cgroup_fork(&leaf);
	if (pid == 0) {
		const char *says = survive();

		if (says)
			(void)fprintf(stderr, "# in the leaf: %s\n", says);
		_exit(says != NULL);
	}
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the survivor is well");
	HOLDS(cgroup_leaf_remove(&leaf, 0) == 0, "whoever comes second finds nothing to do");
	return NULL;
}

static void test_survivor(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_survivor);
}

static const char *part_inside_removes(void)
{
	int status;
	pid_t pid;

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	pid = cgroup_fork(&leaf);
	if (pid == 0)
		_exit(cgroup_leaf_remove(&leaf, 3600000) == -EBUSY && !leaf.path ? 0 : 1);
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		"who is in it does not wait for himself");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "whoever is outside can");
	return NULL;
}

static void test_inside_removes(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_inside_removes);
}

/* A sibling cgroup, the parent and another launchd's leaf are none of our business. */
static const char *part_others(void)
{
	struct cgroup_leaf mine;
	pid_t beside, within, other;

	beside = fork();
	if (beside == 0)
		for (;;)
			(void)pause();
	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	within = leaf_fork(act_idle);
	mine = leaf;
	other = fork();
	if (other == 0) { /* another launchd in the same cgroup */
		if (leaf_make() < 0 || !leaf.path || leaf_fork(act_idle) < 0)
			_exit(1);
		if (cgroup_leaf_kill(&mine) < 0 || cgroup_leaf_remove(&mine, BOUND_MS) < 0)
			_exit(2);
		if (access(leaf.path, F_OK) < 0 || waitpid(-1, NULL, WNOHANG) != 0)
			_exit(3); /* its own is as it was */
		_exit(cgroup_leaf_kill(&leaf) || cgroup_leaf_remove(&leaf, BOUND_MS) ? 4 : 0);
	}
	HOLDS(within > 0 && beside > 0 && other > 0, "they run");
	for (int status; other > 0; other = 0)
		HOLDS(waitpid(other, &status, 0) == other && status == 0, "leaves are apart");
	HOLDS(waitpid(within, NULL, 0) == within, "what was in the leaf is dead");
	HOLDS(waitpid(beside, NULL, WNOHANG) == 0, "what was beside it lives");
	return NULL;
}

static void test_others(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_others);
}

static const char *part_busy(void)
{
	char path[PATH_MAX];
	int64_t before;

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(leaf_fork(act_idle) > 0, "something lives in it");
	(void)snprintf(path, sizeof path, "%s", leaf.path);
	before = monotonic_ms();
	HOLDS(cgroup_leaf_remove(&leaf, 50) == -EBUSY, "it can't be removed");
	HOLDS(monotonic_ms() - before >= 50, "the time given was used");
	HOLDS(!leaf.path && leaf.dir == -1, "it is given up");
	HOLDS(access(path, F_OK) == 0, "but it is there");
	return NULL;
}

static void test_busy(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_busy);
}

TESTS(cgroup_kill)
{
	static struct suite s;

	suite_add(&s, "what forks without end is ended", test_bomb, NULL, trial_done);
	suite_add(&s, "cgroups within go, too", test_divided, NULL, trial_done);
	suite_add(
		&s, "a survivor in it leaves, kills and removes", test_survivor, NULL, trial_done);
	suite_add(&s, "nobody removes what he is in", test_inside_removes, NULL, trial_done);
	suite_add(&s, "nothing outside is touched", test_others, NULL, trial_done);
	suite_add(&s, "what lives on is waited for, but not longer than said", test_busy, NULL,
		trial_done);
	return suite_run(&s);
}
