/* test_cli.c - the command line as the originals' argparse reads it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "config/sources.h"

#define V(id, text) \
	{ \
		SET_##id, text, NULL \
	}
#define VW(id, text, where) \
	{ \
		SET_##id, text, where \
	}

/* Command lines that are taken. */
static const struct taken_row {
	const char *says;
	const char *argv[10]; /* behind the program's name */
	struct expected expected[4];
	const char *script; /* NULL: none */
	const char *args[5];
} taken[] = {
	{ "nothing but a script", { "train.py" }, { { 0 } }, "train.py", { NULL } },
	{ "nothing at all", { NULL }, { { 0 } }, NULL, { NULL } },
	{ "a value in a word of its own", { "--nnodes", "2", "t.py" },
		{ VW(NNODES, "2", "--nnodes") }, "t.py", { NULL } },
	{ "a value behind '='", { "--nnodes=2", "t.py" }, { VW(NNODES, "2", "--nnodes") }, "t.py",
		{ NULL } },
	{ "underscores", { "--nproc_per_node=3", "t.py" },
		{ VW(NPROC_PER_NODE, "3", "--nproc_per_node") }, "t.py", { NULL } },
	{ "dashes", { "--nproc-per-node=3", "t.py" },
		{ VW(NPROC_PER_NODE, "3", "--nproc-per-node") }, "t.py", { NULL } },
	{ "both in one word", { "--nproc_per-node=3", "t.py" }, { V(NPROC_PER_NODE, "3") }, "t.py",
		{ NULL } },
	{ "dashes where ours are underscores, and the other way round",
		{ "--local-rank-arg=--x", "--dry_run=json", "t.py" },
		{ V(LOCAL_RANK_ARG, "--x"), V(DRY_RUN, "json") }, "t.py", { NULL } },
	{ "a value that holds '='", { "--rdzv-conf=timeout=5,a=b", "t.py" },
		{ V(RDZV_CONF, "timeout=5,a=b") }, "t.py", { NULL } },
	{ "an empty value behind '='", { "--rdzv-endpoint=", "t.py" }, { V(RDZV_ENDPOINT, "") },
		"t.py", { NULL } },
	{ "an empty value as a word", { "--rdzv-endpoint", "", "t.py" }, { V(RDZV_ENDPOINT, "") },
		"t.py", { NULL } },
	{ "the last one of two wins", { "--nnodes=2", "--nnodes", "3", "t.py" }, { V(NNODES, "3") },
		"t.py", { NULL } },
	{ "the last one wins over spellings", { "--node-rank=2", "--node_rank=0", "t.py" },
		{ VW(NODE_RANK, "0", "--node_rank") }, "t.py", { NULL } },
	{ "a flag", { "--use_env", "t.py" }, { VW(USE_ENV, "1", "--use_env") }, "t.py", { NULL } },
	{ "a flag does not take the next word", { "--module", "1" }, { V(MODULE, "1") }, "1",
		{ NULL } },
	{ "a short flag", { "-m", "pkg.train" }, { VW(MODULE, "1", "-m") }, "pkg.train", { NULL } },
	{ "a short option with its value beside", { "-r", "0", "t.py" },
		{ VW(REDIRECTS, "0", "-r") }, "t.py", { NULL } },
	{ "a short option with its value in the word", { "-t3", "t.py" }, { V(TEE, "3") }, "t.py",
		{ NULL } },
	{ "a short option with '='", { "-t=3", "t.py" }, { V(TEE, "3") }, "t.py", { NULL } },
	{ "short options joined", { "-mt", "0", "t" }, { V(MODULE, "1"), VW(TEE, "0", "-t") }, "t",
		{ NULL } },
	{ "short options joined, with the value in the word", { "-mt1:3", "t" },
		{ V(MODULE, "1"), V(TEE, "1:3") }, "t", { NULL } },
	{ "a flag given twice in a word", { "-mm", "t" }, { V(MODULE, "1") }, "t", { NULL } },
	{ "a negative number is a value", { "--role", "-1", "t.py" }, { V(ROLE, "-1") }, "t.py",
		{ NULL } },
	{ "a negative fraction is a value", { "--role", "-.5", "t.py" }, { V(ROLE, "-.5") }, "t.py",
		{ NULL } },
	{ "a dash is a value", { "--role", "-", "t.py" }, { V(ROLE, "-") }, "t.py", { NULL } },
	{ "a value with a blank may begin with a dash", { "--role", "-a b", "t.py" },
		{ V(ROLE, "-a b") }, "t.py", { NULL } },
	{ "any value may begin with a dash behind '='", { "--local_rank_arg=--local-rank", "t.py" },
		{ V(LOCAL_RANK_ARG, "--local-rank") }, "t.py", { NULL } },
	{ "a value may be left out where the table says so", { "--dry-run", "t.py" },
		{ V(DRY_RUN, "text") }, "t.py", { NULL } },
	{ "what is behind the script is the script's", { "t.py", "--nnodes", "2", "-m" }, { { 0 } },
		"t.py", { "--nnodes", "2", "-m" } },
	{ "also what is no option of ours", { "t.py", "--bogus", "", " a b " }, { { 0 } }, "t.py",
		{ "--bogus", "", " a b " } },
	{ "bytes that are no text pass through", { "t.py", "\xff\xfe\n$x'\"" }, { { 0 } }, "t.py",
		{ "\xff\xfe\n$x'\"" } },
	{ "one '--' directly behind the script is dropped", { "t.py", "--", "a" }, { { 0 } },
		"t.py", { "a" } },
	{ "only one is dropped", { "t.py", "--", "--", "a" }, { { 0 } }, "t.py", { "--", "a" } },
	{ "'--' further behind stays", { "t.py", "a", "--", "b" }, { { 0 } }, "t.py",
		{ "a", "--", "b" } },
	{ "'--' ends the options", { "--nnodes=2", "--", "--odd.py", "x" }, { V(NNODES, "2") },
		"--odd.py", { "x" } },
	{ "'--' before and behind the script", { "--", "t.py", "--", "x" }, { { 0 } }, "t.py",
		{ "x" } },
	{ "a dash is a script", { "-", "x" }, { { 0 } }, "-", { "x" } },
	{ "an abbreviation", { "--nproc", "2", "t.py" }, { VW(NPROC_PER_NODE, "2", "--nproc") },
		"t.py", { NULL } },
	{ "an abbreviation with '='", { "--np=2", "t.py" }, { V(NPROC_PER_NODE, "2") }, "t.py",
		{ NULL } },
	{ "an abbreviation across a dash", { "--master_a=h", "--master-p=1", "t.py" },
		{ V(MASTER_ADDR, "h"), V(MASTER_PORT, "1") }, "t.py", { NULL } },
	{ "an abbreviation means an original, although ours begins so, too: --e",
		{ "--e=null", "t.py" }, { V(EVENT_LOG_HANDLER, "null") }, "t.py", { NULL } },
	{ "an abbreviation means an original, although ours begins so, too: --u", { "--u", "t.py" },
		{ V(USE_ENV, "1") }, "t.py", { NULL } },
	{ "an abbreviation means an original, although ours begins so, too: --v", { "--v", "t.py" },
		{ V(VIRTUAL_LOCAL_RANK, "1"), V(VERBOSE, "0") }, "t.py", { NULL } },
	{ "an abbreviation means an original, although ours begins so, too: --local_r",
		{ "--local_r=", "t.py" }, { V(LOCAL_RANKS_FILTER, "") }, "t.py", { NULL } },
	{ "an abbreviation means an original, although ours begins so, too: --p", { "--p=zsh" },
		{ V(PRINT_COMPLETION, "zsh") }, NULL, { NULL } },
	{ "an abbreviation may mean ours where no original begins so", { "--dry", "t.py" },
		{ V(DRY_RUN, "text") }, "t.py", { NULL } },
	{ "ours again", { "--std=null", "--py=/p", "t.py" }, { V(STDIN, "null"), V(PYTHON, "/p") },
		"t.py", { NULL } },
	{ "a whole name is no abbreviation of a longer one", { "--env=A=1", "--t=0", "t.py" },
		{ V(TEE, "0") }, "t.py", { NULL } },
};

