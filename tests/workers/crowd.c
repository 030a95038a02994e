/* crowd.c - a worker that starts $CROWD processes which only SIGKILL ends, in its own group or,
 * with $SESSIONS, each in a session of its own; none lives for longer than a test may take. It
 * tells "ready NUMBER", of how many it could start, and when it gets a byte from $GO ends with 0.
 * With $CLING it needs SIGKILL, too. */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "worker.h"

enum { LIFE_S = 150 };

static _Noreturn void stay(bool leads, int ready)
{
	if (leads && setsid() < 0)
		_exit(99);
	(void)signal(SIGTERM, SIG_IGN);
	(void)alarm(LIFE_S);
	(void)close(ready);
	for (;;)
		(void)pause();
}

int main(void)
{
	int wanted = atoi(mine("CROWD", "0")), started = 0, p[2];
	bool leads = mine("SESSIONS", NULL) != NULL;
	char text[64], byte;
	pid_t pid;

	if (pipe(p) < 0)
		return 99;
	if (mine("CLING", NULL))
		(void)signal(SIGTERM, SIG_IGN);
	for (; started < wanted && (pid = fork()) >= 0; started++)
		if (pid == 0)
			stay(leads, p[1]);
	(void)close(p[1]);
	(void)!read(p[0], &byte, 1); /* the end: all of them stay now */
	(void)snprintf(text, sizeof text, "ready %d", started);
	tell(text);
	wait_for_go();
	return 0;
}
