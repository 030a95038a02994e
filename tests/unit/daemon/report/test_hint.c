/* test_hint.c - what the report says of a script that does not take the local rank, or an option of
 * launchd's, or is none of Python's, and when it says nothing. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/job/ending.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/hint.h"
#include "tests/unit/daemon/report/report_fixture.h"
#include "tests/unit/json.h"

#define REFUSED \
	"the script refused --local_rank, which launchd passes to it: give --use_env (the script " \
	"then reads LOCAL_RANK)"
#define IN_USE \
	"if the script listens on MASTER_PORT itself, give --store rank0: launchd hosts the store there"
#define PERHAPS "if the script refused --local_rank, which launchd passes to it, give --use_env"
#define ENDED(code) \
	{ \
		ENDED_EXIT, (code), false \
	}

/* clang-format off */
#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"

#define SHM_REMEDY \
	"give a container more (docker run --shm-size=16g; in Kubernetes an emptyDir with " \
	"medium: Memory at /dev/shm), or use fewer DataLoader workers"

enum { FULL_SHM = 100 };

static const struct hint_row {
	const char *says;
	struct ending end;
	const char *lines, *message; /* of its error file */
	bool use_env;
	const char *argument; /* NULL: --local_rank */
	const char *hint;     /* NULL: none */
	const char *args[3];  /* of the script */
	const char *foreign_line;
	int store; /* enum store_host; FULL_SHM: any, and /dev/shm was full */
} rows[] = {
	{ "SIGBUS with a full /dev/shm", { ENDED_SIGNAL, SIGBUS, false }, NULL, NULL, true, NULL,
		"/dev/shm was full when it failed: " SHM_REMEDY, .store = FULL_SHM },
	{ "a shell's SIGBUS", { ENDED_EXIT, 128 + SIGBUS, false }, NULL, NULL, true, NULL,
		"/dev/shm was full when it failed: " SHM_REMEDY, .store = FULL_SHM },
	{ "a loader's", { ENDED_EXIT, 1, false },
		"RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. \n", NULL,
		true, NULL, "/dev/shm was full when it failed: " SHM_REMEDY, .store = FULL_SHM },
	{ "a loader's, whose memory is free again", { ENDED_EXIT, 1, false },
		"ERROR: Unexpected bus error encountered in worker. This might be caused by "
		"insufficient shared memory (shm).\n",
		NULL, true, NULL, "its last words are about too little /dev/shm: " SHM_REMEDY,
		.store = STORE_RANK0 },
	{ "a loader's that could not write its file", { ENDED_EXIT, 1, false },
		"RuntimeError: unable to write to file </torch_24288_2018519783_0>: No space left "
		"on device (28)\n",
		NULL, true, NULL, "its last words are about too little /dev/shm: " SHM_REMEDY,
		.store = STORE_RANK0 },
	{ "SIGBUS alone", { ENDED_SIGNAL, SIGBUS, false }, NULL, NULL, true, NULL, NULL,
		.store = STORE_RANK0 },
	{ "a full /dev/shm alone", { ENDED_EXIT, 1, false }, "ValueError: teapot\n", NULL, true,
		NULL, NULL, .store = FULL_SHM },
	{ "torch, where launchd has the port", ENDED(1),
	  "RuntimeError: ... port: 29500, code: -98, name: EADDRINUSE, message: address already in use\n",
	  NULL, true, NULL, IN_USE, { NULL }, NULL, STORE_AGENT },
	{ "Python, in its error file", ENDED(1), NULL, "OSError: [Errno 98] Address already in use", true,
	  NULL, IN_USE, { NULL }, NULL, STORE_AGENT },
	{ "long before the end, where it found another one", ENDED(1),
	  "port 4711: Address already in use\n" LINES "ValueError: empty\n", NULL, true, NULL, NULL, { NULL },
	  NULL, STORE_AGENT },
	{ "torch waits at another port", ENDED(1),
	  "TimeoutError: The client socket has timed out after 1800s while trying to connect to (127.0.0.1, 23456).\n",
	  NULL, true, NULL,
	  "if the script has a MASTER_PORT or init_method of its own, give --store rank0: launchd hosts the store, "
	  "but at its MASTER_PORT only", { NULL }, NULL, STORE_AGENT },
	{ "JAX, which crashes then", { ENDED_SIGNAL, 11, false },
	  "Failed to add port to server: No address added out of total 1 resolved for '[::]:34209'\n", NULL,
	  true, NULL, IN_USE, { NULL }, NULL, STORE_AGENT },
	{ "the same where worker 0 has the port", ENDED(1), "OSError: [Errno 98] Address already in use\n",
	  NULL, true, NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "argparse", ENDED(2),
	  "usage: t.py [-h]\nt.py: error: unrecognized arguments: --local_rank=0\n", NULL, false, NULL,
	  REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "as torch.distributed.launch since 2.0 spells it", ENDED(2),
	  "t.py: error: unrecognized arguments: --local-rank=0", NULL, false, "--local-rank",
	  "the script refused --local-rank, which launchd passes to it: give --use_env (the script "
	  "then reads LOCAL_RANK)", { NULL }, NULL, STORE_RANK0 },
	{ "argparse that knows the other spelling", ENDED(2),
	  "usage: t.py [-h] [--local-rank R]\nt.py: error: unrecognized arguments: --local_rank=0\n",
	  NULL, false, NULL,
	  "the script takes --local-rank, not --local_rank: give --local_rank_arg=--local-rank", { NULL }, NULL, STORE_RANK0 },
	{ "the other way round", ENDED(2),
	  "usage: t.py [-h] [--local_rank R]\nt.py: error: unrecognized arguments: --local-rank=0\n",
	  NULL, false, "--local-rank",
	  "the script takes --local_rank, not --local-rank: give --local_rank_arg=--local_rank", { NULL }, NULL, STORE_RANK0 },
	{ "an argument that has one spelling", ENDED(2), "error: unknown option --gpu=0", NULL, false,
	  "--gpu",
	  "the script refused --gpu, which launchd passes to it: give --use_env (the script then "
	  "reads LOCAL_RANK)", { NULL }, NULL, STORE_RANK0 },
	{ "click", ENDED(2), "Error: No such option: --local_rank\n", NULL, false, NULL, REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "absl", ENDED(1), "FATAL Flags parsing error: Unknown command line flag 'local_rank'\n", NULL,
	  false, NULL, REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "fire", ENDED(2), "ERROR: Could not consume arg: --local_rank=0\nUsage: t.py -", NULL, false,
	  NULL, REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "HfArgumentParser", ENDED(1), "ValueError: Some specified arguments are not used by the "
	  "HfArgumentParser: ['--local_rank=0']\n", NULL, false, NULL, REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "getopt_long", ENDED(1), "./train: unrecognized option '--local_rank=0'\n", NULL, false, NULL,
	  REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "clap", ENDED(2), "error: unexpected argument '--local_rank' found\n", NULL, false, NULL,
	  REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "only in the error file", ENDED(1), NULL,
	  "ValueError: Some specified arguments are not used by the HfArgumentParser: "
	  "['--local_rank=0']", false, NULL, REFUSED, { NULL }, NULL, STORE_RANK0 },
	{ "words that nobody has read, with argparse's exit code", ENDED(2), NULL, NULL, false, NULL,
	  PERHAPS, { NULL }, NULL, STORE_RANK0 },
	{ "words that nobody has read, with another one", ENDED(1), NULL, NULL, false, NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "nothing was said", ENDED(2), "", NULL, false, NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "it was not passed", ENDED(2), "unrecognized arguments: --local_rank=0", NULL, true, NULL,
	  NULL, { NULL }, NULL, STORE_RANK0 },
	{ "another argument is refused", ENDED(2),
	  "usage: t.py [--local_rank R]\nt.py: error: unrecognized arguments: --nodes=0\n", NULL,
	  false, NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "it is only named", ENDED(2), "started with --local_rank=0\nunknown dataset\n", NULL, false,
	  NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "a name that only has it in it", ENDED(2), "unknown local_rank 3\nlocal_rank\n", NULL, false,
	  NULL, NULL, { NULL }, NULL, STORE_RANK0 },
	{ "an option of launchd's behind the script", ENDED(2),
	  "t.py: error: unrecognized arguments: --nproc_per_node 2 --local_rank=0\n", NULL, false, NULL,
	  "--nproc_per_node comes after the script, so it went to the script: launchd's own options go before the script", { "--lr", "--nproc_per_node", "2" }, NULL, STORE_RANK0 },
	{ "... and its value in one word", ENDED(2), "error: unrecognized arguments: --max-restarts=2\n",
	  NULL, true, NULL,
	  "--max-restarts comes after the script, so it went to the script: launchd's own options go before the script", { "--max-restarts=2" }, NULL, STORE_RANK0 },
	{ "... and nobody has read the script's words", ENDED(2), NULL, NULL, true, NULL,
	  "--nnodes comes after the script, so if it is launchd's, it went to the script: launchd's own options go before the script", { "--nnodes", "2" }, NULL, STORE_RANK0 },
	{ "... and the script takes it", ENDED(2), "error: unrecognized arguments: --foo\n", NULL, true,
	  NULL, NULL, { "--role", "x", "--foo" }, NULL, STORE_RANK0 },
	{ "... and it fails otherwise", ENDED(1), NULL, NULL, true, NULL, NULL, { "--nnodes" }, NULL, STORE_RANK0 },
	{ "an option that is not launchd's", ENDED(2), NULL, NULL, true, NULL, NULL, { "--lr" }, NULL, STORE_RANK0 },
	{ "Python runs a shell's script", ENDED(1), "    exit 0\nSyntaxError: invalid syntax\n", NULL,
	  true, NULL, "Python runs ./train, whose first line is #!/bin/sh: for a program that isn't a Python script give --no_python --use_env", { NULL }, "#!/bin/sh", STORE_RANK0 },
	{ "... whose words nobody has read", ENDED(1), NULL, NULL, true, NULL,
	  "Python runs ./train, whose first line is #!/bin/sh: for a program that isn't a Python script give --no_python --use_env", { NULL }, "#!/bin/sh", STORE_RANK0 },
	{ "... which is also Python", ENDED(1), "ValueError: the teapot is empty\n", NULL, true, NULL,
	  NULL, { NULL }, "#!/bin/sh", STORE_RANK0 },
	{ "a signal", { ENDED_SIGNAL, SIGSEGV, false }, "unrecognized arguments: --local_rank=0", NULL,
	  false, NULL, NULL, { NULL }, NULL, STORE_RANK0 },
};
/* clang-format on */

