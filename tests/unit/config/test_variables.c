/* test_variables.c - settings from the environment. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "config/sources.h"

#define V(id, text, where) \
	{ \
		SET_##id, text, where \
	}

static const struct variables_row {
	const char *says;
	const char *env[5];
	struct expected expected[3];
	int rc;
	const char *part; /* of the sentence, or of the warning where rc is 0 */
} variables[] = {
	{ "an empty environment", { NULL }, { { 0 } }, 0, NULL },
	{ "a variable of ours", { "LAUNCHD_NNODES=2" }, { V(NNODES, "2", "LAUNCHD_NNODES") }, 0,
		NULL },
	{ "a variable of torchrun's", { "PET_NNODES=2" }, { V(NNODES, "2", "PET_NNODES") }, 0,
		NULL },
	{ "ours above torchrun's", { "LAUNCHD_NNODES=2", "PET_NNODES=3" },
		{ V(NNODES, "2", "LAUNCHD_NNODES") }, 0, NULL },
	{ "ours above torchrun's in the other order", { "PET_NNODES=3", "LAUNCHD_NNODES=2" },
		{ V(NNODES, "2", "LAUNCHD_NNODES") }, 0, NULL },
	{ "a name with underscores means a flag with dashes", { "PET_RDZV_ID=a" },
		{ V(RDZV_ID, "a", "PET_RDZV_ID") }, 0, NULL },
	{ "flags take 1 and true", { "PET_MODULE=1", "LAUNCHD_USE_ENV=true" },
		{ V(MODULE, "1", NULL), V(USE_ENV, "true", NULL) }, 0, NULL },
	{ "a flag that is switched off", { "PET_STANDALONE=0" }, { V(STANDALONE, "0", NULL) }, 0,
		NULL },
	{ "PET_ means torchrun's flags only", { "PET_USE_ENV=1", "PET_MPI_ENV=keep" },
		{ V(USE_ENV, "0", "default"), V(MPI_ENV, "rewrite", "default") }, 0, NULL },
	{ "a PET_ variable that torchrun lacks is not even read", { "PET_USE_ENV=bogus" },
		{ V(USE_ENV, "0", "default") }, 0, NULL },
	{ "an empty variable is none", { "LAUNCHD_NNODES=", "PET_NNODES=" }, { { 0 } }, 0, NULL },
	{ "an empty one of ours leaves torchrun's", { "LAUNCHD_NNODES=", "PET_NNODES=3" },
		{ V(NNODES, "3", "PET_NNODES") }, 0, NULL },
	{ "names are of upper case only", { "launchd_nnodes=2" }, { { 0 } }, 0, NULL },
	{ "an entry without '='", { "LAUNCHD_NNODES", "PET_NNODES" }, { { 0 } }, 0, NULL },
	{ "the bare prefixes", { "LAUNCHD_=1", "PET_=1" }, { { 0 } }, 0, NULL },
	{ "another variable that a row names", { "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=5" },
		{ V(SHUTDOWN_TIMEOUT, "5", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT") }, 0, NULL },
	{ "it is below PET_", { "PET_SHUTDOWN_TIMEOUT=6", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=5" },
		{ V(SHUTDOWN_TIMEOUT, "6", "PET_SHUTDOWN_TIMEOUT") }, 0, NULL },
	{ "signals that torchrun's agent would handle",
		{ "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGUSR2" },
		{ V(SIGNALS_TO_HANDLE, "SIGUSR2", "TORCHELASTIC_SIGNALS_TO_HANDLE") }, 0, NULL },
	{ "torchrun's file timer warns", { "TORCHELASTIC_ENABLE_FILE_TIMER=1" }, { { 0 } }, 0,
		"TORCHELASTIC_ENABLE_FILE_TIMER has no effect: launchd watches no timers of "
		"workers, which get no TORCHELASTIC_TIMER_FILE; --max-runtime limits how long" },
	{ "one that is off doesn't", { "TORCHELASTIC_ENABLE_FILE_TIMER=0" }, { { 0 } }, 0, NULL },
	{ "torchrun's barrier is no warning", { "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT=5" }, { { 0 } },
		0, NULL },
	{ "its health check warns", { "TORCHELASTIC_HEALTH_CHECK_PORT=8080" }, { { 0 } }, 0,
		"give --metrics-listen [::]:8080" },
	{ "an empty port is none", { "TORCHELASTIC_HEALTH_CHECK_PORT=" }, { { 0 } }, 0, NULL },
	{ "PYTHON_EXEC is the Python", { "PYTHON_EXEC=/opt/python" },
		{ V(PYTHON, "/opt/python", "PYTHON_EXEC") }, 0, NULL },
	{ "LAUNCHD_PYTHON is above it", { "LAUNCHD_PYTHON=/a", "PYTHON_EXEC=/b" },
		{ V(PYTHON, "/a", "LAUNCHD_PYTHON") }, 0, NULL },
	{ "a file of settings may be a variable", { "LAUNCHD_CONFIG=/etc/job.ini" },
		{ V(CONFIG, "/etc/job.ini", "LAUNCHD_CONFIG") }, 0, NULL },
	{ "acts are no variables, which is said", { "LAUNCHD_DRY_RUN=json", "LAUNCHD_HELP=1" },
		{ V(HELP, "0", "default") }, 0,
		"LAUNCHD_DRY_RUN has no effect: --dry-run is for the command line" },
	{ "lists are no variables", { "LAUNCHD_ENV=bogus", "LAUNCHD_UNSET_ENV=PATH" }, { { 0 } }, 0,
		"LAUNCHD_UNSET_ENV has no effect" },
	{ "the job's key is no setting and no misspelled one", { "LAUNCHD_KEY=secret" }, { { 0 } },
		0, NULL },
	{ "a name that only begins as the key's warns", { "LAUNCHD_KEY_FIL=secret" }, { { 0 } }, 0,
		"key-file" },
	{ "a bad value names its variable", { "LAUNCHD_NNODES=two" }, { { 0 } }, -EINVAL,
		"LAUNCHD_NNODES: \"two\"" },
	{ "a bad value of torchrun's", { "PET_STANDALONE=maybe" }, { { 0 } }, -EINVAL,
		"PET_STANDALONE: \"maybe\"" },
	{ "a bad value below another is bad all the same", { "LAUNCHD_NNODES=2", "PET_NNODES=two" },
		{ { 0 } }, -EINVAL, "PET_NNODES" },
	{ "a name of ours that is nearly a setting's warns", { "LAUNCHD_NPROC_PER_MODE=2" },
		{ { 0 } }, 0, "nproc_per_node" },
	{ "a name of ours far from any says nothing", { "LAUNCHD_COMPLETELY_DIFFERENT=2" },
		{ { 0 } }, 0, NULL },
};

static void test_variables(void **state)
{
	const struct variables_row *row = *state;
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	rc = settings_read_environment(&b.s, row->env, &b.notes, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_settings(&b.s, row->expected, 3);
		assert_note(&b.notes, NOTE_WARNING, row->part);
	}
	settings_fixture_done(&b);
}

static void test_empty_keeps_unset(void **state)
{
	static const char *const env[] = { "LAUNCHD_NNODES=", "PET_NNODES=", NULL };
	struct settings_fixture b;

	(void)state;
	settings_fixture_make(&b, false);
	assert_int_equal(settings_read_environment(&b.s, env, &b.notes, &b.why), 0);
	assert_null(settings_text(&b.s, SET_NNODES));
	assert_false(settings_given(&b.s, SET_NNODES));
	assert_int_equal(settings_read_environment(&b.s, NULL, &b.notes, &b.why), 0);
	settings_fixture_done(&b);
}

static void test_all(void **state)
{
	static const char *const env[] = { "LAUNCHD_NNODES=two", "PET_STANDALONE=maybe",
		"LAUNCHD_ROLE=r", "LAUNCHD_STDIN=x", NULL };
	static const char *const begins[] = { "LAUNCHD_NNODES: \"two\"",
		"PET_STANDALONE: \"maybe\"", "LAUNCHD_STDIN: \"x\"" };
	struct settings_fixture b;
	struct failures all;

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_want_all(&b, &all);
	assert_outcome(settings_read_environment(&b.s, env, &b.notes, &b.why), 0, &b.why, NULL);
	assert_failures(&all, begins, sizeof begins / sizeof *begins);
	assert_string_equal(settings_where(&b.s, SET_ROLE), "LAUNCHD_ROLE");
	settings_fixture_done(&b);
}

TESTS(variables)
{
	static struct suite s;

	SUITE_ROWS(&s, test_variables, variables);
	suite_add(&s, "what is set to nothing is not given", test_empty_keeps_unset, NULL, NULL);
	suite_add(&s, "all that are wrong where all are wanted", test_all, NULL, NULL);
	return suite_run(&s);
}
