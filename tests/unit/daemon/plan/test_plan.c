/* test_plan.c - ranks, and the decisions that only all values together allow. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"

static const struct ranks_row {
	const char *says;
	unsigned nproc[4], nnodes, node_rank;
	int rc;
	unsigned first_rank, world_size;
} ranks[] = {
	{ "one worker", { 1 }, 1, 0, 0, 0, 1 },
	{ "the first of equal nodes", { 8, 8 }, 2, 0, 0, 0, 16 },
	{ "the last of equal nodes", { 8, 8, 8 }, 3, 2, 0, 16, 24 },
	{ "unequal nodes", { 2, 5, 1, 4 }, 4, 2, 0, 7, 12 },
	{ "the last of unequal nodes", { 2, 5, 1, 4 }, 4, 3, 0, 8, 12 },
	{ "a node without workers", { 2, 0, 3 }, 3, 2, 0, 2, 5 },
	{ "a rank beyond the nodes", { 1, 1 }, 2, 2, -ERANGE, 0, 0 },
	{ "no nodes", { 0 }, 0, 0, -ERANGE, 0, 0 },
	{ "as many as an int holds", { INT_MAX - 1, 1 }, 2, 1, 0, INT_MAX - 1, INT_MAX },
	{ "one more than an int holds", { INT_MAX, 1 }, 2, 0, -ERANGE, 0, 0 },
	{ "more than an unsigned holds", { UINT_MAX, UINT_MAX }, 2, 0, -ERANGE, 0, 0 },
};

static void test_ranks(void **state)
{
	const struct ranks_row *row = *state;
	unsigned first = 77, size = 77;

	assert_int_equal(
		plan_ranks(row->nproc, row->nnodes, row->node_rank, &first, &size), row->rc);
	assert_int_equal(first, row->rc ? 77 : row->first_rank);
	assert_int_equal(size, row->rc ? 77 : row->world_size);
}

/* An mpirun that gives launchd all the time that it wants. */
#define PATIENT "OMPI_MCA_odls_base_sigkill_timeout=31"

