/* test_cgroup.c - where a leaf is made and where none, and who is born in it: real ones. How it
 * ends: test_cgroup_kill.c. */
#include "tests/unit/daemon/workers/leaf_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

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
	HOLDS(leaf_make() == 0, "it is no error that nothing is delegated");
	HOLDS(!leaf.path && leaf.dir == -1, "there is no leaf");
	return NULL;
}

static const char *part_leaf(void)
{
	struct stat st;
	char path[PATH_MAX];

	HOLDS(leaf_make() == 0, "a leaf can be made");
	HOLDS(leaf.path && stat(leaf.path, &st) == 0, "there is a leaf");
	HOLDS(fcntl(leaf.dir, F_GETFD) & FD_CLOEXEC && fcntl(leaf.kill, F_GETFD) & FD_CLOEXEC &&
			fcntl(leaf.home, F_GETFD) & FD_CLOEXEC,
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
	needs(!row->mark ||
			setxattr(trial_path(""), row->mark, row->value, strlen(row->value), 0) == 0,
		"marks on cgroups (extended attributes; trusted ones by CAP_SYS_ADMIN)");
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

	if (getpid() == parent || syscall(SYS_gettid) != getpid() || getppid() != parent)
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

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
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
	delegated_make();
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
	delegated_make();
	trial_run(NOBODY, part_fork_threads);
}

/* One that a launchd of the same pid left, when both its processes were killed. */
static const char *part_stale(void)
{
	struct cgroup_leaf first;

	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(leaf_make() == 0 && leaf.path, "an empty one of the same name is replaced");
	HOLDS(leaf_fork(act_idle) > 0, "something lives in it");
	first = leaf;
	HOLDS(leaf_make() < 0, "one that is not empty is not ours");
	HOLDS(leaf.path == first.path && leaf.dir == first.dir, "failure leaves *ret alone");
	HOLDS(cgroup_leaf_kill(&first) == 0 && cgroup_leaf_remove(&first, BOUND_MS) == 0,
		"it can be removed");
	return NULL;
}

static void test_stale(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_stale);
}

/* A cgroup beside the leaf. */
static const char *beside(pid_t pid, const char *rest)
{
	static char path[PATH_MAX];
	const char *slash = strrchr(leaf.path, '/');

	(void)snprintf(path, sizeof path, "%.*s/launchd-%d%s", (int)(slash - leaf.path), leaf.path,
		(int)pid, rest);
	return path;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* A process in there. */
static pid_t live_in(const char *path)
{
	char procs[PATH_MAX + 16];
	int fd;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	(void)snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "%d", (int)pid) < 0)
		pid = -1;
	(void)close(fd);
	return pid;
}

static bool make_all(pid_t pid, const char *const *rests)
{
	bool made = true;

	for (; *rests; rests++)
		made = made && mkdir(beside(pid, *rests), 0755) == 0;
	return made;
}

static const char *part_sweep(void)
{
	enum { DEAD = 999999991, POPULATED, IN_LOBBY };
	static const char *const whole[] = { "", "/supervisor", "/attempt-0", "/attempt-0/rank-0",
		NULL };
	static const char *const others[] = { "x", "-guardx", "-", NULL };
	pid_t child = fork();

	if (child == 0)
		for (;;)
			(void)pause();
	HOLDS(leaf_make() == 0 && leaf.path, "there is a leaf");
	HOLDS(make_all(DEAD, whole) && mkdir(beside(DEAD, "-guard"), 0755) == 0 &&
			make_all(DEAD, others) && make_all(child, whole) &&
			make_all(POPULATED, whole) && make_all(IN_LOBBY, whole) &&
			mkdir(beside(IN_LOBBY, "-guard"), 0755) == 0,
		"others' are made");
	HOLDS(live_in(beside(POPULATED, "/attempt-0/rank-0")) > 0 &&
			live_in(beside(IN_LOBBY, "-guard")) > 0,
		"processes live in two of them");
	cgroup_leaf_sweep(&leaf);
	HOLDS(!is_there(beside(DEAD, "")), "one of a dead launcher goes, with all in it");
	HOLDS(!is_there(beside(DEAD, "-guard")), "its guard's, too");
	for (size_t i = 0; others[i]; i++)
		HOLDS(is_there(beside(DEAD, others[i])), "what has another name stays");
	HOLDS(is_there(beside(child, "/attempt-0/rank-0")), "one whose pid lives stays");
	HOLDS(is_there(beside(POPULATED, "/supervisor")), "one with processes stays as it is");
	HOLDS(is_there(beside(IN_LOBBY, "/supervisor")), "one whose guard is beside it stays");
	HOLDS(is_there(beside(getpid(), "/supervisor")), "our own stays");
	HOLDS(cgroup_leaf_remove(&leaf, BOUND_MS) == 0, "which can be removed");
	return NULL;
}

static void test_sweep(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_sweep);
}

/* In a pid namespace of its own: forks until a pid is one that nobody has outside. */
static _Noreturn void be_foreign(int tell)
{
	pid_t pid, own = 0;

	for (int i = 0; i < 300; i++) {
		pid = fork();
		if (pid == 0) {
			own = getpid();
			(void)!write(tell, &own, sizeof own);
			for (;;)
				(void)pause();
		}
	}
	for (;;)
		(void)pause();
}

/* A launcher of another pid namespace, between two steps of its start: its leaf is empty still. */
static const char *part_foreign(void)
{
	int told[2];
	pid_t inner;

	HOLDS(leaf_make() == 0 && leaf.path && pipe2(told, O_CLOEXEC) == 0, "there is a leaf");
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return NULL; /* not here */
	if (fork() == 0)
		be_foreign(told[1]);
	do
		HOLDS(read(told[0], &inner, sizeof inner) == sizeof inner, "it has pids");
	while (kill(inner, 0) == 0 || errno != ESRCH);
	HOLDS(mkdir(beside(inner, ""), 0755) == 0, "its leaf is there");
	cgroup_leaf_sweep(&leaf);
	HOLDS(is_there(beside(inner, "")), "it stays");
	return NULL;
}

static void test_foreign(void **state)
{
	(void)state;
	delegated_make();
	trial_run(NOBODY, part_foreign);
}

TESTS(cgroup)
{
	static struct suite s;

	suite_add_rows(&s, test_delegation, trial_done, delegations,
		sizeof delegations / sizeof *delegations, sizeof *delegations);
	suite_add(&s, "without a leaf there is fork(2) and nothing else", test_none, NULL, NULL);
	suite_add(&s, "a child is born in the leaf", test_fork, NULL, trial_done);
	/* the sanitizers' own locks hang a child that is forked beside threads, now and then */
	if (!SANITIZED)
		suite_add(&s, "a child enters it where there are threads", test_fork_threads, NULL,
			trial_done);
	suite_add(&s, "a leaf that was left", test_stale, NULL, trial_done);
	suite_add(&s, "leaves that others left", test_sweep, NULL, trial_done);
	suite_add(&s, "one of another pid namespace", test_foreign, NULL, trial_done);
	return suite_run(&s);
}
