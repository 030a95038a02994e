/* births.c - see births.h */
#include "births.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool birth_child(void)
{
	return fork() == 0;
}

static bool birth_session(void)
{
	return fork() == 0 && setsid() > 0;
}

/* In its worker's session and process group, but no child of its any more. */
static bool birth_orphan(void)
{
	pid_t middle = fork();

	if (middle == 0)
		return fork() == 0 || (_exit(0), false);
	(void)waitpid(middle, NULL, 0);
	return false;
}

/* Nothing of it leads back: session, parent, directory, descriptors, environment. */
static bool birth_daemon(void)
{
	pid_t middle = fork();

	if (middle != 0) {
		(void)waitpid(middle, NULL, 0);
		return false;
	}
	(void)setsid();
	if (fork() != 0)
		_exit(0);
	if (chdir("/") < 0)
		_exit(99);
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	for (char **e = environ; *e; e++)
		memset(*e, 0, strlen(*e)); /* so that /proc/PID/environ is empty, too */
	return true;
}

/* A child of the worker's parent: no descendant of the worker, and no worker. */
static bool birth_sibling(void)
{
	return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL) == 0;
}

static void (*whole_life)(void);

static int run(void *unused)
{
	(void)unused;
	whole_life();
	return 0;
}

/* Its parent is in uninterruptible sleep (D) until it ends. */
static bool birth_vfork(void)
{
	enum { STACK = 256 * 1024 };
	char *stack;

	if (fork() != 0)
		return false;
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack != MAP_FAILED)
		(void)clone(
			run, stack + STACK, CLONE_VM | CLONE_FILES | CLONE_VFORK | SIGCHLD, NULL);
	_exit(99);
}

static void *fork_and_live(void *unused)
{
	(void)unused;
	if (fork() == 0)
		whole_life();
	return NULL;
}

/* A child of a thread that is gone; the thread's process lives on. */
static bool birth_thread(void)
{
	pthread_t thread;

	if (fork() != 0)
		return false;
	if (pthread_create(&thread, NULL, fork_and_live, NULL) == 0)
		(void)pthread_join(thread, NULL);
	return true;
}

/* Process 1 of its own PID namespace, where that is allowed; else an orphan. */
static bool birth_namespace(void)
{
	pid_t middle = fork();

	if (middle != 0) {
		(void)waitpid(middle, NULL, 0);
		return false;
	}
	if (unshare(CLONE_NEWPID) < 0)
		(void)unshare(CLONE_NEWUSER | CLONE_NEWPID);
	return fork() == 0 || (_exit(0), false);
}

static const struct {
	const char *name;
	bool (*birth)(void); /* true in the new process */
} births[] = {
	{ "child", birth_child },
	{ "session", birth_session },
	{ "orphan", birth_orphan },
	{ "daemon", birth_daemon },
	{ "sibling", birth_sibling },
	{ "vfork", birth_vfork },
	{ "thread", birth_thread },
	{ "namespace", birth_namespace },
};

int birth(const char *name, void (*life)(void))
{
	for (size_t i = 0; i < sizeof births / sizeof *births; i++) {
		if (strcmp(births[i].name, name) != 0)
			continue;
		whole_life = life;
		if (births[i].birth()) {
			life();
			_exit(99);
		}
		return 0;
	}
	return -1;
}
