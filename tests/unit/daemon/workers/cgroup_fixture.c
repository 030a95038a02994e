/* cgroup_fixture.c - see cgroup_fixture.h */
#include "tests/unit/daemon/workers/cgroup_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"

enum { LIMIT_S = 60 };

static char dir[PATH_MAX]; /* "": none */

void trial_make(enum tree_kind kind)
{
	struct arena arena = { 0 };
	struct cgroup_paths paths;
	const char *ours;

	assert_int_equal(cgroup_paths_read("", &arena, &paths), 0);
	ours = kind == TREE_UNIFIED ? paths.unified.dir : paths.memory.dir;
	(void)snprintf(dir, sizeof dir, "%s/launchd-test-%d", ours ? ours : "", (int)getpid());
	if (!ours || geteuid() != 0 || mkdir(dir, 0755) < 0)
		dir[0] = '\0';
	arena_done(&arena);
	needs(dir[0],
		kind == TREE_UNIFIED ? "a cgroup of version 2 to make one in" :
				       "a cgroup with the memory controller to make one in");
	/* what a trial leaves behind comes to us */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

const char *trial_path(const char *name)
{
	static char paths[4][PATH_MAX + 128];
	static unsigned next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof paths[0], "%s%s%s", dir, *name ? "/" : "", name);
	return path;
}

void trial_write(const char *name, const char *text)
{
	int fd = open(trial_path(name), O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));

	fd_closep(&fd);
	if (rc < 0)
		fail_msg("%s: %s", trial_path(name), strerror(-rc));
}

void trial_give(uid_t uid, bool procs_too)
{
	assert_int_equal(chown(trial_path(""), uid, uid), 0);
	if (procs_too)
		assert_int_equal(chown(trial_path("cgroup.procs"), uid, uid), 0);
}

static _Noreturn void run_part(uid_t uid, const char *(*part)(void), int answer)
{
	const char *says = NULL;
	int procs = open(trial_path("cgroup.procs"), O_WRONLY | O_CLOEXEC);

	(void)alarm(LIMIT_S);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (procs < 0 || write(procs, "0", 1) != 1)
		says = "the part enters its cgroup";
	else if (uid && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0))
		says = "the part becomes another user";
	(void)close(procs);
	if (!says)
		says = part();
	if (says)
		(void)fd_write_all(answer, says, strlen(says));
	_exit(says != NULL);
}

void trial_run(uid_t uid, const char *(*part)(void))
{
	char says[512] = "";
	int answer[2], status;
	pid_t pid;

	assert_int_equal(pipe2(answer, O_CLOEXEC | O_NONBLOCK), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_part(uid, part, answer[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)!read(answer[0], says, sizeof says - 1); /* nothing: it holds */
	(void)close(answer[0]);
	(void)close(answer[1]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("does not hold: %s (wait status 0x%x)", says, (unsigned)status);
}

/* Everything in this cgroup and those below it is the test's: nobody else knows of them. */
static int end_cgroup(const char *path, const struct stat *st, int type, struct FTW *where)
{
	char procs[PATH_MAX + 32], pids[4096], *at = pids, *end;

	(void)st, (void)where;
	if (type != FTW_DP)
		return 0;
	(void)snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
	if (fd_read_file(procs, pids, sizeof pids) < 0)
		pids[0] = '\0';
	for (; *at; at = end + (*end == '\n')) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (pid > 1)
			(void)kill((pid_t)pid, SIGKILL);
	}
	(void)rmdir(path); /* the next round, if something is dying in it */
	return 0;
}

int trial_done(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	if (!dir[0])
		return 0;
	fd = open(trial_path("cgroup.kill"), O_WRONLY | O_CLOEXEC); /* version 1 has none */
	if (fd >= 0)
		(void)!write(fd, "1", 1);
	fd_closep(&fd);
	for (int i = 0; i < 1000 && stat(dir, &st) == 0; i++) {
		(void)nftw(dir, end_cgroup, 16, FTW_DEPTH | FTW_PHYS);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (i > 0)
			(void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	fd = stat(dir, &st) == 0 ? -1 : 0;
	dir[0] = '\0';
	return fd;
}
