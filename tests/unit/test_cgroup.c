/* test_cgroup.c - a leaf in a cgroup that is delegated to us, or not; real ones throughout. */
#include "tests/unit/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/cgroup.h"

enum { BOUND_MS = 20000 }; /* of every removal that must succeed; it takes a millisecond */

static struct arena arena;
static struct cgroup_leaf leaf = CGROUP_LEAF_NONE;

/* The leaf of the calling process, by the code under test alone. */
static int make_leaf(void)
{
	struct cgroup_paths paths;
	int rc = cgroup_paths_read("", &arena, &paths);

	return rc < 0 ? rc : cgroup_leaf_make(&paths, &arena, &leaf);
}

/* Makes the trial's cgroup one that is delegated to nobody. */
static void make_delegated(void)
{
	trial_make(TREE_UNIFIED);
	if (access(trial_path("cgroup.kill"), F_OK) < 0) /* before Linux 5.14 */
		skip();
	trial_give(NOBODY, true);
}

static bool is_in(pid_t pid, const char *end)
{
	char path[64], text[4096];
	size_t len = strlen(end);
	char *line;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	if (fd_read_file(path, text, sizeof text) < 0)
		return false;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	return strlen(line) >= len && strcmp(line + strlen(line) - len, end) == 0;
}

static const char *leaf_name(void)
{
	return strrchr(leaf.path, '/');
}

/* Reaps all children; those of the dead, too, where this process is their reaper. */
static void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* A child in the leaf that runs `act` there and is heard of when it says so by a byte. */
static pid_t fork_there(void (*act)(int tell))
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = cgroup_fork(&leaf);
	if (pid == 0) {
		act(ready[1]);
		_exit(99);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	(void)close(ready[0]);
	return pid;
}

static void act_idle(int tell)
{
	(void)!write(tell, "x", 1);
	for (;;)
		(void)pause();
}

/* Delegated or not. */
static const struct delegation_row {
	const char *says;
	uid_t uid, owner;
	bool procs_too;
	const char *mark, *value;
	bool leaf;
} delegations[] = {
	{ "root's, unmarked, for root: none", 0, 0, true, NULL, NULL, false },
	{ "root's, marked by systemd: a leaf", 0, 0, true, "user.delegate", "1", true },
	{ "root's, marked by an older systemd: a leaf", 0, 0, true, "trusted.delegate", "1", true },
	{ "marked as not delegated: none", 0, 0, true, "user.delegate", "0", false },
	{ "a mark that only begins with 1: none", 0, 0, true, "user.delegate", "12", false },
	{ "another attribute: none", 0, 0, true, "user.other", "1", false },
	{ "a user's own: a leaf", NOBODY, NOBODY, true, NULL, NULL, true },
	{ "another user's: none", NOBODY, 1, true, NULL, NULL, false },
	{ "another user's, for root: none", 0, NOBODY, true, NULL, NULL, false },
	{ "marked, but not for this user: none", NOBODY, 0, false, "user.delegate", "1", false },
	{ "a user's own, but with processes that are not: none", NOBODY, NOBODY, false, NULL, NULL,
		false },
};

static const char *part_no_leaf(void)
{
	HOLDS(make_leaf() == 0, "it is no error that nothing is delegated");
	HOLDS(!leaf.path && leaf.dir == -1, "there is no leaf");
	return NULL;
}

static const char *part_leaf(void)
{
	struct stat st;
	char path[PATH_MAX];

	HOLDS(make_leaf() == 0, "a leaf can be made");
	HOLDS(leaf.path && stat(leaf.path, &st) == 0, "there is a leaf");
	HOLDS(fcntl(leaf.dir, F_GETFD) & FD_CLOEXEC && fcntl(leaf.kill, F_GETFD) & FD_CLOEXEC &&
			fcntl(leaf.outside, F_GETFD) & FD_CLOEXEC,
		"workers don't get its files");
	(void)snprintf(path, sizeof path, "%s", leaf.path);
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "it can be removed");
	HOLDS(stat(path, &st) < 0 && errno == ENOENT, "it is gone");
	return NULL;
}

