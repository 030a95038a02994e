/* stamp.c - tells the moments of a run, in ns of CLOCK_MONOTONIC, which all simulated hosts share.
 *
 * With arguments it tells "launched NS" and becomes the program that they name: put it before
 * launchd. As a worker it tells "started NS"; then the one whose $END_<rank> is "exit:N" waits for
 * the test's word, tells "died NS" and ends so, and all others tell "asked NS" for each SIGTERM and
 * end with 0 after $LINGER_MS. $END_AT_<attempt>_<rank> tells of one attempt only. */
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "worker.h"

static void tell_now(const char *what)
{
	char text[64];
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	(void)snprintf(
		text, sizeof text, "%s %lld", what, (long long)t.tv_sec * 1000000000 + t.tv_nsec);
	tell(text);
}

/* The end for this rank, in this attempt or in all. */
static const char *my_end(void)
{
	const char *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
	char name[64];

	(void)snprintf(name, sizeof name, "END_AT_%s", attempt ? attempt : "0");
	return mine(name, mine("END", "never"));
}

/* More than one SIGTERM within the time to linger would be told. */
static int wait_for_term(void)
{
	long ms = atol(mine("LINGER_MS", "0"));
	const struct timespec linger = { ms / 1000, ms % 1000 * 1000000 };
	sigset_t term;
	int got;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	tell_now("started");
	(void)sigwait(&term, &got);
	tell_now("asked");
	while (ms > 0 && sigtimedwait(&term, NULL, &linger) > 0)
		tell_now("asked");
	return 0;
}

int main(int argc, char **argv)
{
	const char *end = my_end();

	if (argc > 1) {
		tell_now("launched");
		(void)execvp(argv[1], argv + 1);
		return 99;
	}
	(void)alarm(120);
	if (strncmp(end, "exit:", 5) != 0)
		return wait_for_term();
	tell_now("started");
	wait_for_go();
	tell_now("died");
	return atoi(end + 5);
}
