/* test_signame.c - names of signals, both ways. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/signame.h"

static const struct number_row {
	const char *says, *text;
	int signal; /* below 0: none; above 1000: SIGRTMIN and what is beyond 1000 */
} numbers[] = {
	{ "a short name", "TERM", SIGTERM },
	{ "a whole name", "SIGTERM", SIGTERM },
	{ "in small letters", "sigusr1", SIGUSR1 },
	{ "short and small", "hup", SIGHUP },
	{ "a number", "15", SIGTERM },
	{ "the first number", "1", SIGHUP },
	{ "a real-time signal", "SIGRTMIN+3", 1003 },
	{ "a real-time signal, short", "rtmin+3", 1003 },
	{ "the first real-time signal", "RTMIN+0", 1000 },
	{ "nothing", "", -EINVAL },
	{ "the front of all names", "SIG", -EINVAL },
	{ "a name's beginning", "TER", -EINVAL },
	{ "a name with more behind it", "TERMX", -EINVAL },
	{ "a word", "signal", -EINVAL },
	{ "the number 0", "0", -EINVAL },
	{ "a number beyond the last", "65", -EINVAL },
	{ "a number with a sign", "-1", -EINVAL },
	{ "a blank", " TERM", -EINVAL },
	{ "one of the threads library's own", "signal 32", -EINVAL },
	{ "a name far too long", "SIGTERMSIGTERMSIGTERMSIGTERMSIGTERM", -EINVAL },
};

static void test_number(void **state)
{
	const struct number_row *row = *state;
	int expected = row->signal >= 1000 ? SIGRTMIN + row->signal - 1000 : row->signal;

	assert_int_equal(signal_number(row->text, strlen(row->text)), expected);
}

static const struct name_row {
	const char *says;
	int signal;
	const char *name;
} names[] = {
	{ "TERM", SIGTERM, "SIGTERM" },
	{ "KILL", SIGKILL, "SIGKILL" },
	{ "a number without a name", 99, "signal 99" },
	{ "one of the threads library's own is only a number", 32, "signal 32" },
};

static void test_name(void **state)
{
	const struct name_row *row = *state;

	assert_string_equal(signal_name(row->signal), row->name);
}

/* Only the len bytes are read, and what one function says the other understands. */
static void test_both_ways(void **state)
{
	(void)state;
	assert_int_equal(signal_number("TERMINATE", 4), SIGTERM);
	for (int n = 1; n <= SIGRTMAX; n++) {
		const char *name = signal_name(n);

		if (strncmp(name, "SIG", 3) == 0)
			assert_int_equal(signal_number(name, strlen(name)), n);
	}
	assert_string_equal(signal_name(SIGRTMIN + 2), "SIGRTMIN+2");
}

TESTS(signame)
{
	static struct suite s;

	SUITE_ROWS(&s, test_number, numbers);
	SUITE_ROWS(&s, test_name, names);
	suite_add(&s, "what one way says, the other way reads", test_both_ways, NULL, NULL);
	return suite_run(&s);
}
