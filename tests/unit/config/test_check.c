/* test_check.c - what no single value shows: each sentence as the user reads it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/notes.h"
#include "config/sources.h"

#define UNREADABLE(name) \
	"--env: \"" name "\" is set, but shells can't read a variable of that name " \
	"(letters, digits and _ only, no digit first)"
#define NO_RUN_PATH \
	" has no effect: the launcher has no Python of its own to run the script in, and every " \
	"worker is a Python process"

static const struct check_row {
	const char *says;
	struct setting_given put[3]; /* ends with text NULL; LEVEL_NONE: of the command line */
	int rc;
	const char *text[2]; /* the refusal, if any, and all warnings; NULL: there is none */
} checks[] = {
	{ "nothing is given", { { SET_ENV, NULL, 0 } }, 0, { NULL } },

	{ "restarts", { { SET_MAX_RESTARTS, "3", 0 }, { SET_RESTART_DELAY, "5", 0 } }, 0,
		{ NULL } },
	{ "a delay, and no restarts", { { SET_RESTART_DELAY, "5", 0 } }, 0,
		{ "--restart-delay has no effect without --max-restarts" } },
	{ "a least uptime, and no restarts", { { SET_RESTART_MIN_UPTIME, "5", 0 } }, 0,
		{ "--restart-min-uptime has no effect without --max-restarts" } },
	{ "ends to restart on, or not to, and no restarts",
		{ { SET_RESTART_ON, "1", 0 }, { SET_NO_RESTART_ON, "2", 0 },
			{ SET_MAX_RESTARTS, "0", 0 } },
		0,
		{ "--restart-on has no effect without --max-restarts",
			"--no-restart-on has no effect without --max-restarts" } },
	{ "a rule in the job's file, and no restarts", { { SET_RESTART_DELAY, "5", LEVEL_FILE } },
		0, { "job.ini:1: restart-delay has no effect without --max-restarts" } },
	{ "a rule of the system's, which needn't make sense in each job",
		{ { SET_RESTART_DELAY, "5", LEVEL_SYSTEM_FILE } }, 0, { NULL } },
	{ "restarts as long as there is progress",
		{ { SET_MAX_RESTARTS, "3", 0 }, { SET_NO_PROGRESS_RESTARTS, "2", 0 },
			{ SET_PROGRESS, "step ([0-9]+)", 0 } },
		0, { NULL } },
	{ "... where nothing tells what a step is",
		{ { SET_MAX_RESTARTS, "3", 0 }, { SET_NO_PROGRESS_RESTARTS, "2", 0 } }, -EINVAL,
		{ "--no-progress-restarts needs --progress, which says what a step of the job "
		  "is" } },
	{ "... by the system's file, which has defaults for all jobs",
		{ { SET_MAX_RESTARTS, "3", 0 },
			{ SET_NO_PROGRESS_RESTARTS, "2", LEVEL_SYSTEM_FILE } },
		0, { NULL } },
	{ "a window and a gate, and no restarts",
		{ { SET_RESTART_WINDOW, "1h", 0 }, { SET_RESTART_GATE, "off", 0 } }, 0,
		{ "--restart-window has no effect without --max-restarts",
			"--restart-gate has no effect without --max-restarts" } },
	{ "ends to restart on, and others not to",
		{ { SET_MAX_RESTARTS, "3", 0 }, { SET_RESTART_ON, "1-10,SIGSEGV", 0 },
			{ SET_NO_RESTART_ON, "11,SIGBUS", 0 } },
		0, { NULL } },
	{ "an exit code to restart on and not to",
		{ { SET_MAX_RESTARTS, "3", 0 }, { SET_RESTART_ON, "1-10", 0 },
			{ SET_NO_RESTART_ON, "7-12", 0 } },
		-EINVAL, { "--restart-on and --no-restart-on both contain exit code 7" } },
	{ "a signal to restart on and not to",
		{ { SET_MAX_RESTARTS, "3", 0 }, { SET_RESTART_ON, "SIGSEGV", 0 },
			{ SET_NO_RESTART_ON, "segv", LEVEL_FILE } },
		-EINVAL, { "--restart-on and job.ini:3: no-restart-on both contain SIGSEGV" } },
	{ "... also where there are no restarts",
		{ { SET_RESTART_ON, "1", 0 }, { SET_NO_RESTART_ON, "1", 0 } }, -EINVAL,
		{ "--restart-on and --no-restart-on both contain exit code 1" } },

	{ "--json alone", { { SET_JSON, "1", 0 } }, -EINVAL,
		{ "--json needs --check-node, whose form it chooses" } },
	{ "--json and --check-node", { { SET_JSON, "1", 0 }, { SET_CHECK_NODE, "text", 0 } }, 0,
		{ NULL } },
	{ "--json and another form", { { SET_JSON, "1", 0 }, { SET_CHECK_NODE, "prometheus", 0 } },
		-EINVAL, { "--json and --check-node=prometheus are mutually exclusive" } },
	{ "two settings that say which CPUs",
		{ { SET_BIND, "numa", 0 }, { SET_NUMA_BINDING, "node", 0 } }, -EINVAL,
		{ "--bind and --numa-binding are mutually exclusive: both say which CPUs a worker may use" } },
	{ "... but one gives way where it is a default of all jobs",
		{ { SET_BIND, "numa", LEVEL_SYSTEM_FILE }, { SET_NUMA_BINDING, "node", 0 } }, 0,
		{ NULL } },
	{ "... or says none", { { SET_BIND, "none", 0 }, { SET_NUMA_BINDING, "node", 0 } }, 0,
		{ NULL } },
	{ "a number of cores with a mode of torchrun's",
		{ { SET_CPUS_PER_WORKER, "4", LEVEL_FILE }, { SET_NUMA_BINDING, "exclusive", 0 } },
		-EINVAL,
		{ "job.ini:1: cpus-per-worker and --numa-binding are mutually exclusive: torchrun's modes say how many cores a worker has; --bind gpu or auto takes a number" } },
	{ "a number of cores with a list",
		{ { SET_CPUS_PER_WORKER, "4", 0 }, { SET_BIND, "0-3:4-7", 0 } }, -EINVAL,
		{ "--cpus-per-worker and --bind are mutually exclusive: the list says how many CPUs a worker has" } },
	{ "a number of cores with none",
		{ { SET_CPUS_PER_WORKER, "4", 0 }, { SET_BIND, "none", 0 } }, -EINVAL,
		{ "--cpus-per-worker and --bind are mutually exclusive: with none there are no cores for a worker alone" } },
	{ "a number of cores with a part of the machine",
		{ { SET_CPUS_PER_WORKER, "4", 0 }, { SET_BIND, "gpu", 0 } }, 0, { NULL } },
	{ "a place for a script that places its ranks itself",
		{ { SET_NODE_ENV, "1", 0 }, { SET_MEMBIND, "bind", 0 } }, -EINVAL,
		{ "--node-env and --membind are mutually exclusive: the script places its ranks itself" } },
	{ "... which as a default of all jobs gives way",
		{ { SET_NODE_ENV, "1", 0 }, { SET_MEMBIND, "bind", LEVEL_SYSTEM_FILE } }, 0,
		{ NULL } },
	{ "a place for a worker that mpirun places",
		{ { SET_PER_PROCESS, "1", 0 }, { SET_BIND, "auto", 0 } }, -EINVAL,
		{ "--per-process and --bind are mutually exclusive: whoever starts one launcher for each worker binds it (mpirun --bind-to, srun --cpu-bind)" } },
	{ "no meaning here: --monitor-interval", { { SET_MONITOR_INTERVAL, "0.1", 0 } }, 0,
		{ "--monitor-interval has no effect: a worker's end is noticed at once, without polling" } },
	{ "no meaning here: --start-method, --event-log-handler",
		{ { SET_START_METHOD, "spawn", 0 },
			{ SET_EVENT_LOG_HANDLER, "null", LEVEL_SYSTEM_FILE } },
		0,
		{ "--start-method has no effect: every worker is a process of its own, started by execve",
			"launchd.conf:2: event-log-handler has no effect: launchd reports what happens on its standard error" } },
	{ "no meaning here: --run-path", { { SET_RUN_PATH, "1", 0 } }, 0,
		{ "--run-path" NO_RUN_PATH } },
	{ "--run-path isn't for programs",
		{ { SET_RUN_PATH, "1", 0 }, { SET_NO_PYTHON, "1", 0 }, { SET_USE_ENV, "1", 0 } },
		-EINVAL,
		{ "--no_python and --run-path are mutually exclusive: with --run-path it is a file that Python runs",
			"--run-path" NO_RUN_PATH } },
	{ "--run-path isn't for modules",
		{ { SET_RUN_PATH, "1", LEVEL_FILE }, { SET_MODULE, "1", 0 } }, -EINVAL,
		{ "--module and job.ini:1: run-path are mutually exclusive: with --run-path it is a file that Python runs",
			"job.ini:1: run-path" NO_RUN_PATH } },
	{ "refused with the way out: --logs-specs", { { SET_LOGS_SPECS, "x", 0 } }, -EINVAL,
		{ "--logs-specs is not supported because it names a Python class: use -r, -t and --log-dir to choose where output goes" } },
	{ "--node-env alone", { { SET_NODE_ENV, "1", 0 } }, 0, { NULL } },
	{ "--node-env needs no --use_env", { { SET_NODE_ENV, "1", 0 }, { SET_NO_PYTHON, "1", 0 } },
		0, { NULL } },
	{ "--node-env and the agent's store",
		{ { SET_NODE_ENV, "1", 0 }, { SET_STORE, "agent", 0 } }, -EINVAL,
		{ "--node-env and --store agent are mutually exclusive: the script's own rank 0 hosts the store" } },
	{ "--node-env and the other store", { { SET_NODE_ENV, "1", 0 }, { SET_STORE, "rank0", 0 } },
		0, { NULL } },
	{ "torchrun's own: --logs-specs=default", { { SET_LOGS_SPECS, "default", 0 } }, 0,
		{ NULL } },
	{ "asked not to: --run-path=0", { { SET_RUN_PATH, "0", 0 } }, 0, { NULL } },

	{ "variables that shells can't read", { { SET_ENV, "1A=2", 0 }, { SET_ENV, "A-B=2", 0 } },
		0, { UNREADABLE("1A"), UNREADABLE("A-B") } },
	{ "no letter but an umlaut", { { SET_ENV, "\xc3\xa4=2", 0 } }, 0,
		{ UNREADABLE("\xc3\xa4") } },
	{ "variables that they can read", { { SET_ENV, "_a1B=2", 0 }, { SET_ENV, "Z9_=", 0 } }, 0,
		{ NULL } },
	{ "one that is only removed", { { SET_UNSET_ENV, "1A", 0 } }, 0, { NULL } },

	{ "no Python needs the environment", { { SET_NO_PYTHON, "1", 0 } }, -EINVAL,
		{ "--no_python needs --use_env: a program that isn't a Python script gets its local rank only in LOCAL_RANK" } },
	{ "no Python with the environment", { { SET_NO_PYTHON, "1", 0 }, { SET_USE_ENV, "1", 0 } },
		0, { NULL } },
	{ "no Python excludes a module",
		{ { SET_NO_PYTHON, "1", 0 }, { SET_USE_ENV, "1", 0 }, { SET_MODULE, "1", 0 } },
		-EINVAL,
		{ "--no_python and --module are mutually exclusive: a module is run by Python" } },
	{ "a module, and Python", { { SET_MODULE, "1", 0 }, { SET_NO_PYTHON, "0", 0 } }, 0,
		{ NULL } },
	{ "ranks to wrap need a command", { { SET_WRAP_RANKS, "0", 0 } }, -EINVAL,
		{ "--wrap-ranks needs --wrap, the command for those ranks" } },
	{ "ranks to wrap with a command", { { SET_WRAP_RANKS, "0", 0 }, { SET_WRAP, "nice", 0 } },
		0, { NULL } },
	{ "a command to wrap all", { { SET_WRAP, "nice", 0 } }, 0, { NULL } },

	{ "roles of nothing", { { SET_TF_ROLES, "ps=1", 0 } }, -EINVAL,
		{ "--tf-roles needs --tf-config, which tells TensorFlow of the roles" } },
	{ "roles", { { SET_TF_ROLES, "ps=1", 0 }, { SET_TF_CONFIG, "1", 0 } }, 0, { NULL } },
	{ "two sources of TF_CONFIG", { { SET_ENV, "TF_CONFIG={}", 0 }, { SET_TF_CONFIG, "1", 0 } },
		-EINVAL,
		{ "--tf-config and --env TF_CONFIG are mutually exclusive: "
		  "it would be the same for all workers" } },
	{ "no TF_CONFIG, and one", { { SET_UNSET_ENV, "TF_CONFIG", 0 }, { SET_TF_CONFIG, "1", 0 } },
		-EINVAL,
		{ "--tf-config and --unset-env TF_CONFIG are mutually exclusive: "
		  "it would be the same for all workers" } },
	{ "the user's TF_CONFIG", { { SET_ENV, "TF_CONFIG={}", 0 }, { SET_TF_CONFIG, "0", 0 } }, 0,
		{ NULL } },
	{ "quiet and verbose", { { SET_QUIET, "1", 0 }, { SET_VERBOSE, "1", 0 } }, -EINVAL,
		{ "--quiet and --verbose are mutually exclusive" } },
	{ "... in a file", { { SET_QUIET, "1", LEVEL_FILE }, { SET_VERBOSE, "1", LEVEL_FILE } },
		-EINVAL, { "job.ini:1: quiet and job.ini:2: verbose are mutually exclusive" } },
	{ "quiet above verbose", { { SET_VERBOSE, "1", LEVEL_SYSTEM_FILE }, { SET_QUIET, "1", 0 } },
		0, { NULL } },
	{ "verbose above quiet", { { SET_VERBOSE, "1", 0 }, { SET_QUIET, "1", LEVEL_SYSTEM_FILE } },
		0, { NULL } },
	{ "verbose, and not quiet", { { SET_VERBOSE, "1", 0 }, { SET_QUIET, "0", 0 } }, 0,
		{ NULL } },
	{ "quiet, and not verbose", { { SET_VERBOSE, "0", 0 }, { SET_QUIET, "1", 0 } }, 0,
		{ NULL } },

	{ "a rendezvous time-out that has no effect", { { SET_RDZV_CONF, "close_timeout=5", 0 } },
		0,
		{ "--rdzv-conf: close_timeout has no effect: all nodes learn of the job's end at once" } },
	{ "a rendezvous time-out that is no number", { { SET_RDZV_CONF, "join_timeout=x", 0 } },
		-EINVAL,
		{ "--rdzv-conf: \"join_timeout=x\": not a time, such as 90, 0.5, 90s, 5m, 1h30m or 2d" } },
};

