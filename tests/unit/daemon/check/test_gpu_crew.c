/* test_gpu_crew.c - processes for GPUs: what they are given, what of them is heard, how they end.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/check/gpu_crew.h"

static char program[] = "/tmp/gpu-crew-XXXXXX";

static const struct crew_row {
	const char *says, *script;
	unsigned count;
	int limit_ms, rc;
	const char *out, *said; /* said: a part of it; or of the failure */
} rows[] = {
	{ "the first one's stdout alone", "echo out $RANK", 3, 60000, 0, "out 4\n", "" },
	{ "ranks of their own",
		"test $LOCAL_RANK = 2 && echo $RANK of $WORLD_SIZE, $LOCAL_WORLD_SIZE here, "
		"node $GROUP_RANK, at $MASTER_ADDR:$MASTER_PORT >&2; exit 0",
		3, 60000, 0, "", "6 of 9, 3 here, node 1, at n0:29500" },
	{ "the rest of the environment", "echo $KEPT $NCCL_HOME", 1, 60000, 0, "kept /site/nccl\n",
		"" },
	{ "options", "echo $@", 1, 60000, 0, "--findings --keys check/0/gpu/ --limit 7\n", "" },
	{ "the last line of stderr", "echo first >&2; echo last >&2", 1, 60000, 0, "", "last" },
	{ "one that dies says nothing", "kill -9 $$", 1, 60000, 0, "", "" },
	{ "who takes too long is killed, and what it has started dies of its own",
		"test $LOCAL_RANK = 1 && exec sleep 1000; echo out", 2, 300, -ETIMEDOUT, "out\n",
		"did not end in its time" },
};

static void test_row(void **state)
{
	static const char *const env[] = { "RANK=77", "PATH=/usr/bin:/bin", "KEPT=kept",
		"MASTER_PORT=1", NULL };
	const struct crew_row *row = *state;
	struct text out = { 0 }, said = { 0 }, script = { 0 };
	struct failure why = { 0 };
	struct gpu_crew c = { .program = program,
		.nccl_home = "/site/nccl",
		.env = env,
		.keys = "check/0/gpu/",
		.store_host = "n0",
		.store_port = 29500,
		.node = 1,
		.first = 4,
		.count = row->count,
		.ranks = 9,
		.limit_s = 7,
		.until_ms = monotonic_ms() + row->limit_ms };
	int fd = open(program, O_WRONLY | O_TRUNC | O_CLOEXEC);

	text_printf(&script, "#!/bin/sh\n%s\n", row->script);
	assert_int_equal(write(fd, text_string(&script), script.len), (ssize_t)script.len);
	(void)close(fd);
	assert_int_equal(gpu_crew_run(&c, &out, &said, &why), row->rc);
	assert_string_equal(text_string(&out), row->out);
	assert_contains(row->rc < 0 ? why.text : text_string(&said), row->said);
	if (row->rc < 0)
		while (waitpid(-1, NULL, 0) > 0)
			continue; /* who was killed too late to be reaped at once */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
	text_done(&out);
	text_done(&said);
	text_done(&script);
}

static void test_no_program(void **state)
{
	static const char *const env[] = { NULL };
	struct text out = { 0 }, said = { 0 };
	struct failure why = { 0 };
	struct gpu_crew c = { .program = "/nowhere/launchd-nodecheck",
		.env = env,
		.keys = "",
		.count = 1,
		.ranks = 1,
		.until_ms = monotonic_ms() + 60000 };

	(void)state;
	assert_int_equal(gpu_crew_run(&c, &out, &said, &why), 0);
	assert_contains(
		text_string(&said), "/nowhere/launchd-nodecheck can't be executed: No such file");
	text_done(&out);
	text_done(&said);
}

TESTS(gpu_crew)
{
	struct suite s = { .count = 0 };
	int fd = mkstemp(program), rc;

	if (fd < 0 || fchmod(fd, 0700) < 0 || close(fd) < 0)
		return 1;
	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "a program that isn't there", test_no_program, NULL, NULL);
	rc = suite_run(&s);
	(void)unlink(program);
	return rc;
}
