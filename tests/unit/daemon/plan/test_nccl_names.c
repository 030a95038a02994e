/* test_nccl_names.c - what --blackbox names for torch and NCCL, and what it leaves as it is. */
#include "tests/unit/unit.h"

#include "common/arena.h"
#include "config/settings.h"
#include "daemon/plan/nccl_names.h"
#include "daemon/plan/plan.h"

#define NOW    "TORCH_FR_DUMP_TEMP_FILE"
#define BEFORE "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"
#define TRACE  "/tmp/run/attempt_2_nccl_trace_rank_"
#define DUMP   "/tmp/run/attempt_2_nccl_dump_rank_"

static const struct names_row {
	const char *says, *blackbox, *variable, *torch, *port;
	bool wrapped;
	const char *name, *dumps, *pipes, *set_dumps, *set_pipes, *set_ras;
} rows[] = {
	{ "all of them", "box", "X=1", NULL, "29500", false, BEFORE, TRACE, DUMP, TRACE, DUMP,
		"localhost:29529" },
	{ "none without --blackbox", NULL, "X=1", NULL, "29500", false, BEFORE, NULL, NULL, NULL,
		NULL, NULL },
	{ "the user's dumps", "box", BEFORE "=/x/d_", "2.4.0", "1", false, BEFORE, "/x/d_", DUMP,
		NULL, DUMP, "localhost:28030" },
	{ "by their newer name", "box", NOW "=/x/d_", "2.10.1", "4000", false, NOW, "/x/d_", DUMP,
		NULL, DUMP, "localhost:28029" },
	{ "by the name that this torch doesn't read", "box", NOW "=/x/d_", "2.5.1", "4000", false,
		BEFORE, "/x/d_", DUMP, "/x/d_", DUMP, "localhost:28029" },
	{ "the user's pipes", "box", NCCL_PIPES "=/x/p_", "2.9", "1", false, NOW, TRACE, "/x/p_",
		TRACE, NULL, "localhost:28030" },
	{ "the user's RAS", "box", NCCL_RAS "=:1", "1.13.1", "1", false, BEFORE, TRACE, DUMP, TRACE,
		DUMP, NULL },
	{ "no pipe where the directory may not be there", "box", "X=1", "2.8", "1", true, BEFORE,
		TRACE, NULL, TRACE, NULL, "localhost:28030" },
	{ "a port that is not known yet", "box", "X=1", "3.0", "<a free port>", false, NOW, TRACE,
		DUMP, TRACE, DUMP, "localhost:<a port of this attempt>" },
	{ "a version that is none", "box", "X=1", "odd", "1", false, BEFORE, TRACE, DUMP, TRACE,
		DUMP, "localhost:28030" },
};

static void assert_text(const char *is, const char *expected)
{
	assert_int_equal(is != NULL, expected != NULL);
	if (is)
		assert_string_equal(is, expected);
}

static void test_names(void **state)
{
	const struct names_row *row = *state;
	const char *env[] = { "PATH=/bin", row->variable, NULL };
	const struct plan p = { .env = env,
		.blackbox_dir = row->blackbox,
		.torch_version = row->torch,
		.wrap = { .count = row->wrapped } };
	const struct attempt attempt = { 2, row->port, "/tmp/run", NULL };
	struct arena arena = { 0 };
	struct nccl_names names;

	nccl_names_choose(&p, &attempt, &arena, &names);
	assert_text(names.dumps_variable, row->name);
	assert_text(names.dumps, row->dumps);
	assert_text(names.pipes, row->pipes);
	assert_text(names.set_dumps, row->set_dumps);
	assert_text(names.set_pipes, row->set_pipes);
	assert_text(names.set_ras, row->set_ras);
	assert_text(names.set_trace, row->blackbox ? "2000" : NULL);
	arena_done(&arena);
}

/* Of a job that may hang NCCL is asked while it lives. */
static void test_hangs(void **state)
{
	const char *env[] = { "PATH=/bin", NULL }, *named[] = { NCCL_RAS "=:1", NULL };
	struct plan p = { .env = env, .on_hang = ON_HANG_REPORT };
	const struct attempt attempt = { 2, "29500", "/tmp/run", NULL };
	struct arena arena = { 0 };
	struct nccl_names names;

	(void)state;
	nccl_names_choose(&p, &attempt, &arena, &names);
	assert_text(names.set_ras, "localhost:29529");
	assert_text(names.set_dumps, NULL);
	assert_text(names.set_pipes, NULL);
	p.env = named;
	nccl_names_choose(&p, &attempt, &arena, &names);
	assert_text(names.set_ras, NULL);
	arena_done(&arena);
}

/* Up to torch 2.10 the recorder is off unless its buffer has a size; the user's own stays. */
static const struct trace_row {
	const char *says, *torch, *inherited, *given, *set;
} traces[] = {
	{ "a version that is not known", NULL, NULL, NULL, "2000" },
	{ "the first with a recorder", "2.3.1", NULL, NULL, "2000" },
	{ "the last that has it off", "2.10.0", NULL, NULL, "2000" },
	{ "the user's size", "2.6", NCCL_TRACE "=20000", NULL, NULL },
	{ "the user has it off", "2.12", NCCL_TRACE "=0", NULL, NULL },
	{ "the user's size by its newer name", "2.9", NCCL_TRACE_NOW "=50", NULL, "50" },
	{ "none by its newer name", "2.5", NCCL_TRACE_NOW "=", NULL, "2000" },
	{ "that of --env", "2.9", NULL, "7", NULL },
};

static void test_trace(void **state)
{
	const struct trace_row *row = *state;
	const char *env[] = { "PATH=/bin", row->inherited, NULL };
	const struct env_change given = { .name = NCCL_TRACE, .value = row->given };
	const struct plan p = { .env = env,
		.user_env = row->given ? &given : NULL,
		.blackbox_dir = "box",
		.torch_version = row->torch };
	const struct attempt attempt = { 2, "29500", "/tmp/run", NULL };
	struct arena arena = { 0 };
	struct nccl_names names;

	nccl_names_choose(&p, &attempt, &arena, &names);
	assert_text(names.set_trace, row->set);
	arena_done(&arena);
}

TESTS(nccl_names)
{
	static struct suite s;

	SUITE_ROWS(&s, test_trace, traces);

	suite_add(&s, "RAS alone for --on-hang", test_hangs, NULL, NULL);
	SUITE_ROWS(&s, test_names, rows);
	return suite_run(&s);
}