static struct origin origin_of(struct arena *a, enum setting_id id, enum level level, size_t line)
{
	if (level == LEVEL_FILE || level == LEVEL_SYSTEM_FILE)
		return (struct origin){ level,
			arena_printf(a, "%s:%zu", level == LEVEL_FILE ? "job.ini" : "launchd.conf",
				line) };
	return (struct origin){ LEVEL_COMMAND_LINE,
		arena_printf(a, "--%s", setting_rows[id].flag) };
}

static void test_check(void **state)
{
	const struct check_row *row = *state;
	const struct note *note;
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	for (size_t i = 0; i < 3 && row->put[i].text; i++)
		assert_outcome(
			settings_put(&b.s, row->put[i].id, row->put[i].text,
				origin_of(&b.arena, row->put[i].id, row->put[i].level, i + 1),
				&b.why),
			0, &b.why, NULL);
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), row->rc, &b.why, NULL);
	note = b.notes.first;
	if (row->rc < 0)
		assert_string_equal(b.why.text, row->text[0]);
	for (size_t i = row->rc < 0; i < 2 && row->text[i]; i++, note = note->next) {
		assert_non_null(note);
		assert_int_equal(note->level, NOTE_WARNING);
		assert_string_equal(note->text, row->text[i]);
	}
	assert_null(note);
	settings_fixture_done(&b);
}