static size_t list_length(const char *const *list, size_t max)
{
	size_t n = 0;

	while (n < max && list[n])
		n++;
	return n;
}

static void test_taken(void **state)
{
	const struct taken_row *row = *state;
	const char *argv[12] = { "launchd" };
	size_t words = list_length(row->argv, 10), args = list_length(row->args, 5);
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	memcpy(argv + 1, row->argv, words * sizeof *argv);
	assert_outcome(settings_read_argv(&b.s, argv, &b.why), 0, &b.why, NULL);
	assert_settings(&b.s, row->expected, 4);
	if (row->script)
		assert_string_equal(b.s.script, row->script);
	else
		assert_null(b.s.script);
	assert_int_equal(b.s.args.count, args);
	for (size_t i = 0; i < args; i++)
		assert_string_equal(b.s.args.at[i], row->args[i]);
	settings_fixture_done(&b);
}

/* Command lines that are refused. */
static const struct refused_row {
	const char *says;
	const char *argv[6];
	const char *part[3]; /* what the sentence tells */
} refused[] = {
	{ "an unknown option", { "--bogus", "t.py" }, { "--bogus", "no such option", "--help" } },
	{ "an unknown option near a known one", { "--nproc_per_mode=2", "t.py" },
		{ "--nproc_per_mode", "did you mean --nproc_per_node?" } },
	{ "an unknown option with two letters exchanged", { "--nndoes=2", "t.py" },
		{ "did you mean --nnodes?" } },
	{ "mpirun's number of processes", { "-n", "2", "t.py" },
		{ "-n: no such option; --nproc_per_node is the number of workers on each node" } },
	{ "... in its longer spelling", { "-np", "2", "t.py" },
		{ "-np: no such option; --nproc_per_node is the number of workers on each node" } },
	{ "deepspeed's number of workers", { "--num_gpus=2", "t.py" },
		{ "--num_gpus: no such option; --nproc_per_node is the number of workers" } },
	{ "horovodrun's hosts", { "-H", "a:2", "t.py" },
		{ "-H: no such option; one launchd runs" } },
	{ "a letter that nobody has", { "-z", "t.py" },
		{ "-z: no such option; launchd --help lists them" } },
	{ "a name that only ends as one of ours", { "--yaml-config", "t.py" },
		{ "--yaml-config: no such option; launchd --help lists them" } },
	{ "an empty script", { "", "x" }, { "the script's name is empty (an unset variable?)" } },
	{ "an en dash", { "–nproc_per_node", "2", "t.py" },
		{ "–nproc_per_node begins with a long dash (U+2013): type --nproc_per_node" } },
	{ "an em dash and a value", { "—nnodes=2", "t.py" }, { "(U+2014): type --nnodes=2" } },
	{ "a minus sign for a letter", { "−t", "3", "t.py" }, { "(U+2212): type -t" } },
	{ "a dash of both kinds", { "-–nnodes", "2", "t.py" }, { "(U+2013): type --nnodes" } },
	{ "a long dash behind an option", { "--nnodes", "2", "—use_env", "t.py" },
		{ "(U+2014): type --use_env" } },
	{ "an unknown short option", { "-x", "t.py" }, { "-x", "no such option" } },
	{ "an unknown short option among known ones", { "-mx", "t.py" },
		{ "-mx", "no such option" } },
	{ "a value is missing at the end", { "--nnodes" }, { "--nnodes needs a value" } },
	{ "a value is missing before an option", { "--nnodes", "--use_env", "t.py" },
		{ "--nnodes needs a value: --nnodes=N" } },
	{ "'--' is no value", { "--nnodes", "--", "t.py" }, { "--nnodes needs a value" } },
	{ "a word with a dash is no value", { "--role", "-x", "t.py" },
		{ "--role needs a value" } },
	{ "a short option's value is missing", { "-t" }, { "-t needs a value" } },
	{ "an empty value where one is needed", { "--nnodes=", "t.py" }, { "--nnodes" } },
	{ "no number", { "--nnodes=two", "t.py" }, { "--nnodes: \"two\" is not a whole number" } },
	{ "ambiguous among the originals", { "--n=2", "t.py" },
		{ "--n: ambiguous, it could be", "--nproc_per_node", "--nnodes" } },
	{ "ambiguous among three, one of them short", { "--m=1", "t.py" },
		{ "--master_addr", "--module", "--max-restarts" } },
	{ "ambiguous among the originals, by one dash", { "--master-=x", "t.py" },
		{ "--master-: ambiguous, it could be --master_addr, --master_port" } },
	{ "ambiguous among ours where no original begins so", { "--ver" },
		{ "--ver: ambiguous, it could be --verbose, --version" } },
	{ "nothing but dashes and a value", { "--=x", "t.py" }, { "--" } },
	{ "--env without a value", { "--env=NAME", "t.py" }, { "--env", "NAME=VALUE" } },
};

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	const char *argv[8] = { "launchd" };
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	memcpy(argv + 1, row->argv, list_length(row->argv, 6) * sizeof *argv);
	assert_outcome(settings_read_argv(&b.s, argv, &b.why), -EINVAL, &b.why, row->part[0]);
	for (size_t i = 1; i < 3 && row->part[i]; i++)
		assert_contains(b.why.text, row->part[i]);
	settings_fixture_done(&b);
}

