/* clinging.c - a worker whose descendants are hard to end, and which does itself as $DO or
 * $DO_<rank> says: "cling" (only SIGKILL ends it), "exit:N" (on the test's word), "save:MS" (on
 * TERM it takes so long, tells "saved", and ends with 0), "count" (tells each USR1). It tells
 * "ready" when all of its helpers are at work:
 *
 *   a daemon with an empty environment in a session of its own, which lets TERM and its like pass;
 *   a chain of processes, each of which starts the next, in a session of its own, and ends.
 *
 * All of them hold the FIFO $WITNESS.<node> open for writing: its reader finds the end when the
 * last of a node is gone. None lives for longer than a test may take. */
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "worker.h"

enum { LIFE_S = 150, LINK_MS = 2 };

static void pause_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0)
		;
}

static time_t now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void ignore_all(void)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		(void)signal(ignored[i], SIG_IGN);
}

static _Noreturn void be_daemon(const char *self, const char *ready)
{
	char *const argv[] = { (char *)"clinging", (char *)"daemon", (char *)ready, NULL };
	char *const env[] = { NULL };

	if (setsid() < 0 || fork() > 0)
		_exit(0);
	ignore_all();
	(void)execve(self, argv, env);
	_exit(99);
}

static _Noreturn void be_chain(int ready)
{
	time_t end = now_s() + LIFE_S;
	bool told = false;

	ignore_all();
	for (;;) {
		pid_t pid = fork();

		if (pid > 0 || now_s() > end)
			_exit(0);
		(void)setsid();
		if (!told)
			told = write(ready, "x", 1) == 1;
		if (pid == 0)
			pause_ms(LINK_MS);
	}
}

/* The daemon, executed anew: `ready` is the number of the pipe's end. */
static int daemon_main(int ready)
{
	if (write(ready, "x", 1) != 1)
		return 99;
	(void)close(ready);
	(void)alarm(LIFE_S);
	for (;;)
		(void)pause();
}

/* Starts the helpers and waits until they are at work. */
static bool start_helpers(const char *self)
{
	char number[16], byte;
	int p[2];

	if (pipe(p) < 0)
		return false;
	(void)snprintf(number, sizeof number, "%d", p[1]);
	if (fork() == 0)
		be_daemon(self, number);
	if (fork() == 0)
		be_chain(p[1]);
	return read(p[0], &byte, 1) == 1 && read(p[0], &byte, 1) == 1 && close(p[0]) == 0 &&
		close(p[1]) == 0;
}

static bool open_witness(void)
{
	const char *path = getenv("WITNESS"), *node = getenv("NODE_RANK");
	char full[4096];

	if (!path)
		return true;
	(void)snprintf(full, sizeof full, "%s.%s", path, node ? node : "0");
	return open(full, O_WRONLY) >= 0; /* not closed on exec, nor here: that is its use */
}

static int save(long ms)
{
	sigset_t term;
	int got;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	tell("ready");
	if (sigwait(&term, &got) != 0)
		return 99;
	tell("asked");
	pause_ms(ms);
	tell("saved");
	return 0;
}

static int count(void)
{
	sigset_t usr1;
	int got;

	(void)sigemptyset(&usr1);
	(void)sigaddset(&usr1, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &usr1, NULL);
	tell("ready");
	while (sigwait(&usr1, &got) == 0)
		tell("SIGUSR1");
	return 99;
}

int main(int argc, char **argv)
{
	const char *what = mine("DO", "cling");

	if (argc == 3)
		return daemon_main(atoi(argv[2]));
	(void)alarm(LIFE_S);
	if (!open_witness() || !start_helpers(argv[0]))
		return 99;
	if (strncmp(what, "save:", 5) == 0)
		return save(atol(what + 5));
	if (strcmp(what, "count") == 0)
		return count();
	if (strcmp(what, "cling") == 0)
		ignore_all();
	tell("ready");
	wait_for_go();
	if (strncmp(what, "exit:", 5) == 0)
		return atoi(what + 5);
	for (;;)
		(void)pause();
}
