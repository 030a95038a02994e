/* test_mpirun_grace.c - what mpirun's own end of a job leaves of the grace, and what is said. */
#include "tests/unit/unit.h"

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

#define TIMEOUT "OMPI_MCA_odls_base_sigkill_timeout="
#define DEFAULT "mpirun's default"

static const struct grace_row {
	const char *says;
	const char *launcher;
	const char *env[2];
	const char *shutdown, *on_signal; /* NULL: not given */
	const char *from;                 /* NULL: it isn't known */
	uint64_t ms;
	enum note_level level;
	const char *part; /* of the note; NULL: none */
} rows[] = {
	{ "no mpirun", NULL, { NULL }, "600", NULL, NULL, 0, 0, NULL },
	{ "another launcher", "srun", { TIMEOUT "3" }, "600", NULL, NULL, 0, 0, NULL },
	{ "both defaults: for --verbose", "mpirun", { NULL }, NULL, NULL, DEFAULT, 1000,
		NOTE_VERBOSE,
		"mpirun sends SIGKILL 1 s after its SIGTERM, before the 30 s of --shutdown-timeout "
		"are over; to change that, set OMPI_MCA_odls_base_sigkill_timeout=31 where mpirun "
		"is started (its SIGTERM then comes 31 s later, too)" },
	{ "a grace that was asked for: a warning", "mpirun", { NULL }, "600", NULL, DEFAULT, 1000,
		NOTE_WARNING,
		"mpirun sends SIGKILL 1 s after its SIGTERM, before the 600 s of --shutdown-" },
	{ "parts of a second are rounded up", "mpirun", { NULL }, "2.5", NULL, DEFAULT, 1000,
		NOTE_WARNING, "odls_base_sigkill_timeout=4 where" },
	{ "as long as mpirun's", "mpirun", { NULL }, "1", NULL, DEFAULT, 1000, 0, NULL },
	{ "shorter than mpirun's", "mpirun", { NULL }, "0.5", NULL, DEFAULT, 1000, 0, NULL },
	{ "mpirun's is long enough", "mpirun", { TIMEOUT "31" }, NULL, NULL,
		"OMPI_MCA_odls_base_sigkill_timeout", 31000, 0, NULL },
	{ "mpirun's is set, and too short", "mpirun", { TIMEOUT "20" }, NULL, NULL,
		"OMPI_MCA_odls_base_sigkill_timeout", 20000, NOTE_VERBOSE,
		"mpirun sends SIGKILL 20 s after its SIGTERM, before the 30 s" },
	{ "mpirun's is 0", "mpirun", { TIMEOUT "0" }, NULL, NULL,
		"OMPI_MCA_odls_base_sigkill_timeout", 0, NOTE_VERBOSE, "sends SIGKILL 0 s after" },
	{ "mpirun waits for ever", "mpirun", { TIMEOUT "-1" }, "600", NULL, NULL, 0, 0, NULL },
	{ "what mpirun makes of a word isn't known", "mpirun", { TIMEOUT "x" }, "600", NULL, NULL,
		0, 0, NULL },
	{ "the longest that mpirun takes", "mpirun", { TIMEOUT "2147483647" }, "600", NULL,
		"OMPI_MCA_odls_base_sigkill_timeout", 2147483647000, 0, NULL },
	{ "Open MPI 5 has no parameter", "mpirun 5", { "PRTE_LAUNCHED=1" }, NULL, NULL,
		"Open MPI 5", 250, NOTE_VERBOSE,
		"mpirun sends SIGKILL 0.25 s after its SIGTERM, before the 30 s of "
		"--shutdown-timeout are over; Open MPI 5 has no setting for that" },
	{ "the grace of TERM counts", "mpirun", { NULL }, NULL, "TERM=forward:600", DEFAULT, 1000,
		NOTE_WARNING,
		"mpirun sends SIGKILL 1 s after its SIGTERM, before the 600 s of --on-signal" },
	{ "a short grace of TERM", "mpirun", { NULL }, NULL, "TERM=stop:1", DEFAULT, 1000, 0,
		NULL },
	{ "the grace of another signal does not", "mpirun", { NULL }, "1", "INT=forward:600",
		DEFAULT, 1000, 0, NULL },
	{ "TERM ends nothing", "mpirun", { NULL }, NULL, "TERM=ignore", DEFAULT, 1000, 0, NULL },
};

static void test_grace(void **state)
{
	const struct grace_row *row = *state;
	const struct facts facts = { .env = row->env };
	struct plan p = { .start_count = 1 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_SHUTDOWN_TIMEOUT, row->shutdown, "--shutdown-timeout");
	settings_fixture_put(&b, SET_ON_SIGNAL, row->on_signal, "--on-signal");
	assert_outcome(reactions_make(&b.s, &p.reactions, &b.why), 0, &b.why, NULL);
	decide_mpirun_grace(&d, unit_launcher(row->launcher), &p);
	assert_true((p.mpirun_grace_from == NULL) == (row->from == NULL));
	if (row->from)
		assert_string_equal(p.mpirun_grace_from, row->from);
	assert_true(p.mpirun_grace_ms == row->ms);
	assert_note(&b.notes, row->part ? row->level : NOTE_VERBOSE, row->part);
	assert_true((p.mpirun_cuts == NULL) == (row->part == NULL));
	settings_fixture_done(&b);
}

/* Where no worker is started, nothing has a grace. */
static void test_none_started(void **state)
{
	const struct facts facts = { 0 };
	struct plan p = { .start_count = 0 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(reactions_make(&b.s, &p.reactions, &b.why), 0, &b.why, NULL);
	decide_mpirun_grace(&d, unit_launcher("mpirun"), &p);
	assert_true(p.mpirun_grace_ms == 1000);
	assert_note(&b.notes, NOTE_VERBOSE, NULL);
	settings_fixture_done(&b);
}

TESTS(mpirun_grace)
{
	static struct suite s;

	SUITE_ROWS(&s, test_grace, rows);
	suite_add(&s, "without a worker nothing is said", test_none_started, NULL, NULL);
	return suite_run(&s);
}
