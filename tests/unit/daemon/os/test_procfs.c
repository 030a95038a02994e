/* test_procfs.c - what /proc tells of processes, also of those that lie about themselves. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/os/procfs.h"

enum { MANY = 700 }; /* whose numbers do not fit the 4 KiB that are read at once */

static void misnamed(void)
{
	(void)prctl(PR_SET_NAME, "a) Z 1 2 (b");
	act_wait();
}

static const char *part_read(void)
{
	pid_t child = actor_start(ACTOR_SESSION, misnamed);
	struct process p;

	HOLDS(process_read(child, &p) == 0, "a child can be read");
	HOLDS(p.parent == getpid(), "its parent");
	HOLDS(p.session == child, "its session");
	HOLDS(p.uid == geteuid(), "its user");
	HOLDS(p.state == 'S' || p.state == 'R', "its state");
	HOLDS(strcmp(p.command, "a) Z 1 2 (b") == 0, "its name");
	(void)kill(child, SIGSTOP);
	actor_await(child, 'T');
	(void)kill(child, SIGKILL);
	while (process_read(child, &p) == 0 && p.state != 'Z')
		;
	HOLDS(p.state == 'Z' && p.exiting, "a zombie can be read");
	HOLDS(actor_reap(child) == 128 + SIGKILL, "it is reaped");
	return NULL;
}

/* A number says little: it may be another process's by now. */
static const char *part_started(void)
{
	const struct timespec later = { .tv_nsec = 30000000 };
	pid_t first = actor_start(ACTOR_CHILD, act_wait), second;
	struct process p, again, q;

	(void)nanosleep(&later, NULL); /* more than a tick */
	second = actor_start(ACTOR_CHILD, act_wait);
	HOLDS(process_read(first, &p) == 0 && process_read(second, &q) == 0, "both can be read");
	HOLDS(p.started > 0 && p.started < q.started, "who was first");
	HOLDS(process_read(first, &again) == 0 && again.started == p.started, "and stays so");
	HOLDS(!p.exiting, "which is alive");
	return NULL;
}

static const char *part_gone(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_end);
	struct process p = { .parent = 4711 };
	char name[16] = "x";

	(void)actor_reap(child);
	HOLDS(process_read(child, &p) == -ENOENT, "a process that is gone can't be read");
	HOLDS(p.parent == 4711, "nothing is touched");
	process_command(child, name);
	HOLDS(name[0] == '\0', "it has no name");
	return NULL;
}

static const char *part_command(void)
{
	char name[16] = "x";

	process_command(0, name);
	HOLDS(name[0] == '\0', "there is no process 0");
	(void)prctl(PR_SET_NAME, "0123456789abcdef");
	process_command(getpid(), name);
	HOLDS(strcmp(name, "0123456789abcde") == 0, "the kernel keeps 15 bytes");
	return NULL;
}

/* The children of a process; one list for all parts, each of which has a process of its own. */
static struct pids listed;

static int list(pid_t pid)
{
	listed.count = 0;
	return process_children(pid, &listed);
}

static bool has(pid_t pid)
{
	unsigned found = 0;

	for (size_t i = 0; i < listed.count; i++)
		found += listed.at[i] == pid;
	return found == 1;
}

/* A child is its thread's as long as that lives. */
static void start_in_thread(void *to)
{
	(void)to;
	shared_numbers[1] = actor_start(ACTOR_CHILD, act_wait);
	actor_await_number(2);
}

static const char *part_children(void)
{
	pid_t one = actor_start(ACTOR_CHILD, act_parent);
	pid_t two = actor_start(ACTOR_SESSION | ACTOR_ORPHAN, act_wait);
	pid_t dead = actor_start(ACTOR_CHILD, act_end);
	uv_thread_t thread;

	HOLDS(uv_thread_create(&thread, start_in_thread, NULL) == 0, "a thread");
	actor_await_number(1);
	actor_await(dead, 'Z');
	HOLDS(list(getpid()) == 0, "the list can be read");
	HOLDS(has(one) && has(two), "children and adopted orphans, once each");
	HOLDS(has(dead), "zombies");
	HOLDS(has(shared_numbers[1]), "another thread's");
	HOLDS(!has(shared_numbers[0]) && listed.count == 4, "no grandchildren");
	HOLDS(list(one) == 0 && listed.count == 1 && has(shared_numbers[0]), "another process's");
	HOLDS(list(two) == 0 && listed.count == 0, "none");
	shared_numbers[2] = 1;
	(void)uv_thread_join(&thread);
	(void)actor_reap(dead);
	HOLDS(list(dead) < 0 && listed.count == 0, "a process that is gone");
	return NULL;
}

static const char *part_many(void)
{
	static pid_t started[MANY];

	for (int i = 0; i < MANY; i++)
		started[i] = actor_start(ACTOR_CHILD, act_end);
	HOLDS(list(getpid()) == 0, "the list can be read");
	for (int i = 0; i < MANY; i++)
		HOLDS(has(started[i]), "all of them, once each");
	HOLDS(listed.count == MANY, "nobody else");
	return NULL;
}