static const struct make_row {
	const char *says;
	unsigned nproc;
	const char *launcher;
	bool under_systemd;
	struct {
		enum setting_id id;
		const char *text;
	} put[2];
	const char *env[3];
	int rc;
	const char *stdin_path; /* NULL: inherited */
	const char *omp;        /* NULL: left as it is */
	const char *note;       /* part of a note, or of the sentence; NULL: no note */
} makes[] = {
	{ "one worker of a user", 1, NULL, false, { { 0 } }, { NULL }, 0, NULL, NULL, NULL },
	{ "several workers get one thread, which is said", 2, NULL, false, { { 0 } }, { NULL }, 0,
		NULL, "1", "OMP_NUM_THREADS" },
	{ "threads that the user set stay", 2, NULL, false, { { 0 } }, { "OMP_NUM_THREADS=4" }, 0,
		NULL, NULL, NULL },
	{ "threads set to nothing are not set", 2, NULL, false, { { 0 } }, { "OMP_NUM_THREADS=" },
		0, NULL, "1", "OMP_NUM_THREADS" },
	{ "threads by --env", 2, NULL, false, { { SET_ENV, "OMP_NUM_THREADS=4" } }, { NULL }, 0,
		NULL, NULL, NULL },
	{ "threads by --unset-env", 2, NULL, false, { { SET_UNSET_ENV, "OMP_NUM_THREADS" } },
		{ NULL }, 0, NULL, NULL, NULL },
	{ "mpirun gives no input", 1, "mpirun", false, { { 0 } }, { PATIENT }, 0, "/dev/null", NULL,
		NULL },
	{ "mpirun's input is for the only rank", 2, "mpirun", false, { { SET_ONLY_RANK, "1" } },
		{ PATIENT, "OMP_NUM_THREADS=1" }, 0, NULL, NULL, "a free port" },
	{ "no input for the only rank on request", 1, "mpirun", false,
		{ { SET_ONLY_RANK, "0" }, { SET_STDIN, "null" } }, { PATIENT }, 0, "/dev/null",
		NULL, NULL },
	{ "a grace that mpirun cuts is said", 1, "mpirun", false, { { 0 } }, { NULL }, 0,
		"/dev/null", NULL, "mpirun sends SIGKILL 1 s after its SIGTERM" },
	{ "a signal that is none", 1, NULL, false, { { SET_ON_SIGNAL, "X=stop" } }, { NULL },
		-EINVAL, NULL, NULL, "\"X\" is not a signal" },
	{ "a rank that is none", 1, NULL, false, { { SET_ONLY_RANK, "1" } }, { NULL }, -EINVAL,
		NULL, NULL, "there is no rank 1" },
	{ "a report's name that is none", 1, NULL, false, { { SET_REPORT, "%q" } }, { NULL },
		-EINVAL, NULL, NULL, "\"%q\"" },
	{ "mpiexec gives no input", 1, "mpiexec", false, { { 0 } }, { NULL }, 0, "/dev/null", NULL,
		NULL },
	{ "srun gives no input", 1, "srun", false, { { 0 } }, { NULL }, 0, "/dev/null", NULL,
		NULL },
	{ "systemd gives no input", 1, NULL, true, { { 0 } }, { NULL }, 0, "/dev/null", NULL,
		NULL },
	{ "input is inherited on request", 1, "mpirun", true, { { SET_STDIN, "inherit" } },
		{ PATIENT }, 0, NULL, NULL, NULL },
	{ "no input on request", 1, NULL, false, { { SET_STDIN, "null" } }, { NULL }, 0,
		"/dev/null", NULL, NULL },
	{ "MPI's identity for several workers warns", 2, "mpirun", false,
		{ { SET_MPI_ENV, "keep" } }, { "OMP_NUM_THREADS=1", PATIENT }, 0, "/dev/null", NULL,
		"MPI_Init" },
	{ "MPI's identity for one worker is fine", 1, "mpirun", false, { { SET_MPI_ENV, "keep" } },
		{ PATIENT }, 0, "/dev/null", NULL, NULL },
	{ "a device for each worker", 2, NULL, false, { { SET_VIRTUAL_LOCAL_RANK, "1" } },
		{ "CUDA_VISIBLE_DEVICES=3,5", "OMP_NUM_THREADS=1" }, 0, NULL, NULL, NULL },
	{ "no list of devices is long enough", 2, NULL, false, { { SET_VIRTUAL_LOCAL_RANK, "1" } },
		{ "OMP_NUM_THREADS=1" }, 0, NULL, NULL, NULL },
	{ "too few devices", 3, NULL, false, { { SET_VIRTUAL_LOCAL_RANK, "1" } },
		{ "CUDA_VISIBLE_DEVICES=3,5" }, -EINVAL, NULL, NULL, "CUDA_VISIBLE_DEVICES=3,5" },
	{ "an empty list of devices", 1, NULL, false, { { SET_VIRTUAL_LOCAL_RANK, "1" } },
		{ "CUDA_VISIBLE_DEVICES=" }, -EINVAL, NULL, NULL, "need 1 GPUs, but there are 0" },
	{ "AMD's list is the list of both", 2, NULL, false, { { SET_VIRTUAL_LOCAL_RANK, "1" } },
		{ "CUDA_VISIBLE_DEVICES=3,5", "HIP_VISIBLE_DEVICES=1" }, -EINVAL, NULL, NULL,
		"HIP_VISIBLE_DEVICES=1" },
	{ "a short list without virtual ranks is the user's matter", 2, NULL, false, { { 0 } },
		{ "CUDA_VISIBLE_DEVICES=3", "OMP_NUM_THREADS=1" }, 0, NULL, NULL, NULL },
};

