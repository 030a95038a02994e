/* ending.c - ends as $END or $END_<rank> says: "exit:N", "signal:N", "raise", as a Python
 * program that writes an error file, or "never". Tells "ready" first; one that will end waits for
 * the test's word. */
#include <signal.h>

#include "worker.h"

static int raise_error(void)
{
	const char *path = getenv("TORCHELASTIC_ERROR_FILE");
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f ||
		fputs("{\"message\": {\"message\": \"ValueError: the teapot is empty\"}}", f) < 0 ||
		fclose(f) != 0)
		return 98;
	return 1;
}

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
	if (strcmp(end, "raise") == 0)
		return raise_error();
	return strncmp(end, "exit:", 5) == 0 ? atoi(end + 5) : 99;
}