static void test_delegation(void **state)
{
	const struct delegation_row *row = *state;

	trial_make(TREE_UNIFIED);
	trial_give(row->owner, row->procs_too);
	if (row->mark && setxattr(trial_path(""), row->mark, row->value, strlen(row->value), 0) < 0)
		skip(); /* before Linux 5.7 */
	trial_run(row->uid, row->leaf ? part_leaf : part_no_leaf);
}

static const char *part_none(void)
{
	struct cgroup_leaf none = CGROUP_LEAF_NONE;
	pid_t pid = cgroup_fork(&none);
	int status;

	if (pid == 0)
		_exit(none.inside ? 2 : 3);
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid, "it forks");
	HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 3, "the child is in no leaf");
	HOLDS(cgroup_leaf_leave(&none) == 0 && cgroup_leaf_kill(&none) == 0 &&
			cgroup_leaf_remove(&none, 0) == 0,
		"nothing is to be done");
	return NULL;
}

static void test_none(void **state)
{
	(void)state;
	assert_null(part_none());
}

static volatile sig_atomic_t raised;

static void on_raised(int signal)
{
	(void)signal;
	raised = raised + 1;
}

static void *thread_main(void *arg)
{
	return pthread_mutex_lock(arg) == 0 && pthread_mutex_unlock(arg) == 0 ? arg : NULL;
}

/* What the C library keeps of a process must be right in the child: its ids, by which mutexes know
 * their owner, and threads. 0, or which of it is not. */
static int check_library(pid_t parent)
{
	pthread_mutexattr_t kind;
	pthread_mutex_t mutex;
	pthread_t thread;
	void *got = NULL;

	if (getpid() == parent || gettid() != getpid() || getppid() != parent)
		return 10;
	(void)signal(SIGUSR1, on_raised);
	if (raise(SIGUSR1) != 0 || raised != 1 || pthread_kill(pthread_self(), SIGUSR1) != 0 ||
		raised != 2)
		return 11;
	(void)pthread_mutexattr_init(&kind);
	(void)pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
	(void)pthread_mutex_init(&mutex, &kind);
	if (pthread_mutex_lock(&mutex) != 0 || mutex.__data.__owner != getpid() ||
		pthread_mutex_lock(&mutex) != EDEADLK || pthread_mutex_unlock(&mutex) != 0)
		return 12;
	if (pthread_create(&thread, NULL, thread_main, &mutex) != 0 ||
		pthread_join(thread, &got) != 0 || got != &mutex)
		return 13;
	free(malloc(1 << 20));
	return fork() == 0 ? (_exit(0), 0) : waitpid(-1, NULL, 0) > 0 ? 0 : 14;
}

static const char *fork_and_check(void)
{
	static char says[64];
	pid_t parent = getpid(), pid;
	int status;

	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	pid = cgroup_fork(&leaf);
	if (pid == 0) {
		if (!leaf.inside || !is_in(getpid(), leaf_name()))
			_exit(9);
		_exit(check_library(parent));
	}
	HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid, "it forks");
	HOLDS(!leaf.inside && !is_in(getpid(), leaf_name()), "the parent stays outside");
	(void)snprintf(says, sizeof says, "the child is well (wait status 0x%x)", (unsigned)status);
	HOLDS(status == 0, says);
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "the leaf can be removed");
	return NULL;
}

static void test_fork(void **state)
{
	(void)state;
	make_delegated();
	trial_run(NOBODY, fork_and_check);
}

/* With a second thread the child must be the C library's own. */
static const char *part_fork_threads(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	const char *says;
	pthread_t thread;

	HOLDS(pthread_mutex_lock(&mutex) == 0 &&
			pthread_create(&thread, NULL, thread_main, &mutex) == 0,
		"a thread can be made");
	says = fork_and_check();
	HOLDS(pthread_mutex_unlock(&mutex) == 0 && pthread_join(thread, NULL) == 0, "it ends");
	return says;
}

