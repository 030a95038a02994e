/* stubborn.c - stubborn PROGRAM [ARG...]: makes the processes of $HELPERS or $HELPERS_<rank>, each
 * of them hard to find or to end, and becomes PROGRAM when all are at work.
 *
 * HELPERS=daemon+ignore,session+stop: a birth (births.c) and what is done after it (deeds.c); "me"
 * is no birth, but the worker itself.
 *
 * All of them, and PROGRAM, hold the FIFO $WITNESS open for writing: the test that reads it finds
 * its end when the last of them is gone, by the kernel's own count. */
#include <unistd.h>

#include "births.h"
#include "deeds.h"
#include "worker.h"

enum { WORDS_MAX = 8 };

static int at_work[2]; /* a pipe: a byte from each helper */
static const char *doing[WORDS_MAX + 1];

static void do_all(bool late)
{
	for (const char **word = doing; *word; word++)
		if (deed(*word, late) < 0)
			_exit(99);
}

static void live(void)
{
	limit_life();
	do_all(false);
	if (write(at_work[1], "x", 1) != 1)
		_exit(99);
	(void)close(at_work[0]);
	(void)close(at_work[1]);
	do_all(true);
	live_on();
}

/* Returns how many helpers were made: 0 or 1; -1: not known, or not possible. */
static int make(char *helper)
{
	char *rest = NULL, *kind = strtok_r(helper, "+", &rest), *word;
	size_t n = 0;

	while ((word = strtok_r(NULL, "+", &rest)) && n < WORDS_MAX)
		doing[n++] = word;
	doing[n] = NULL;
	if (!kind)
		return -1;
	if (strcmp(kind, "me") != 0)
		return birth(kind, live) < 0 ? -1 : 1;
	do_all(false);
	return 0;
}

int main(int argc, char **argv)
{
	char *helpers = strdup(mine("HELPERS", "")), *rest = NULL, byte;
	const char *witness = getenv("WITNESS");
	int made, count = 0;

	/* open for good, and not closed by exec */
	if (argc < 2 || !helpers || pipe(at_work) < 0 || (witness && open(witness, O_WRONLY) < 0))
		return 99;
	for (char *h = strtok_r(helpers, ",", &rest); h; h = strtok_r(NULL, ",", &rest)) {
		made = make(h);
		if (made < 0)
			return 99;
		count += made;
	}
	free(helpers);
	(void)close(at_work[1]);
	while (count-- > 0)
		if (read(at_work[0], &byte, 1) != 1)
			return 99;
	(void)close(at_work[0]);
	(void)execv(argv[1], argv + 1);
	return 99;
}