/* Every contradiction where all are wanted, beside the warnings. */
static void test_all(void **state)
{
	static const struct {
		enum setting_id id;
		const char *text;
	} wrong[] = { { SET_BIND, "numa" }, { SET_NUMA_BINDING, "node" }, { SET_RUN_PATH, "1" },
		{ SET_RDZV_CONF, "timeout=x" }, { SET_RESTART_ON, "1-3" },
		{ SET_NO_RESTART_ON, "2" }, { SET_CLUSTER_NODES, "a" },
		{ SET_CLUSTER_HOSTFILE, "hosts" }, { SET_NO_PYTHON, "1" }, { SET_MODULE, "1" },
		{ SET_WRAP_RANKS, "0" }, { SET_QUIET, "1" }, { SET_VERBOSE, "1" },
		{ SET_MONITOR_INTERVAL, "1" } };
	static const char *const begins[] = { "--rdzv-conf: \"timeout=x\"",
		"--restart-on and --no-restart-on", "--cluster-nodes and --cluster-hostfile",
		"--no_python needs --use_env", "--no_python and --module",
		"--bind and --numa-binding", "--no_python and --run-path",
		"--module and --run-path", "--wrap-ranks needs --wrap", "--quiet and --verbose" };
	struct settings_fixture b;
	struct failures all;

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_want_all(&b, &all);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(settings_put(&b.s, wrong[i].id, wrong[i].text,
					 origin_of(&b.arena, wrong[i].id, LEVEL_NONE, 0), &b.why),
			0);
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), 0, &b.why, NULL);
	assert_failures(&all, begins, sizeof begins / sizeof *begins);
	assert_note(&b.notes, NOTE_WARNING, "--monitor-interval has no effect");
	settings_fixture_done(&b);
}