static void test_make(void **state)
{
	const struct make_row *row = *state;
	const char *env[4] = { row->env[0], row->env[1], row->env[2], NULL };
	const struct facts facts = { .env = env,
		.hostname = "h",
		.cpus = 8,
		.random_id = "",
		.under_systemd = row->under_systemd };
	const struct topology t = { .launcher = unit_launcher(row->launcher),
		.identity = { 1, 0, "", "", true, false },
		.master = { "127.0.0.1", 0, "", "", false, 0, NULL },
		.nproc = row->nproc,
		.nproc_from = "" };
	struct plan p = { 0 };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	for (size_t i = 0; i < 2 && row->put[i].text; i++)
		settings_fixture_put(&b, row->put[i].id, row->put[i].text, "--here");
	rc = plan_make(&d, &t, &row->nproc, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->note : NULL);
	if (rc == 0) {
		assert_int_equal(p.input.how, row->stdin_path ? STDIO_FILE : STDIO_INHERIT);
		if (row->stdin_path)
			assert_string_equal(p.input.path, row->stdin_path);
		assert_true((p.omp_num_threads == NULL) == (row->omp == NULL));
		assert_true(row->note == NULL || b.notes.first != NULL);
		if (row->note)
			assert_contains(b.notes.first->text, row->note);
		else
			assert_note(&b.notes, NOTE_VERBOSE, NULL);
	}
	settings_fixture_done(&b);
}

static const struct proc_row {
	const char *says;
	enum proc proc;
	const char *note;
} proc_rows[] = {
	{ "/proc is as it should be", PROC_OURS, NULL },
	{ "/proc of another pid namespace warns", PROC_FOREIGN,
		"/proc belongs to another PID namespace" },
	{ "no /proc warns", PROC_NONE, "/proc is not mounted" },
};

static void test_proc(void **state)
{
	const struct proc_row *row = *state;
	static const char *const env[] = { NULL };
	const struct facts facts = {
		.env = env, .hostname = "h", .cpus = 8, .random_id = "", .proc = row->proc
	};
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 1, 0, "", "", true, false },
		.master = { "127.0.0.1", 0, "", "", false, 0, NULL },
		.nproc = 1,
		.nproc_from = "" };
	struct plan p = { 0 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	assert_int_equal(plan_make(&d, &t, &t.nproc, &p), 0);
	assert_note(&b.notes, NOTE_WARNING, row->note);
	settings_fixture_done(&b);
}

/* The numbers of the other nodes' workers are an input. */
static void test_unequal(void **state)
{
	const unsigned nproc[] = { 2, 3, 4 };
	const struct facts facts = { .hostname = "h", .cpus = 8, .random_id = "" };
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 3, 1, "", "", true, false },
		.master = { "h", 29500, "", "", false, 0, NULL },
		.nproc = 3,
		.nproc_from = "" };
	struct worker_rank r;
	struct plan p;
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(plan_make(&d, &t, nproc, &p), 0, &b.why, NULL);
	r = plan_rank(&p, 2);
	assert_int_equal(r.rank, 4);
	assert_int_equal(r.local_rank, 2);
	assert_int_equal(r.world_size, 9);
	assert_int_equal(r.local_world_size, 3);
	assert_int_equal(r.node_rank, 1);
	assert_int_equal(r.nnodes, 3);
	assert_note(&b.notes, NOTE_INFO, NULL); /* node rank 0 speaks of threads */
	settings_fixture_done(&b);
}

/* Where none is started there is nothing to say but that. */
static void test_elsewhere(void **state)
{
	const unsigned nproc[] = { 2, 3 };
	const struct facts facts = { .hostname = "h", .cpus = 8, .random_id = "" };
	const struct topology t = { .launcher = unit_launcher("mpirun"),
		.identity = { 2, 1, "", "", true, false },
		.master = { "h", 29500, "", "", false, 0, NULL },
		.nproc = 3,
		.nproc_from = "" };
	struct plan p;
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_ONLY_RANK, "1", "--only-rank");
	assert_outcome(plan_make(&d, &t, nproc, &p), 0, &b.why, NULL);
	assert_int_equal(p.start_count, 0);
	assert_contains(b.notes.first->text, "nothing is started here");
	assert_null(b.notes.first->next);
	settings_fixture_done(&b);
}

