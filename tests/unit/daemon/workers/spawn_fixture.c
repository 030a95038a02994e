/* spawn_fixture.c - see spawn_fixture.h */
#include "tests/unit/daemon/workers/spawn_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

enum { LIMIT_MS = 60000 }; /* of every wait; passing takes milliseconds */

static const char *probe;

static struct bench bench; /* one at a time: also a test whose state is its row has it cleaned up */

int bench_make(void **state)
{
	bench = (struct bench){ .p = { .pid = -1, .pidfd = -1, .pipe = { -1, -1, -1 } },
		.extra = -1,
		.dir = "/tmp/launchd_test_spawn_XXXXXX" };
	*state = &bench;
	sigemptyset(&bench.inherited.ignored);
	for (int s = 1; s < 32; s++) /* whatever this test was started under: nohup, a script's & */
		if (s != SIGKILL && s != SIGSTOP)
			(void)signal(s, SIG_DFL);
	(void)sigprocmask(SIG_BLOCK, NULL, &bench.mask);
	for (int s = 1; s < 32; s++)
		(void)sigaction(s, NULL, &bench.actions[s]);
	(void)getrlimit(RLIMIT_NOFILE, &bench.nofile);
	bench.inherited.nofile = bench.nofile;
	bench.inherited.nofile_raised = true;
	for (int fd = 0; fd < 3; fd++)
		bench.stdio[fd] = (struct stdio){ .how = fd == 1 ? STDIO_PIPE : STDIO_INHERIT };
	/* a process that a failed test forgot comes to us, not to init */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return mkdtemp(bench.dir) ? 0 : -1;
}

void bench_reap(struct bench *b)
{
	if (b->p.pid > 0) {
		(void)kill(b->p.pid, SIGKILL);
		(void)waitpid(b->p.pid, NULL, 0);
	}
	b->p.pid = -1;
}

/* Ends what a failed test has forgotten; all of it is our child, see PR_SET_CHILD_SUBREAPER. */
static void reap_rest(void)
{
	char path[64], pids[4096];
	long len;

	(void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	len = fd_read_file(path, pids, sizeof pids);
	for (char *at = len > 0 ? pids : NULL, *end = NULL; at && *at; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at || pid <= 1)
			break;
		(void)kill((pid_t)pid, SIGKILL);
		(void)waitpid((pid_t)pid, NULL, 0);
		end += *end == ' ';
	}
}

int bench_done(void **state)
{
	static const char *const files[] = { "file", "text", "plain", "script", "root", "circle",
		"open", NULL };

	(void)state;
	bench_reap(&bench);
	reap_rest();
	fd_closep(&bench.p.pidfd);
	fd_closep(&bench.extra);
	for (int fd = 0; fd < 3; fd++)
		fd_closep(&bench.p.pipe[fd]);
	(void)sigprocmask(SIG_SETMASK, &bench.mask, NULL);
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP)
			(void)sigaction(s, &bench.actions[s], NULL);
	(void)setrlimit(RLIMIT_NOFILE, &bench.nofile);
	for (size_t i = 0; files[i]; i++) {
		char path[128];

		(void)snprintf(path, sizeof path, "%s/%s", bench.dir, files[i]);
		(void)unlink(path);
	}
	return rmdir(bench.dir);
}

bool bench_find_probe(void)
{
	probe = getenv("LAUNCHD_PROBE");
	if (!probe)
		(void)fputs("LAUNCHD_PROBE must name the program probe\n", stderr);
	return probe != NULL;
}

int bench_spawn(struct bench *b, const char *program, const char *act, const char *arg)
{
	static const char *const env[] = { "PROBE_MARK=seven", NULL };
	const char *argv[] = { "probe", act, arg, NULL };
	const struct spawn how = { .program = program ? program : probe,
		.argv = (char *const *)(uintptr_t)argv,
		.env = (char *const *)(uintptr_t)env,
		.stdio = b->stdio,
		.inherited = &b->inherited,
		.place = b->place,
		.epoll = b->epoll,
		.event = { .events = EPOLLIN | EPOLLET, .data.ptr = b },
		.cgroup = -1 };

	return spawn_process(&how, &b->p, &b->why);
}

void await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
}

void read_all(int fd, char *ret, size_t size)
{
	size_t len = 0;

	for (;;) {
		ssize_t n;

		await(fd);
		n = read(fd, ret + len, size - 1 - len);
		assert_true(n >= 0);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	ret[len] = '\0';
}

siginfo_t bench_ending(struct bench *b)
{
	siginfo_t si = { 0 };

	await(b->p.pidfd);
	assert_int_equal(waitid(P_PID, (id_t)b->p.pid, &si, WEXITED), 0);
	assert_int_equal(si.si_pid, b->p.pid);
	b->p.pid = -1;
	return si;
}

const char *bench_facts(struct bench *b)
{
	static char text[512];

	assert_outcome(bench_spawn(b, NULL, "facts", NULL), 0, &b->why, NULL);
	read_all(b->p.pipe[1], text, sizeof text);
	assert_int_equal(bench_ending(b).si_status, 0);
	return text;
}