/* --- for how long nodes are waited for --- */

static const struct wait_row {
	const char *says, *backend, *given; /* NULL: not given */
	const char *expected, *where;
} waits[] = {
	{ "static jobs", NULL, NULL, "900", "default" },
	{ "c10d", "c10d", NULL, "600", "torchrun's default for c10d" },
	{ "what is given stays", "c10d", "5", "5", "--join-timeout" },
};

static void test_wait(void **state)
{
	const struct wait_row *row = *state;
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_RDZV_BACKEND, row->backend, "--rdzv-backend");
	settings_fixture_put(&b, SET_JOIN_TIMEOUT, row->given, "--join-timeout");
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), 0, &b.why, NULL);
	assert_string_equal(settings_text(&b.s, SET_JOIN_TIMEOUT), row->expected);
	assert_string_equal(settings_where(&b.s, SET_JOIN_TIMEOUT), row->where);
	settings_fixture_done(&b);
}

/* What torchrun's key means is a setting like any other. */
static void test_conf_applies(void **state)
{
	const struct origin from = { LEVEL_PET, "PET_RDZV_CONF" };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_put(&b.s, SET_RDZV_CONF, "join_timeout=7", from, &b.why), 0);
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), 0, &b.why, NULL);
	assert_null(b.notes.first);
	assert_string_equal(settings_text(&b.s, SET_JOIN_TIMEOUT), "7");
	settings_fixture_done(&b);
}

/* Some value or warning found no memory. */
static void test_no_memory(void **state)
{
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	b.arena.failed = true;
	assert_outcome(settings_check(&b.s, &b.notes, &b.why), -ENOMEM, &b.why, "out of memory");
	settings_fixture_done(&b);
}

TESTS(check)
{
	static struct suite s;

	SUITE_ROWS(&s, test_check, checks);
	SUITE_ROWS(&s, test_wait, waits);
	suite_add(&s, "all that is wrong where all is wanted", test_all, NULL, NULL);
	suite_add(&s, "a setting by another name", test_conf_applies, NULL, NULL);
	suite_add(&s, "no memory", test_no_memory, NULL, NULL);
	return suite_run(&s);
}
