/* test_command.c - a worker's argv, and torchrun's template in it. */
#include "tests/unit/unit.h"

#include <string.h>

#include "daemon/plan/plan.h"

static const struct attempt attempt = { .number = 2, .master_port = "7001", .run_dir = "/run" };

static const struct command_row {
	const char *says;
	bool python, module, use_env, virtual_rank;
	const char *local_rank_arg;
	const char *argv; /* words with a blank behind each */
} commands[] = {
	{ "as classic launch: the rank is the first argument", true, false, false, false,
		"--local_rank", "/py -u s.py --local_rank=3 a b " },
	{ "with another spelling", true, false, false, false, "--local-rank",
		"/py -u s.py --local-rank=3 a b " },
	{ "in the environment only", true, false, true, false, "--local_rank", "/py -u s.py a b " },
	{ "a module", true, true, false, false, "--local_rank",
		"/py -u -m s.py --local_rank=3 a b " },
	{ "no Python", false, false, true, false, "--local_rank", "s.py a b " },
	{ "a virtual rank is 0", true, false, false, true, "--local_rank",
		"/py -u s.py --local_rank=0 a b " },
};

static void test_command(void **state)
{
	const struct command_row *row = *state;
	const char *args_at[] = { "a", "b", NULL };
	const struct vec args = { args_at, 2, 3 };
	const struct plan p = { .nproc = 8,
		.nnodes = 1,
		.program = "/py",
		.script = "s.py",
		.args = &args,
		.python = row->python,
		.module = row->module,
		.use_env = row->use_env,
		.virtual_local_rank = row->virtual_rank,
		.local_rank_arg = row->local_rank_arg };
	struct arena a = { 0 };
	struct vec argv = { 0 };
	const char *joined = "";

	plan_command(&p, 3, &attempt, &a, &argv);
	for (size_t i = 0; i < argv.count; i++)
		joined = arena_printf(&a, "%s%s ", joined, argv.at[i]);
	assert_string_equal(joined, row->argv);
	assert_null(argv.at[argv.count]);
	assert_string_equal(plan_program(&p, 3), "/py");
	arena_done(&a);
}

/* --wrap's words before the commands of its ranks; ranks 8 to 15 are on this node. */
static const struct wrap_row {
	const char *says;
	bool python, module;
	const char *ranks; /* NULL: all */
	unsigned local_rank;
	const char *program, *argv; /* words with a blank behind each */
} wraps[] = {
	{ "before Python", true, false, NULL, 3, "/bin/nsys",
		"nsys profile /py -u s.py --local_rank=3 a " },
	{ "before a module", true, true, NULL, 3, "/bin/nsys",
		"nsys profile /py -u -m s.py --local_rank=3 a " },
	{ "before a program, by the path that was found", false, false, NULL, 3, "/bin/nsys",
		"nsys profile /py --local_rank=3 a " },
	{ "for its ranks", true, false, "0,11", 3, "/bin/nsys",
		"nsys profile /py -u s.py --local_rank=3 a " },
	{ "for no other rank", true, false, "0,3,12-99", 3, "/py",
		"/py -u s.py --local_rank=3 a " },
	{ "no other program by its name", false, false, "8", 3, "/py", "s.py --local_rank=3 a " },
	{ "ranks are those of the job", true, false, "8", 0, "/bin/nsys",
		"nsys profile /py -u s.py --local_rank=0 a " },
};

static void test_wrap(void **state)
{
	const struct wrap_row *row = *state;
	const char *args_at[] = { "a", NULL };
	const char *words_at[] = { "nsys", "profile", NULL };
	const struct vec args = { args_at, 1, 2 };
	const struct plan p = { .nproc = 8,
		.nnodes = 2,
		.node_rank = 1,
		.first_rank = 8,
		.world_size = 16,
		.program = "/py",
		.script = "s.py",
		.args = &args,
		.python = row->python,
		.module = row->module,
		.local_rank_arg = "--local_rank",
		.wrap = { words_at, 2, 3 },
		.wrapper = "/bin/nsys",
		.wrap_ranks = row->ranks };
	struct arena a = { 0 };
	struct vec argv = { 0 };
	const char *joined = "";

	plan_command(&p, row->local_rank, &attempt, &a, &argv);
	for (size_t i = 0; i < argv.count; i++)
		joined = arena_printf(&a, "%s%s ", joined, argv.at[i]);
	assert_string_equal(joined, row->argv);
	assert_string_equal(plan_program(&p, row->local_rank), row->program);
	assert_int_equal(plan_is_wrapped(&p, row->local_rank), row->program[1] == 'b');
	arena_done(&a);
}