static void test_too_many(void **state)
{
	static unsigned nproc[65536];
	const struct facts facts = { .hostname = "h", .cpus = 8, .random_id = "" };
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 65536, 0, "", "", true, false },
		.master = { "h", 29500, "", "", false, 0, NULL },
		.nproc = 65536,
		.nproc_from = "" };
	struct plan p;
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	for (size_t i = 0; i < sizeof nproc / sizeof *nproc; i++)
		nproc[i] = 65536;
	settings_fixture_make(&b, false);
	assert_outcome(plan_make(&d, &t, nproc, &p), -EINVAL, &b.why, "too many");
	settings_fixture_done(&b);
}

static const struct bind_row {
	const char *says;
	bool alone, has_addr;
	int rc;
	unsigned world_size;
	const char *addr;
} binds[] = {
	{ "nodes that met have the sizes of all, and the address that was told", false, false, 0, 7,
		"10.0.0.1" },
	{ "an address of the settings' own gives way to theirs", false, true, 0, 7, "10.0.0.1" },
	{ "a node that is alone carries out what it has planned", true, true, 0, 4, "h" },
	{ "but not without an address", true, false, -EINVAL, 0, NULL },
};

static void test_bind(void **state)
{
	const struct bind_row *row = *state;
	const unsigned nproc[] = { 2, 2 }, met_nproc[] = { 2, 5 };
	const struct facts facts = { .hostname = "h", .cpus = 8, .random_id = "" };
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 2, 0, "", "", true, false },
		.master = { row->has_addr ? "h" : NULL, 29500, "", "", false, 0, NULL },
		.nproc = 2,
		.nproc_from = "" };
	const struct agreement agreed = { .met = { 0, row->alone ? NULL : "10.0.0.1", 29500 },
		.nproc_of_node = row->alone ? nproc : met_nproc,
		.alone = row->alone,
		.max_restarts = 3,
		.agent_store = true };
	struct plan p, bound = { 0 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	assert_outcome(plan_make(&d, &t, nproc, &p), 0, &b.why, NULL);
	assert_int_equal(plan_bind(&p, &d, &t, &agreed, &bound), row->rc);
	assert_int_equal(bound.world_size, row->world_size);
	if (row->rc == 0) {
		assert_string_equal(bound.master_addr, row->addr);
		assert_int_equal(bound.max_restarts, 3);
		assert_int_equal(bound.store, STORE_AGENT);
	}
	assert_int_equal(p.world_size, 4); /* it stays as it was made */
	assert_int_equal(p.max_restarts, 0);
	settings_fixture_done(&b);
}

static void test_error_file(void **state)
{
	const struct attempt attempt = { 2, "1", "/run/x", NULL };
	const struct attempt logged = { 2, "1", "/run/x", "/logs/attempt_2" };
	struct arena a = { 0 };

	(void)state;
	assert_string_equal(
		plan_error_file(&attempt, 7, &a), "/run/x/attempt_2_local_rank_7_error.json");
	assert_string_equal(plan_error_file(&logged, 7, &a), "/logs/attempt_2/7/error.json");
	arena_done(&a);
}

TESTS(plan)
{
	static struct suite s;

	SUITE_ROWS(&s, test_ranks, ranks);
	SUITE_ROWS(&s, test_make, makes);
	SUITE_ROWS(&s, test_proc, proc_rows);
	SUITE_ROWS(&s, test_bind, binds);
	suite_add(&s, "nodes may have unequal numbers of workers", test_unequal, NULL, NULL);
	suite_add(&s, "a node without the only rank says one thing", test_elsewhere, NULL, NULL);
	suite_add(&s, "a job beyond all bounds is refused", test_too_many, NULL, NULL);
	suite_add(&s, "an error file names its attempt and worker", test_error_file, NULL, NULL);
	return suite_run(&s);
}
