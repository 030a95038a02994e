/* fork_chain.c - ends at once, but for chains of processes that fork and exit for ever, each in a
 * session of its own, with an emptied environment and every signal ignored. Tells "ready" when
 * they have run for a while. With $STAY the worker itself stays, until a signal ends it. */
#include <signal.h>
#include <time.h>

#include "worker.h"

extern char **environ;

enum { CHAINS = 4, RUN_IN = 50 };

static void run_chain(int ready)
{
	static char *nothing[] = { NULL };

	environ = nothing;
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_IGN);
	for (unsigned links = 0;; links++) {
		if (links == RUN_IN) {
			(void)!write(ready, "x", 1);
			(void)close(ready);
		}
		if (fork() != 0)
			_exit(0);
		(void)setsid();
		/* the machine has other work to do, too */
		(void)nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	}
}

int main(void)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		return 99;
	for (int i = 0; i < CHAINS; i++)
		if (fork() == 0) {
			(void)close(ready[0]);
			run_chain(ready[1]);
		}
	(void)close(ready[1]);
	for (int i = 0; i < CHAINS; i++)
		if (read(ready[0], &byte, 1) != 1)
			return 99;
	tell("ready");
	while (getenv("STAY"))
		(void)pause();
	return 0;
}