static void test_fork_threads(void **state)
{
	(void)state;
	make_delegated();
	trial_run(NOBODY, part_fork_threads);
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
	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	HOLDS(fork_there(act_bomb) > 0, "the bomb goes off");
	HOLDS(cgroup_leaf_kill(&leaf) == 0, "it can be killed");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "the leaf can be removed: nothing lives");
	return NULL;
}

static void test_bomb(void **state)
{
	(void)state;
	make_delegated();
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
	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	HOLDS(fork_there(act_divide) > 0, "a worker divides it");
	HOLDS(cgroup_leaf_kill(&leaf) == 0, "all of it can be killed");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "all of it can be removed");
	return NULL;
}

static void test_divided(void **state)
{
	(void)state;
	make_delegated();
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

	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
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
	make_delegated();
	trial_run(NOBODY, part_survivor);
}

static const char *part_inside_removes(void)
{
	int status;
	pid_t pid;

	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
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
	make_delegated();
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
	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	within = fork_there(act_idle);
	mine = leaf;
	other = fork();
	if (other == 0) { /* another launchd in the same cgroup */
		if (make_leaf() < 0 || !leaf.path || fork_there(act_idle) < 0)
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
	make_delegated();
	trial_run(NOBODY, part_others);
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const char *part_busy(void)
{
	char path[PATH_MAX];
	int64_t before;

	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	HOLDS(fork_there(act_idle) > 0, "something lives in it");
	(void)snprintf(path, sizeof path, "%s", leaf.path);
	before = now_ms();
	HOLDS(cgroup_leaf_remove(&leaf, 50) == -EBUSY, "it can't be removed");
	HOLDS(now_ms() - before >= 50, "the time given was used");
	HOLDS(!leaf.path && leaf.dir == -1, "it is given up");
	HOLDS(access(path, F_OK) == 0, "but it is there");
	return NULL;
}

static void test_busy(void **state)
{
	(void)state;
	make_delegated();
	trial_run(NOBODY, part_busy);
}

/* One that a launchd of the same pid left, when both its processes were killed. */
static const char *part_stale(void)
{
	struct cgroup_leaf first;

	HOLDS(make_leaf() == 0 && leaf.path, "there is a leaf");
	HOLDS(make_leaf() == 0 && leaf.path, "an empty one of the same name is replaced");
	HOLDS(fork_there(act_idle) > 0, "something lives in it");
	first = leaf;
	HOLDS(make_leaf() < 0, "one that is not empty is not ours");
	HOLDS(leaf.path == first.path && leaf.dir == first.dir, "failure leaves *ret alone");
	HOLDS(cgroup_leaf_kill(&first) == 0 && cgroup_leaf_remove(&first, BOUND_MS) == 0,
		"it can be removed");
	return NULL;
}

static void test_stale(void **state)
{
	(void)state;
	make_delegated();
	trial_run(NOBODY, part_stale);
}

int main(void)
{
	static struct suite s;

	suite_add_rows(&s, test_delegation, trial_done, delegations,
		sizeof delegations / sizeof *delegations, sizeof *delegations);
	suite_add(&s, "without a leaf there is fork(2) and nothing else", test_none, NULL, NULL);
	suite_add(&s, "a child is born in the leaf", test_fork, NULL, trial_done);
	suite_add(&s, "a child enters it where there are threads", test_fork_threads, NULL,
		trial_done);
	suite_add(&s, "what forks without end is ended", test_bomb, NULL, trial_done);
	suite_add(&s, "cgroups within go, too", test_divided, NULL, trial_done);
	suite_add(
		&s, "a survivor in it leaves, kills and removes", test_survivor, NULL, trial_done);
	suite_add(&s, "nobody removes what he is in", test_inside_removes, NULL, trial_done);
	suite_add(&s, "nothing outside is touched", test_others, NULL, trial_done);
	suite_add(&s, "what lives on is waited for, but not longer than said", test_busy, NULL,
		trial_done);
	suite_add(&s, "a leaf that was left", test_stale, NULL, trial_done);
	return suite_run(&s);
}
