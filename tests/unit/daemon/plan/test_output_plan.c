/* test_output_plan.c - what becomes of the workers' output. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

#define TEE   "[${role_name}${local_rank}]:"
#define MERGE "[${hostname}:${rank}]:"

struct put {
	enum setting_id id;
	const char *text;
};

/* A job whose only node, or first of two, has two workers; one node's settings. */
static const struct stream_row {
	const char *says;
	struct put put[4];
	bool terminal; /* stdout and stderr are one */
	const char *launcher;
	unsigned local_rank;
	int fd;
	struct stream_plan is;
	bool tree;
} streams[] = {
	/* without any flag */
	{ "nothing asked: whole lines to the console", { { 0 } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	{ "nothing asked, on a terminal: it is inherited", { { 0 } }, true, NULL, 1, 2,
		{ STREAM_INHERIT, false, true, NULL, false }, false },
	{ "mpirun's pty is nobody's terminal", { { 0 } }, true, "mpirun", 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	{ "nor is srun's", { { 0 } }, true, "srun", 0, 1, { STREAM_PIPE, false, true, NULL, false },
		false },
	{ "a prefix needs lines, also on a terminal",
		{ { SET_LOG_LINE_PREFIX_TEMPLATE, "${rank}:" } }, true, NULL, 0, 1,
		{ STREAM_PIPE, false, true, "${rank}:", false }, false },
	{ "an empty prefix is none", { { SET_LOG_LINE_PREFIX_TEMPLATE, "" } }, true, NULL, 0, 1,
		{ STREAM_INHERIT, false, true, NULL, false }, false },
	/* --redirects */
	{ "redirected: the worker has the file itself", { { SET_REDIRECTS, "1" } }, true, NULL, 0,
		1, { STREAM_DIRECT, true, false, NULL, false }, true },
	{ "redirected: the other stream is as ever", { { SET_REDIRECTS, "1" } }, false, NULL, 0, 2,
		{ STREAM_PIPE, false, true, NULL, false }, true },
	{ "redirected: the other stream on a terminal", { { SET_REDIRECTS, "2" } }, true, NULL, 0,
		1, { STREAM_INHERIT, false, true, NULL, false }, true },
	{ "redirected: one rank", { { SET_REDIRECTS, "1:3" } }, false, NULL, 1, 2,
		{ STREAM_DIRECT, true, false, NULL, false }, true },
	{ "redirected: another rank", { { SET_REDIRECTS, "1:3" } }, false, NULL, 0, 2,
		{ STREAM_PIPE, false, true, NULL, false }, true },
	{ "a limit of size needs launchd to write",
		{ { SET_REDIRECTS, "3" }, { SET_LOG_MAX_SIZE, "1K" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, true, false, NULL, false }, true },
	{ "timestamps do, too", { { SET_REDIRECTS, "3" }, { SET_LOG_TIMESTAMPS, "1" } }, false,
		NULL, 0, 1, { STREAM_PIPE, true, false, NULL, false }, true },
	{ "so does a signal that reopens files",
		{ { SET_REDIRECTS, "3" }, { SET_ON_SIGNAL, "USR1=reopen" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, true, false, NULL, false }, true },
	{ "redirected: a prefix is for the console",
		{ { SET_REDIRECTS, "3" }, { SET_LOG_LINE_PREFIX_TEMPLATE, "x" } }, false, NULL, 0,
		1, { STREAM_DIRECT, true, false, NULL, false }, true },
	/* --tee */
	{ "tee'd: both, with torchrun's prefix", { { SET_TEE, "3" } }, true, NULL, 0, 1,
		{ STREAM_PIPE, true, true, TEE, false }, true },
	{ "tee'd and redirected is tee'd", { { SET_TEE, "1" }, { SET_REDIRECTS, "3" } }, false,
		NULL, 0, 1, { STREAM_PIPE, true, true, TEE, false }, true },
	{ "tee'd and redirected: the stream that is redirected only",
		{ { SET_TEE, "1" }, { SET_REDIRECTS, "3" } }, false, NULL, 0, 2,
		{ STREAM_DIRECT, true, false, NULL, false }, true },
	{ "tee'd: the other stream has no prefix", { { SET_TEE, "1" } }, false, NULL, 0, 2,
		{ STREAM_PIPE, false, true, NULL, false }, true },
	{ "tee'd: a prefix of one's own",
		{ { SET_TEE, "3" }, { SET_LOG_LINE_PREFIX_TEMPLATE, "x" } }, false, NULL, 0, 2,
		{ STREAM_PIPE, true, true, "x", false }, true },
	/* --log-dir */
	{ "a directory alone: files and the console", { { SET_LOG_DIR, "/l" } }, true, NULL, 0, 1,
		{ STREAM_PIPE, true, true, NULL, false }, true },
	{ "a directory and -r: as -r says", { { SET_LOG_DIR, "/l" }, { SET_REDIRECTS, "1" } },
		false, NULL, 0, 2, { STREAM_PIPE, false, true, NULL, false }, true },
	{ "a directory and -r 0: error files only",
		{ { SET_LOG_DIR, "/l" }, { SET_REDIRECTS, "0" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, true },
	{ "a directory and -t: as -t says", { { SET_LOG_DIR, "/l" }, { SET_TEE, "0:1" } }, false,
		NULL, 1, 1, { STREAM_PIPE, false, true, NULL, false }, true },
	{ "-r 0 alone: no files", { { SET_REDIRECTS, "0" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	{ "-t for a rank that is not here: no files", { { SET_TEE, "5:3" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	{ "/dev/null: no files", { { SET_LOG_DIR, "/dev/null" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	{ "/dev/null and -r: the console", { { SET_LOG_DIR, "/dev/null" }, { SET_REDIRECTS, "3" } },
		true, NULL, 0, 1, { STREAM_INHERIT, false, true, NULL, false }, false },
	{ "/dev/null and -t: the console, without torchrun's prefix",
		{ { SET_LOG_DIR, "/dev/null" }, { SET_TEE, "3" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, false, true, NULL, false }, false },
	/* --local-ranks-filter */
	{ "a rank that is shown", { { SET_LOCAL_RANKS_FILTER, "1" } }, true, NULL, 1, 1,
		{ STREAM_INHERIT, false, true, NULL, false }, false },
	{ "a rank that is not: its last words are kept", { { SET_LOCAL_RANKS_FILTER, "1" } }, true,
		NULL, 0, 1, { STREAM_PIPE, false, false, NULL, false }, false },
	{ "an empty filter shows all", { { SET_LOCAL_RANKS_FILTER, "" } }, true, NULL, 0, 1,
		{ STREAM_INHERIT, false, true, NULL, false }, false },
	{ "tee'd and not shown is redirected",
		{ { SET_TEE, "3" }, { SET_LOCAL_RANKS_FILTER, "1" } }, false, NULL, 0, 1,
		{ STREAM_DIRECT, true, false, NULL, false }, true },
	{ "a directory, and not shown", { { SET_LOG_DIR, "/l" }, { SET_LOCAL_RANKS_FILTER, "1" } },
		false, NULL, 0, 1, { STREAM_DIRECT, true, false, NULL, false }, true },
	{ "/dev/null, and not shown",
		{ { SET_LOG_DIR, "/dev/null" }, { SET_LOCAL_RANKS_FILTER, "1" } }, false, NULL, 0,
		1, { STREAM_PIPE, false, false, NULL, false }, false },
	/* filters */
	{ "filtered lines of stdout", { { SET_TEE, "3" }, { SET_DUPLICATE_STDOUT_FILTERS, "E" } },
		false, NULL, 0, 1, { STREAM_PIPE, true, true, TEE, true }, true },
	{ "filters of stdout are not for stderr",
		{ { SET_TEE, "3" }, { SET_DUPLICATE_STDOUT_FILTERS, "E" } }, false, NULL, 0, 2,
		{ STREAM_PIPE, true, true, TEE, false }, true },
	{ "filtered lines of stderr", { { SET_TEE, "3" }, { SET_DUPLICATE_STDERR_FILTERS, "E" } },
		false, NULL, 0, 2, { STREAM_PIPE, true, true, TEE, true }, true },
	{ "filters are for tee'd streams",
		{ { SET_LOG_DIR, "/l" }, { SET_DUPLICATE_STDOUT_FILTERS, "E" } }, false, NULL, 0, 1,
		{ STREAM_PIPE, true, true, NULL, false }, true },
	{ "filters are for what is shown",
		{ { SET_TEE, "3" }, { SET_DUPLICATE_STDOUT_FILTERS, "E" },
			{ SET_LOCAL_RANKS_FILTER, "1" } },
		false, NULL, 0, 1, { STREAM_DIRECT, true, false, NULL, false }, true },
	{ "filters need a tree",
		{ { SET_TEE, "3" }, { SET_DUPLICATE_STDOUT_FILTERS, "E" },
			{ SET_LOG_DIR, "/dev/null" } },
		false, NULL, 0, 1, { STREAM_PIPE, false, true, NULL, false }, false },
	/* --only-rank */
	{ "files of the rank that starts", { { SET_ONLY_RANK, "1" }, { SET_REDIRECTS, "1:1" } },
		false, NULL, 1, 1, { STREAM_DIRECT, true, false, NULL, false }, true },
	{ "no files for a rank that doesn't", { { SET_ONLY_RANK, "1" }, { SET_REDIRECTS, "0:1" } },
		false, NULL, 1, 1, { STREAM_PIPE, false, true, NULL, false }, false },
};

/* Decides for two workers on each node. */
static int decide(struct settings_fixture *b, const struct put put[4], const struct topology *t,
	bool terminal, struct plan *ret)
{
	static const char *const env[] = { "OMP_NUM_THREADS=1", NULL };
	static const unsigned nproc[] = { 2, 2 };
	const struct facts facts = { .env = env,
		.hostname = "h",
		.cpus = 8,
		.random_id = "",
		.terminal = { terminal, terminal, terminal } };
	const struct deciding d = { &b->s, &facts, &b->notes, &b->why };

	settings_fixture_make(b, false);
	for (size_t i = 0; i < 4 && put[i].text; i++)
		settings_fixture_put(b, put[i].id, put[i].text,
			arena_printf(&b->arena, "--%s", setting_rows[put[i].id].flag));
	return plan_make(&d, t, nproc, ret);
}

static struct topology node_of(unsigned nnodes, const char *launcher, enum control_how how)
{
	return (struct topology){ .launcher = unit_launcher(launcher),
		.identity = { nnodes, 0, "", "", true, launcher && nnodes > 1 },
		.master = { "127.0.0.1", 1, "", "", false, 0, NULL },
		.nproc = 2,
		.nproc_from = "",
		.control = { .how = how, .from = "" } };
}

static void assert_stream(const struct stream_plan *is, const struct stream_plan *expected)
{
	assert_int_equal(is->way, expected->way);
	assert_int_equal(is->file, expected->file);
	assert_int_equal(is->console, expected->console);
	assert_int_equal(is->filtered, expected->filtered);
	assert_true((is->prefix == NULL) == (expected->prefix == NULL));
	if (is->prefix)
		assert_string_equal(is->prefix, expected->prefix);
}

static void test_stream(void **state)
{
	const struct stream_row *row = *state;
	const struct topology t = node_of(1, row->launcher, CONTROL_NONE);
	struct stream_plan is;
	struct plan p = { 0 };
	struct settings_fixture b;
	int rc = decide(&b, row->put, &t, row->terminal, &p);

	assert_outcome(rc, 0, &b.why, NULL);
	is = plan_stream(&p, row->local_rank, row->fd);
	assert_stream(&is, &row->is);
	assert_int_equal(p.output.tree, row->tree);
	settings_fixture_done(&b);
}

static const struct note_row {
	const char *says;
	struct put put[4];
	const char *note; /* NULL: none at all */
} notes[] = {
	{ "nothing to say", { { 0 } }, NULL },
	{ "nothing to say of what works",
		{ { SET_TEE, "3" }, { SET_LOG_MAX_SIZE, "1M" }, { SET_LOG_KEEP, "2" },
			{ SET_LOG_TIMESTAMPS, "1" } },
		NULL },
	{ "nor of filters",
		{ { SET_TEE, "3" }, { SET_DUPLICATE_STDOUT_FILTERS, "a" },
			{ SET_DUPLICATE_STDERR_FILTERS, "b" } },
		NULL },
	{ "nor of lines that are dropped", { { SET_CONSOLE_OVERFLOW, "drop" } }, NULL },
	{ "nor of a prefix", { { SET_LOG_LINE_PREFIX_TEMPLATE, "x" }, { SET_REDIRECTS, "1" } },
		NULL },
	{ "nor of the last local rank",
		{ { SET_TEE, "1:3" }, { SET_REDIRECTS, "0-1:3" },
			{ SET_LOCAL_RANKS_FILTER, "0,1" } },
		NULL },
	{ "nor of files that are reopened",
		{ { SET_REDIRECTS, "3" }, { SET_ON_SIGNAL, "USR1=reopen" } }, NULL },
	{ "nor of settings that ask for nothing",
		{ { SET_LOG_MAX_SIZE, "0" }, { SET_LOG_TIMESTAMPS, "0" },
			{ SET_CONSOLE_OVERFLOW, "block" }, { SET_DUPLICATE_STDERR_FILTERS, "," } },
		NULL },
	{ "a limit of size without files", { { SET_LOG_MAX_SIZE, "1M" } },
		"--log-max-size has no effect without log files; --log-dir, -r and -t create" },
	{ "old files without a limit of size", { { SET_LOG_KEEP, "3" }, { SET_REDIRECTS, "3" } },
		"--log-keep has no effect without --log-max-size" },
	{ "timestamps without files", { { SET_LOG_TIMESTAMPS, "1" } },
		"--log-timestamps has no effect without log files" },
	{ "a console that nobody waits for",
		{ { SET_CONSOLE_OVERFLOW, "drop" }, { SET_LOG_DIR, "/l" } },
		"--console-overflow has no effect here: no worker's output goes through launchd to" },
	{ "a prefix and nothing on the console",
		{ { SET_LOG_LINE_PREFIX_TEMPLATE, "x" }, { SET_REDIRECTS, "3" } },
		"--log-line-prefix-template has no effect here: nothing goes to the console" },
	{ "filters of stdout and a tee of stderr",
		{ { SET_TEE, "2" }, { SET_DUPLICATE_STDOUT_FILTERS, "a" } },
		"--duplicate-stdout-filters has no effect here: it applies only to a stdout that is tee'd" },
	{ "filters of stderr without a tee", { { SET_DUPLICATE_STDERR_FILTERS, "a" } },
		"--duplicate-stderr-filters has no effect here: it applies only to a stderr that is tee'd" },
	{ "reopening without files", { { SET_ON_SIGNAL, "USR1=reopen" } },
		"--on-signal: reopen has no effect without log files" },
	{ "a local rank to redirect that is not there", { { SET_REDIRECTS, "0-2:3" } },
		"--redirects: \"0-2:3\" has local rank 2, but the last one is 1" },
	{ "a local rank to tee", { { SET_TEE, "0:1,64:3" } },
		"--tee: \"0:1,64:3\" has local rank 64, but the last one is 1" },
	{ "a local rank to show", { { SET_LOCAL_RANKS_FILTER, "0-7" } },
		"--local-ranks-filter: \"0-7\" has local rank 7, but the last one is 1" },
	{ "a prefix for the journal",
		{ { SET_LOG_LINE_PREFIX_TEMPLATE, "x" }, { SET_JOURNAL, "all" } },
		"--log-line-prefix-template has no effect in the journal, whose entries have" },
	{ "redirected to nowhere", { { SET_LOG_DIR, "/dev/null" }, { SET_REDIRECTS, "1:2" } },
		"--log-dir: with /dev/null there are no log files: the streams of -r and -t go" },
};

static void test_notes(void **state)
{
	const struct note_row *row = *state;
	const struct topology t = node_of(1, NULL, CONTROL_NONE);
	struct plan p = { 0 };
	struct settings_fixture b;
	int rc = decide(&b, row->put, &t, false, &p);

	assert_outcome(rc, 0, &b.why, NULL);
	assert_note(&b.notes, row->note ? NOTE_WARNING : NOTE_VERBOSE, row->note);
	settings_fixture_done(&b);
}

/* What the whole cluster's file says is right for some nodes, and for the others no matter. */
static void test_system_file(void **state)
{
	const struct topology t = node_of(1, NULL, CONTROL_NONE);
	const struct origin etc = { LEVEL_SYSTEM_FILE, "/etc/launchd/launchd.conf:3" };
	static const char *const env[] = { "OMP_NUM_THREADS=1", NULL };
	const struct facts facts = { .env = env, .hostname = "h", .cpus = 8, .random_id = "" };
	static const unsigned nproc[] = { 2 };
	struct plan p = { 0 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_LOG_KEEP, "3", etc, &b.why), 0);
	assert_int_equal(settings_put(&b.s, SET_LOG_MAX_SIZE, "1M", etc, &b.why), 0);
	assert_int_equal(plan_make(&d, &t, nproc, &p), 0);
	assert_note(&b.notes, NOTE_VERBOSE, NULL);
	assert_int_equal(p.output.keep, 3);
	assert_int_equal(p.output.max_size_bytes, 1048576);
	settings_fixture_done(&b);
}

/* Nothing starts on a node whose rank it isn't, so nothing is said of its output. */
static void test_nothing_started(void **state)
{
	static const struct put put[4] = { { SET_ONLY_RANK, "2" }, { SET_REDIRECTS, "3" },
		{ SET_LOG_TIMESTAMPS, "1" }, { SET_LOG_KEEP, "3" } };
	const struct topology t = node_of(2, NULL, CONTROL_STATIC);
	struct plan p = { 0 };
	struct settings_fixture b;

	(void)state;
	assert_int_equal(decide(&b, put, &t, false, &p), 0);
	assert_int_equal(p.start_count, 0);
	assert_false(p.output.tree);
	assert_note(&b.notes, NOTE_WARNING, NULL);
	settings_fixture_done(&b);
}

static const struct merge_row {
	const char *says;
	unsigned nnodes;
	const char *launcher;
	enum control_how control;
	const char *tee;
	bool merge;
	const char *prefix; /* of stdout */
	int rc;
	const char *part; /* of the note or the sentence */
	enum note_level level;
} merges[] = {
	{ "static nodes", 2, NULL, CONTROL_STATIC, "0", true, MERGE, 0, NULL, 0 },
	{ "srun", 2, "srun", CONTROL_EXCHANGE, "0", true, MERGE, 0, NULL, 0 },
	{ "not torchrun's prefix", 2, NULL, CONTROL_STATIC, "3", true, MERGE, 0, NULL, 0 },
	{ "one node", 1, NULL, CONTROL_NONE, "0", false, NULL, 0,
		"--merge-logs has no effect on one node", NOTE_INFO },
	{ "mpirun", 2, "mpirun", CONTROL_EXCHANGE, "0", false, NULL, 0,
		"--merge-logs has no effect under", NOTE_WARNING },
	{ "mpiexec", 2, "mpiexec", CONTROL_STATIC, "0", false, NULL, 0,
		"--merge-logs has no effect under", NOTE_WARNING },
	{ "launchers that stand alone", 2, NULL, CONTROL_NONE, "0", false, NULL, -EINVAL,
		"--merge-logs needs launchers that meet, which --control prevents", 0 },
};

static void test_merge(void **state)
{
	const struct merge_row *row = *state;
	const struct put put[4] = { { SET_MERGE_LOGS, "1" }, { SET_TEE, row->tee },
		{ SET_CONTROL, row->control == CONTROL_NONE ? "off" : "auto" } };
	const struct topology t = node_of(row->nnodes, row->launcher, row->control);
	const struct stream_plan expected = { STREAM_PIPE, *row->tee == '3', true, row->prefix,
		false };
	struct stream_plan is;
	struct plan p = { 0 };
	struct settings_fixture b;
	int rc = decide(&b, put, &t, row->merge, &p);

	assert_outcome(rc, row->rc, &b.why, row->part && rc < 0 ? row->part : NULL);
	if (rc == 0) {
		is = plan_stream(&p, 0, 1);
		assert_stream(&is, &expected);
		assert_int_equal(p.output.merge, row->merge);
		assert_note(&b.notes, row->part ? row->level : NOTE_WARNING, row->part);
	}
	settings_fixture_done(&b);
}

static const struct filters_row {
	const char *says, *text;
	const char *is[4];
} filters[] = {
	{ "no filter", "", { NULL } },
	{ "one text", "apple", { "apple" } },
	{ "two texts", "apple,orange pie", { "apple", "orange pie" } },
	{ "a comma in a text", "a,,b", { "a,b" } },
	{ "a comma at the begin", ",,b", { ",b" } },
	{ "a comma at the end", "a,,", { "a," } },
	{ "a comma alone", ",,", { "," } },
	{ "three in a row: a comma, then the next text", "a,,,b", { "a,", "b" } },
	{ "four in a row: two commas", "a,,,,b", { "a,,b" } },
	{ "an empty text is none", "a,", { "a" } },
	{ "blanks count", " a , b ", { " a ", " b " } },
};

static void test_filters(void **state)
{
	const struct filters_row *row = *state;
	const struct put put[4] = { { SET_DUPLICATE_STDOUT_FILTERS, row->text } };
	const struct topology t = node_of(1, NULL, CONTROL_NONE);
	struct plan p = { 0 };
	struct settings_fixture b;
	size_t n = 0;

	assert_int_equal(decide(&b, put, &t, false, &p), 0);
	for (; n < 4 && row->is[n]; n++) {
		assert_true(n < p.output.out_filters.count);
		assert_string_equal(p.output.out_filters.at[n], row->is[n]);
	}
	assert_int_equal(p.output.out_filters.count, n);
	assert_int_equal(p.output.err_filters.count, 0);
	settings_fixture_done(&b);
}

static void test_values(void **state)
{
	static const struct put put[4] = { { SET_LOG_FORMAT, "json" }, { SET_TAIL_LINES, "7" },
		{ SET_EVENTS, "fd:9" }, { SET_CONSOLE_OVERFLOW, "drop" } };
	const struct topology none = node_of(1, NULL, CONTROL_NONE);
	const struct topology mpi = node_of(1, "mpirun", CONTROL_NONE);
	const struct put bad[4] = { { SET_EVENTS, "fd:x" } };
	struct plan p = { 0 };
	struct settings_fixture b;

	(void)state;
	assert_int_equal(decide(&b, put, &none, true, &p), 0);
	assert_true(p.output.json && p.output.drop && p.output.tail_lines == 7);
	assert_true(p.output.events_fd == 9 && !p.output.events_path);
	assert_true(p.output.terminal[0] && p.output.terminal[1] && p.output.terminal[2]);
	settings_fixture_done(&b);
	assert_int_equal(decide(&b, &(struct put[4]){ { 0 } }[0], &mpi, true, &p), 0);
	assert_false(p.output.json || p.output.drop || p.output.merge || p.output.reopen);
	assert_false(p.output.terminal[0] || p.output.terminal[1] || p.output.terminal[2]);
	assert_true(p.output.tail_lines == 20 && p.output.keep == 5 && p.output.events_fd == -1);
	settings_fixture_done(&b);
	assert_outcome(decide(&b, bad, &none, true, &p), -EINVAL, &b.why, "--events: \"fd:x\"");
	settings_fixture_done(&b);
}

static const struct journal_row {
	const char *says, *asked;
	bool is_stream; /* stderr is the journal's */
	bool merge;
	enum journal_use use;
	int rc;
} journals[] = {
	{ "not asked for, and not there", "auto", false, false, JOURNAL_NONE, 0 },
	{ "stderr is the journal", "auto", true, false, JOURNAL_MESSAGES, 0 },
	{ "asked for beside another stderr", "messages", false, false, JOURNAL_MESSAGES, 0 },
	{ "not wanted", "none", true, false, JOURNAL_NONE, 0 },
	{ "workers' lines, too", "all", false, false, JOURNAL_ALL, 0 },
	{ "messages, and lines of all nodes", "messages", true, true, JOURNAL_MESSAGES, 0 },
	{ "lines to one node, and to each one's journal", "all", false, true, 0, -EINVAL },
};

static void test_journal(void **state)
{
	const struct journal_row *row = *state;
	static const char *const env[] = { "OMP_NUM_THREADS=1", NULL };
	static const unsigned nproc[] = { 2, 2 };
	const struct facts facts = { .env = env,
		.hostname = "h",
		.cpus = 8,
		.random_id = "",
		.terminal = { true, true, true },
		.stderr_is_journal = row->is_stream };
	const struct topology t =
		node_of(row->merge ? 2 : 1, NULL, row->merge ? CONTROL_STATIC : CONTROL_NONE);
	const struct origin flag = { LEVEL_COMMAND_LINE, "a flag" };
	struct plan p = { 0 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	struct stream_plan is;

	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_JOURNAL, row->asked, flag, &b.why), 0);
	if (row->merge)
		assert_int_equal(settings_put(&b.s, SET_MERGE_LOGS, "1", flag, &b.why), 0);
	assert_outcome(plan_make(&d, &t, nproc, &p), row->rc, &b.why,
		row->rc < 0 ? "each node has a journal of its own" : NULL);
	if (row->rc == 0) {
		assert_int_equal(p.output.journal, row->use);
		assert_int_equal(p.output.stderr_is_journal, row->is_stream);
		is = plan_stream(&p, 0, 1); /* no terminal, where lines go elsewhere */
		assert_int_equal(is.way == STREAM_PIPE, row->use == JOURNAL_ALL || row->merge);
	}
	settings_fixture_done(&b);
}

TESTS(output_plan)
{
	static struct suite s;

	SUITE_ROWS(&s, test_stream, streams);
	SUITE_ROWS(&s, test_notes, notes);
	SUITE_ROWS(&s, test_merge, merges);
	SUITE_ROWS(&s, test_journal, journals);
	SUITE_ROWS(&s, test_filters, filters);
	suite_add(&s, "the system's file is no reason for a warning", test_system_file, NULL, NULL);
	suite_add(&s, "where nothing starts there is no output", test_nothing_started, NULL, NULL);
	suite_add(&s, "the other values", test_values, NULL, NULL);
	return suite_run(&s);
}
