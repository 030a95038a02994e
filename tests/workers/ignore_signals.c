/* ignore_signals.c - lives through TERM, INT, HUP and QUIT; only SIGKILL ends it. */
#include <signal.h>

#include "worker.h"

int main(void)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		(void)signal(ignored[i], SIG_IGN);
	tell("ready");
	for (;;)
		(void)pause();
}