static char *made(
	const struct hint_row *row, void (*make)(const struct report_input *, struct text *))
{
	const struct error_record record = { .message = row->message };
	const struct outcome failed = {
		.pid = 10, .end = row->end, .shm_full = row->store == FULL_SHM
	};
	const struct result r = {
		.outcomes = &failed, .count = 1, .cause = cause_of_failure(&failed)
	};
	struct arena arena = { 0 };
	struct vec args = { 0 };
	char *report;
	const struct plan plan = {
		.script = "./train",
		.foreign_line = row->foreign_line,
		.use_env = row->use_env,
		.local_rank_arg = row->argument ? row->argument : "--local_rank",
		.args = &args,
		.start_count = 1,
		.store = (enum store_host)row->store,
		.output.tail_lines = 20,
	};

	for (size_t i = 0; i < 3 && row->args[i]; i++)
		vec_add(&arena, &args, row->args[i]);
	report = report_made(
		(struct report_input){
			.result = &r,
			.plan = &plan,
			.record = row->message ? &record : NULL,
			.words = { row->lines, NULL },
		},
		make);
	arena_done(&arena);
	return report;
}

static void test_hint(void **state)
{
	const struct hint_row *row = *state;
	char *text = made(row, report_text), *json = made(row, report_json);
	struct text line = { 0 }, member = { 0 };

	text_printf(&line, "\nlaunchd: error: hint: %s\n", row->hint);
	text_add(&member, "\"hint\":");
	text_add_json(&member, row->hint);
	assert_true(json_is_valid(json, strlen(json)));
	assert_contains(json, text_string(&member));
	if (row->hint)
		assert_contains(text, text_string(&line));
	else
		assert_null(strstr(text, "hint"));
	text_done(&line);
	text_done(&member);
	free(text);
	free(json);
}

TESTS(hint)
{
	static struct suite s;

	SUITE_ROWS(&s, test_hint, rows);
	return suite_run(&s);
}
