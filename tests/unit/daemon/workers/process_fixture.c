/* process_fixture.c - see process_fixture.h */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/os/procfs.h"

enum { SHARED_BYTES = 64 * sizeof(int), LIMIT_S = 100 };

volatile int *shared_numbers;
static int ready_fd = -1;
static const char **told; /* what does not hold, of a part behind a namespace */

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "process_fixture: %s: %s\n", what, strerror(errno));
	_exit(99);
}

/* The part's process: tells what does not hold. */
static _Noreturn void play(process_part *part, int tell)
{
	const char *broken;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
		sigprocmask(SIG_BLOCK, &chld, NULL) < 0)
		give_up("set-up");
	(void)alarm(LIMIT_S);
	broken = part();
	if (broken && write(tell, broken, strlen(broken)) < 0)
		give_up("write");
	_exit(broken ? 1 : 0);
}

static void run(process_part *part)
{
	char broken[256] = "";
	int p[2], status;
	pid_t pid;

	shared_numbers =
		mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared_numbers, MAP_FAILED);
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* for what ends them all */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		play(part, p[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)!read(p[0], broken, sizeof broken - 1);
	(void)close(p[0]);
	(void)close(p[1]);
	(void)munmap((void *)(uintptr_t)shared_numbers, SHARED_BYTES);
	if (strncmp(broken, NEEDS, sizeof NEEDS - 1) == 0)
		needs(false, broken + sizeof NEEDS - 1);
	if (broken[0])
		fail_msg("does not hold: %s", broken);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the part ended with status %x", (unsigned)status);
}

/* For the part, and what it has started: as play() makes it. */
static _Noreturn void play_below(process_part *part)
{
	if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		give_up("set-up");
	(void)alarm(LIMIT_S);
	/* the same image, so the same addresses */
	*told = part();
	_exit(0);
}

/* Process 1 of a new pid namespace, all of which ends with it. */
static _Noreturn void be_first(process_part *part)
{
	pid_t pid = fork();

	if (pid == 0)
		play_below(part);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

static _Noreturn void leave_proc(bool foreign, process_part *part)
{
	pid_t pid;

	if (unshare(foreign ? CLONE_NEWPID : CLONE_NEWNS) < 0 ||
		(!foreign && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) ||
		(!foreign && umount2("/proc", MNT_DETACH) < 0)) {
		*told = NEEDS "the right to make pid and mount namespaces";
		_exit(0);
	}
	if (!foreign)
		play_below(part);
	pid = fork();
	if (pid == 0)
		be_first(part);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

const char *play_without_proc(bool foreign, process_part *part)
{
	const char *broken;
	pid_t pid;

	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		give_up("mmap");
	*told = "it ended early";
	pid = fork();
	if (pid == 0)
		leave_proc(foreign, part);
	(void)waitpid(pid, NULL, 0);
	broken = *told;
	(void)munmap(told, sizeof *told);
	return broken;
}

static void test_row(void **state)
{
	const struct process_row *row = *state;

	needs(!row->root || geteuid() == 0, "root");
	run(row->part);
}

/* Ends what a part has left: all below it is this process's now. A child of one that dies comes to
 * it then, so it waits for as many as it has killed, and looks again. */
static int done(void **state)
{
	static struct pids left;

	(void)state;
	do {
		left.count = 0;
		(void)process_children(getpid(), &left);
		for (size_t i = 0; i < left.count; i++)
			(void)kill(left.at[i], SIGKILL);
		for (size_t i = 0; i < left.count; i++)
			(void)waitpid(-1, NULL, 0);
	} while (waitpid(-1, NULL, WNOHANG) >= 0);
	return 0;
}

void process_suite_add(struct suite *s, const struct process_row *rows, size_t count)
{
	suite_add_rows(s, test_row, done, rows, count, sizeof *rows);
}

pid_t actor_start(unsigned kind, void (*act)(void))
{
	pid_t first, pid = 0;
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0 || (first = fork()) < 0)
		give_up("fork");
	if (first == 0) {
		if ((kind & ACTOR_SESSION) && setsid() < 0)
			give_up("setsid");
		if ((kind & ACTOR_ORPHAN) && fork() != 0)
			_exit(0);
		ready_fd = p[1];
		(void)alarm(LIMIT_S);
		act();
		_exit(0);
	}
	if (kind & ACTOR_ORPHAN)
		(void)waitpid(first, NULL, 0);
	(void)close(p[1]);
	if (read(p[0], &pid, sizeof pid) != (ssize_t)sizeof pid)
		give_up("an actor ended early");
	(void)close(p[0]);
	return pid;
}

void actor_ready(void)
{
	pid_t pid = getpid();

	if (write(ready_fd, &pid, sizeof pid) != (ssize_t)sizeof pid)
		give_up("write");
	(void)close(ready_fd);
}

void act_wait(void)
{
	actor_ready();
	for (;;)
		(void)pause();
}

void act_stay(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	act_wait();
}

void act_end(void)
{
	actor_ready();
}

void act_parent(void)
{
	shared_numbers[0] = actor_start(ACTOR_SESSION, act_wait);
	act_wait();
}

static char state_of(pid_t pid)
{
	struct process p;

	return process_read(pid, &p) < 0 ? 'Z' : p.state;
}

/* Between two looks; alarm() ends a test that looks in vain. */
static void look_again_soon(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

void actor_await(pid_t pid, char state)
{
	while (state_of(pid) != state)
		look_again_soon();
}

void actor_await_number(unsigned which)
{
	while (!shared_numbers[which])
		look_again_soon();
}

bool actor_lives(pid_t pid)
{
	return state_of(pid) != 'Z';
}

int actor_reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