/* Executes a program that waits, with the environment of the test below. */
static void execute(void)
{
	static char words[][32] = { "NAMES=1", "NAME=a value=of three words",
		"EMPTY=", "NAME=second", "LATE=1", "wait" };
	static char large[70000] = "L=", other[70000] = "O=";
	char *argv[] = { getenv("LAUNCHD_PROBE"), words[5], NULL };
	char *env[] = { words[0], words[1], words[2], words[3], large, other, words[4], NULL };
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	memset(large + 2, 'x', sizeof large - 3);
	memset(other + 2, 'x', sizeof other - 3);
	(void)dup2(nowhere, STDOUT_FILENO);
	actor_ready();
	(void)execve(argv[0], argv, env);
	_exit(99);
}

static const char *part_variable(void)
{
	pid_t child = actor_start(ACTOR_CHILD, execute);
	char value[64] = "", small[4];

	while (!process_variable(child, "EMPTY", value, sizeof value)) /* until it is executed */
		(void)usleep(1000);
	HOLDS(value[0] == '\0', "an empty one");
	HOLDS(process_variable(child, "NAME", value, sizeof value) &&
			strcmp(value, "a value=of three words") == 0,
		"the first of this very name, with all that is in it");
	HOLDS(process_variable(child, "NAME", small, sizeof small) && strcmp(small, "a v") == 0,
		"cut to fit");
	HOLDS(process_variable(child, "L", value, sizeof value) && strlen(value) == 63, "long");
	HOLDS(!process_variable(child, "NAM", value, sizeof value), "no part of a name");
	HOLDS(process_variable(child, "LATE", value, sizeof value) && strcmp(value, "1") == 0,
		"behind 128 KiB");
	(void)kill(child, SIGKILL);
	(void)actor_reap(child);
	HOLDS(!process_variable(child, "NAME", value, sizeof value), "of nobody");
	return NULL;
}

/* What all of them have in common. */
static const char *unseen(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_parent), ended;
	pid_t session = actor_start(ACTOR_SESSION, act_wait);
	char text[64] = "x";
	struct process p;

	HOLDS(list(getpid()) == 0 && listed.count == 2, "as many as there are");
	HOLDS(has(child) && has(session), "its children are found");
	HOLDS(list(child) < 0 && listed.count == 0, "nobody else's");
	HOLDS(list(getppid()) < 0 && listed.count == 0, "nor its parent's");
	HOLDS(process_read(session, &p) == 0 && p.parent == getpid(), "a child can be read");
	HOLDS(p.session == session && p.uid == geteuid(), "what the kernel tells of it");
	HOLDS(p.state == '?' && strcmp(p.command, "?") == 0 && p.started == 0, "and no more");
	HOLDS(process_read(getpid(), &p) == -ESRCH, "this process is no child");
	HOLDS(process_read(shared_numbers[0], &p) == -ESRCH, "nor is a grandchild");
	HOLDS(process_read(0, &p) == -ESRCH && process_read(-1, &p) == -ESRCH, "nor what is none");
	for (pid_t pid = session + 1; pid < session + 1000; pid++)
		HOLDS(process_read(pid, &p) < 0, "nor is a stranger");
	process_command(getpid(), text);
	HOLDS(text[0] == '\0', "nobody's name is told");
	HOLDS(!process_variable(getpid(), "PATH", text, sizeof text), "nor an environment");
	(void)kill(child, SIGKILL);
	actor_await(child, 'Z');
	HOLDS(process_read(child, &p) == 0 && p.state == 'Z' && p.exiting, "a zombie is one");
	HOLDS(actor_reap(child) == 128 + SIGKILL, "it is reaped");
	HOLDS(process_read(child, &p) == -ESRCH, "and is gone");
	ended = actor_start(ACTOR_CHILD, act_end);
	HOLDS(actor_reap(ended) == 0, "another one is");
	return NULL;
}

static const char *in_foreign(void)
{
	HOLDS(proc_look() == PROC_FOREIGN, "it shows");
	return unseen();
}

static const char *in_none(void)
{
	HOLDS(proc_look() == PROC_NONE, "it shows");
	return unseen();
}

static const char *part_foreign(void)
{
	HOLDS(proc_look() == PROC_OURS, "at first it is ours");
	return play_without_proc(true, in_foreign);
}

static const char *part_none(void)
{
	HOLDS(proc_look() == PROC_OURS, "at first it is ours");
	return play_without_proc(false, in_none);
}

/* No file can be opened any more. */
static const char *part_no_descriptor(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_wait);

	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	HOLDS(errno == EMFILE, "none is left");
	HOLDS(list(getpid()) == 0 && listed.count == 1, "the list is there");
	HOLDS(has(child), "with its child");
	return NULL;
}

static const struct process_row rows[] = {
	{ "a process is read, also one whose name looks like its state", part_read, false },
	{ "when it was started", part_started, false },
	{ "one that is gone is not there", part_gone, false },
	{ "its name alone", part_command, false },
	{ "children: of every thread, adopted, dead, and no others", part_children, false },
	{ "more children than one read has room for", part_many, false },
	{ "a variable that it was executed with", part_variable, false },
	{ "/proc of another pid namespace is not believed", part_foreign, false },
	{ "without /proc there are its children", part_none, false },
	{ "without a descriptor its children are found", part_no_descriptor, false },
};

TESTS(procfs)
{
	static struct suite s;

	process_suite_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
