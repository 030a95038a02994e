/* report_signals.c - tells each signal it gets. TERM, INT, HUP and QUIT end it with $CODE or
 * $CODE_<rank> (0), unless $STAY is set. */
#include <signal.h>

#include "worker.h"

int main(void)
{
	sigset_t waited;
	/* sigabbrev_np(3) is of glibc 2.32 */
	static const char *const names[] = { [SIGTERM] = "SIGTERM",
		[SIGINT] = "SIGINT",
		[SIGHUP] = "SIGHUP",
		[SIGQUIT] = "SIGQUIT",
		[SIGUSR1] = "SIGUSR1",
		[SIGUSR2] = "SIGUSR2" };

	(void)sigemptyset(&waited);
	for (int number = 1; number < (int)(sizeof names / sizeof *names); number++) {
		if (names[number])
			(void)sigaddset(&waited, number);
	}
	(void)sigprocmask(SIG_BLOCK, &waited, NULL);
	tell("ready");
	for (;;) {
		int got;

		if (sigwait(&waited, &got) != 0)
			return 99;
		tell(names[got]);
		if (got != SIGUSR1 && got != SIGUSR2 && !getenv("STAY"))
			return atoi(mine("CODE", "0"));
	}
}
