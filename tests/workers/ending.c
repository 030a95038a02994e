/* ending.c - ends as $END or $END_<rank> says: "exit:N", "signal:N", or "never". Tells "ready"
 * first; one that will end waits for the test's word. */
#include <signal.h>

#include "worker.h"

int main(void)
{
	const char *end = mine("END", "never");

	tell("ready");
	if (strcmp(end, "never") == 0)
		for (;;)
			(void)pause();
	wait_for_go();
	if (strncmp(end, "signal:", 7) == 0)
		(void)raise(atoi(end + 7));
	return strncmp(end, "exit:", 5) == 0 ? atoi(end + 5) : 99;
}