/* What an mpirun of ours gives the nodes. */
static const struct kept_row {
	const char *says;
	const char *argv[12], *kept[12]; /* behind the program's name */
} kept[] = {
	{ "all options and the script", { "-t3", "--nnodes=2", "--role", "x", "t.py", "-x", "" },
		{ "-t3", "--nnodes=2", "--role", "x", "t.py", "-x", "" } },
	{ "but for where the nodes are",
		{ "--mpirun-hosts", "n0", "-mt", "3", "--mpirun_hostfile=f", "pkg" },
		{ "-mt", "3", "pkg" } },
	{ "but for what only looks", { "--dry-run=json", "--check", "f", "--config", "f", "t.py" },
		{ "--config", "f", "t.py" } },
	{ "by abbreviations, too", { "--mpirun-hostf", "f", "--dry", "--np", "2", "t.py" },
		{ "--np", "2", "t.py" } },
	{ "the script's own words are its own",
		{ "t.py", "--mpirun-hosts", "n0", "--", "--dry-run" },
		{ "t.py", "--mpirun-hosts", "n0", "--", "--dry-run" } },
	{ "the end of the options stays", { "--dry-run", "--", "-t.py", "--", "a" },
		{ "--", "-t.py", "--", "a" } },
	{ "no script", { "--mpirun-hosts=n0", "-m" }, { "-m" } },
	{ "standard input", { "--mpirun-hosts=n0", "-", "a" }, { "-", "a" } },
};

