/* test_ras_talk.c - the sentence that counts of what NCCL's RAS answers. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/ras_talk.h"

#define HEAD \
	"OK\nNCCL version 2.24.3 compiled with CUDA 12.6\n\nJob summary\n===========\n\n" \
	"  Nodes  Processes\n      4          4\n\nCommunicators... (0.00s)\n=============\n\n" \
	"    0         1         4   RUNNING      OK\n\n"
#define WELL "no errors, as far as NCCL counts: operations that were launched, not done"

static const struct answer_row {
	const char *says, *answer;
	enum ras_says told;
	const char *text;
} answers[] = {
	{ "all is well", HEAD "Errors\n======\n\nWarnings\n========\n\n", RAS_WELL, WELL },
	{ "no sections", HEAD, RAS_UNCLEAR,
		"it answers: NCCL version 2.24.3 compiled with CUDA 12.6" },
	{ "nothing", "", RAS_UNCLEAR, "it answers nothing" },
	{ "another count in one rank",
		HEAD
		"Errors\n======\n\n#0-0 (cf264af53edbe986) MISMATCH\n  Communicator ranks have "
		"different collective operation counts\n    26 ranks have launched up to "
		"operation 6650\n\nWarnings\n========\n\n",
		RAS_ERRORS,
		"#0-0 (cf264af53edbe986) MISMATCH: Communicator ranks have different collective "
		"operation counts; 26 ranks have launched up to operation 6650" },
	{ "a paragraph ends at an empty line",
		HEAD "Errors\n======\n\nDEAD\n  1 job process is considered dead\n\nMISMATCH\n",
		RAS_ERRORS, "DEAD: 1 job process is considered dead" },
	{ "only a warning",
		HEAD "Errors\n======\n\nWarnings\n========\n\nTIMEOUT\n  Encountered 2 "
		     "communication timeouts\n",
		RAS_WELL, "TIMEOUT: Encountered 2 communication timeouts" },
	{ "cut in the middle of a section", HEAD "Errors\n======\n\nINCOMPL", RAS_ERRORS,
		"INCOMPL" },
	{ "cut behind its name", HEAD "Errors\n==", RAS_UNCLEAR,
		"it answers: NCCL version 2.24.3 compiled with CUDA 12.6" },
	{ "a name without a ruler", HEAD "Errors\nMISMATCH\n", RAS_UNCLEAR,
		"it answers: NCCL version 2.24.3 compiled with CUDA 12.6" },
	{ "returns, and what a terminal would obey", "Errors\r\n======\r\n\x1b[2JDEAD\r\n",
		RAS_ERRORS, "\\x1b[2JDEAD" },
	{ "an error of the protocol", "OK\nERROR: unknown command\n", RAS_UNCLEAR,
		"it answers: ERROR: unknown command" },
};

static void test_answer(void **state)
{
	const struct answer_row *row = *state;
	struct text t = { 0 };

	assert_int_equal(ras_talk_read(row->answer, strlen(row->answer), &t), row->told);
	assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

/* Whatever was cut off is nobody's memory. */
static void test_every_cut(void **state)
{
	static const char whole[] = HEAD "Errors\n======\n\nDEAD\n  1 process\n\n";

	(void)state;
	for (size_t len = 0; len <= sizeof whole - 1; len++) {
		char *copy = malloc(len + 1);
		struct text t = { 0 };

		assert_non_null(copy);
		memcpy(copy, whole, len);
		(void)ras_talk_read(copy, len, &t);
		text_done(&t);
		free(copy);
	}
}

static const struct address_row {
	const char *says, *at;
	bool good;
	const char *host, *port;
} addresses[] = {
	{ "the default", "localhost:28028", true, "localhost", "28028" },
	{ "IPv6", "[::1]:7", true, "::1", "7" },
	{ "no port", "localhost", false, NULL, NULL },
	{ "an empty port", "localhost:", false, NULL, NULL },
	{ "no host", ":7", false, NULL, NULL },
	{ "nothing", "", false, NULL, NULL },
	{ "a port that is too long", "localhost:12345678", false, NULL, NULL },
	{ "a host that is too long", "localhostlocalhost:1", false, NULL, NULL },
};

static void test_address(void **state)
{
	const struct address_row *row = *state;
	char host[16], port[8];

	assert_int_equal(
		ras_talk_address(row->at, host, sizeof host, port, sizeof port), row->good);
	if (!row->good)
		return;
	assert_string_equal(host, row->host);
	assert_string_equal(port, row->port);
}

TESTS(ras_talk)
{
	static struct suite s;

	SUITE_ROWS(&s, test_answer, answers);
	SUITE_ROWS(&s, test_address, addresses);
	suite_add(&s, "every cut of an answer", test_every_cut, NULL, NULL);
	return suite_run(&s);
}
