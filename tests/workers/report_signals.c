/* report_signals.c - tells each signal it gets. TERM, INT, HUP and QUIT end it with $CODE or
 * $CODE_<rank> (0), unless $STAY is set. */
#include <signal.h>

#include "worker.h"

int main(void)
{
	sigset_t waited;
	int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

	(void)sigemptyset(&waited);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		(void)sigaddset(&waited, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &waited, NULL);
	tell("ready");
	for (;;) {
		char text[32];
		int got;

		if (sigwait(&waited, &got) != 0)
			return 99;
		(void)snprintf(text, sizeof text, "SIG%s", sigabbrev_np(got));
		tell(text);
		if (got != SIGUSR1 && got != SIGUSR2 && !getenv("STAY"))
			return atoi(mine("CODE", "0"));
	}
}