/* What Python's string.Template(arg).safe_substitute(local_rank="3") makes of it. */
static const struct template_row {
	const char *says, *arg, *expanded;
} templates[] = {
	{ "no placeholder", "a b", "a b" },
	{ "nothing", "", "" },
	{ "named", "$local_rank", "3" },
	{ "braced", "${local_rank}", "3" },
	{ "within a text", "out/$local_rank.log", "out/3.log" },
	{ "twice", "${local_rank}$local_rank", "33" },
	{ "braced before letters", "${local_rank}th", "3th" },
	{ "a longer name is another one", "$local_rankth", "$local_rankth" },
	{ "a name with a digit behind", "$local_rank0", "$local_rank0" },
	{ "a shorter name is another one", "$local_ran", "$local_ran" },
	{ "case counts for the value", "$LOCAL_RANK ${Local_Rank}", "$LOCAL_RANK ${Local_Rank}" },
	{ "another name stays", "$HOME ${HOME}", "$HOME ${HOME}" },
	{ "two dollars are one", "$$", "$" },
	{ "an escaped placeholder", "$$local_rank", "$local_rank" },
	{ "an escaped dollar before a placeholder", "$$$local_rank", "$3" },
	{ "four dollars are two", "$$$$local_rank", "$$local_rank" },
	{ "an escaped brace", "$${local_rank}", "${local_rank}" },
	{ "a dollar at the end", "a$", "a$" },
	{ "a dollar before a blank", "$ local_rank", "$ local_rank" },
	{ "a dollar before a digit", "$1local_rank", "$1local_rank" },
	{ "an open brace", "${local_rank", "${local_rank" },
	{ "an empty brace", "${}", "${}" },
	{ "a blank in braces", "${ local_rank }", "${ local_rank }" },
	{ "a dash in braces", "${local-rank}", "${local-rank}" },
	{ "a dash ends a name", "$local-rank", "$local-rank" },
	{ "a placeholder inside braces", "${$local_rank}", "${3}" },
	{ "a digit first in braces", "${1a}$local_rank", "${1a}3" },
	{ "letters beyond ASCII end a name", "$local_rank\xc3\xa9", "3\xc3\xa9" },
	{ "shell syntax stays", "$(date) `x` \\$ '$local_rank'", "$(date) `x` \\$ '3'" },
};

static const char *expand(
	struct arena *a, const char *arg, enum expansion expand_args, bool virtual_rank)
{
	const char *args_at[] = { arg, NULL };
	const struct vec args = { args_at, 1, 2 };
	const struct plan p = { .nproc = 8,
		.nnodes = 1,
		.program = "/py",
		.script = "$local_rank",
		.args = &args,
		.python = true,
		.use_env = true,
		.expand_args = expand_args,
		.virtual_local_rank = virtual_rank,
		.local_rank_arg = "--local_rank" };
	struct vec argv = { 0 };

	plan_command(&p, 3, &attempt, a, &argv);
	assert_int_equal(argv.count, 4);
	assert_string_equal(argv.at[2], "$local_rank"); /* the script is no argument */
	return argv.at[3];
}

static void test_template(void **state)
{
	const struct template_row *row = *state;
	struct arena a = { 0 };

	assert_string_equal(expand(&a, row->arg, EXPAND_LOCAL_RANK, false), row->expanded);
	assert_string_equal(expand(&a, row->arg, EXPAND_NOTHING, false), row->arg);
	arena_done(&a);
}

/* --expand-args=all: whatever launchd sets for the worker, in capitals or not. */
static const struct template_row all[] = {
	{ "all: ranks and sizes", "$RANK/$WORLD_SIZE $LOCAL_RANK ${LOCAL_WORLD_SIZE}",
		"11/13 0 8" },
	{ "all: in small letters", "${rank}of${world_size} $node_rank", "11of13 1" },
	{ "all: torchrun's local_rank is the real one", "$local_rank", "3" },
	{ "all: the master", "$MASTER_ADDR:${MASTER_PORT} $master_port", "m0:7001 7001" },
	{ "all: the group, the role, the run", "$GROUP_RANK $ROLE_NAME $TORCHELASTIC_RUN_ID",
		"1 r id" },
	{ "all: the attempt", "$TORCHELASTIC_RESTART_COUNT", "2" },
	{ "all: of --env", "$MINE", "its value" },
	{ "all: what is removed, or only inherited, stays", "$PMIX_RANK $HOME $GONE",
		"$PMIX_RANK $HOME $GONE" },
	{ "all: mixed case is another name", "$Rank", "$Rank" },
	{ "all: two dollars are one", "$$RANK", "$RANK" },
};

static void test_all(void **state)
{
	static const char *const env[] = { "PMIX_RANK=0", "HOME=/root", NULL };
	const struct template_row *row = *state;
	struct env_change gone = { .name = "GONE", .from = { LEVEL_COMMAND_LINE, "--unset-env" } };
	const struct env_change mine = { .name = "MINE",
		.value = "its value",
		.next = &gone,
		.from = { LEVEL_COMMAND_LINE, "--env" } };
	const char *args_at[] = { row->arg, NULL };
	const struct vec args = { args_at, 1, 2 };
	const struct plan p = { .nproc = 8,
		.nnodes = 2,
		.node_rank = 1,
		.first_rank = 8,
		.world_size = 13,
		.script = "s",
		.args = &args,
		.use_env = true,
		.expand_args = EXPAND_ALL,
		.virtual_local_rank = true,
		.run_id = "id",
		.role = "r",
		.master_addr = "m0",
		.env = env,
		.user_env = &mine,
		.local_rank_arg = "--local_rank" };
	struct arena a = { 0 };
	struct vec argv = { 0 };

	plan_command(&p, 3, &attempt, &a, &argv);
	assert_string_equal(argv.at[1], row->expanded);
	arena_done(&a);
}

/* torchrun 2.15 substitutes before it makes the rank virtual: files named by it stay apart. */
static void test_template_virtual(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_string_equal(expand(&a, "log.$local_rank", EXPAND_LOCAL_RANK, true), "log.3");
	arena_done(&a);
}

TESTS(command)
{
	static struct suite s;

	SUITE_ROWS(&s, test_command, commands);
	SUITE_ROWS(&s, test_wrap, wraps);
	SUITE_ROWS(&s, test_template, templates);
	SUITE_ROWS(&s, test_all, all);
	suite_add(&s, "with a virtual rank the template still has the real one",
		test_template_virtual, NULL, NULL);
	return suite_run(&s);
}