static void test_kept(void **state)
{
	const struct kept_row *row = *state;
	const char *argv[14] = { "launchd" };
	struct settings_fixture b;
	struct vec words = { 0 };
	size_t i = 0;

	for (; row->argv[i]; i++)
		argv[i + 1] = row->argv[i];
	settings_fixture_make(&b, false);
	assert_outcome(settings_words_for_nodes(&b.s, argv, &words, &b.why), 0, &b.why, NULL);
	for (i = 0; i < words.count && row->kept[i]; i++)
		assert_string_equal(words.at[i], row->kept[i]);
	assert_int_equal(i, words.count);
	assert_null(row->kept[i]);
	settings_fixture_done(&b);
}

static void test_no_argv(void **state)
{
	static const char *const argv[] = { NULL };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_read_argv(&b.s, argv, &b.why), 0);
	assert_null(b.s.script);
	settings_fixture_done(&b);
}

/* Every original's name and every beginning of it that no other original has. */
static void test_abbreviations(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *flag = setting_rows[id].flag;

		if (!setting_rows[id].original || setting_rows[id].kind != KIND_TEXT)
			continue;
		for (size_t len = strlen(flag); len > 0; len--) {
			struct settings_fixture b;
			unsigned others = 0;
			const char *argv[] = { "launchd", NULL, NULL };

			for (int other = 0; other < SETTING_COUNT; other++)
				others += other != id && setting_rows[other].original &&
					strncmp(setting_rows[other].flag, flag, len) == 0;
			if (others)
				break;
			settings_fixture_make(&b, false);
			argv[1] = arena_printf(&b.arena, "--%.*s=v", (int)len, flag);
			assert_outcome(settings_read_argv(&b.s, argv, &b.why), 0, &b.why, NULL);
			assert_string_equal(settings_text(&b.s, (enum setting_id)id), "v");
			settings_fixture_done(&b);
		}
	}
}

TESTS(cli)
{
	static struct suite s;

	SUITE_ROWS(&s, test_taken, taken);
	SUITE_ROWS(&s, test_refused, refused);
	SUITE_ROWS(&s, test_kept, kept);
	suite_add(&s, "an argv without even a program's name", test_no_argv, NULL, NULL);
	suite_add(&s, "every beginning that is one original's alone means it", test_abbreviations,
		NULL, NULL);
	return suite_run(&s);
}
