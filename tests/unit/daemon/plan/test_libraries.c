/* test_libraries.c - TF_CONFIG and JAX's coordinator, of what the launchers have told one another.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

enum { NODES = 2 };

static const unsigned nproc[NODES] = { 2, 1 };
static const unsigned ports0[] = { 5001, 5002 }, ports1[] = { 6001 };

enum met { NOT_YET, NEVER, MET, MET_V6, WITHOUT, AWAY };

#define ALL "{\"worker\":[\"head:5001\",\"head:5002\",\"10.0.0.2:6001\"]}"

static const struct row {
	const char *says;
	enum met met;
	unsigned nnodes;
	const char *tf, *roles, *jax, *only; /* of the settings; NULL: not given */
	const char *cluster, *task;          /* task: of rank 1 */
	const char *coordinator;
	const char *sentence; /* part of it; NULL: no failure */
} rows[] = {
	{ "nothing is asked for", MET, 2, .sentence = NULL },
	{ "all workers, node by node", MET, 2, "1", .cluster = ALL,
		.task = "\"worker\",\"index\":1" },
	{ "an IPv6 address", MET_V6, 2, "1",
		.cluster = "{\"worker\":[\"head:5001\",\"head:5002\",\"[::2]:6001\"]}",
		.task = "\"worker\",\"index\":1" },
	{ "before the nodes have met", NOT_YET, 2, "1", .jax = "1",
		.cluster = "{\"worker\":[\"head:PORT\",\"head:PORT\",\"HOST:PORT\"]}",
		.task = "\"worker\",\"index\":1", .coordinator = "head:PORT" },
	{ "one node, before it has reserved ports", NEVER, 1, "1", .jax = "1",
		.cluster = "{\"worker\":[\"head:PORT\",\"head:PORT\"]}",
		.task = "\"worker\",\"index\":1", .coordinator = "head:PORT" },
	{ "one node", MET, 1, "1", .jax = "1",
		.cluster = "{\"worker\":[\"head:5001\",\"head:5002\"]}",
		.task = "\"worker\",\"index\":1", .coordinator = "head:7001" },
	{ "roles in the order of ranks", MET, 2, "1", "ps=1,worker=2",
		.cluster = "{\"ps\":[\"head:5001\"],\"worker\":[\"head:5002\",\"10.0.0.2:6001\"]}",
		.task = "\"worker\",\"index\":0" },
	{ "an evaluator is outside of the cluster", MET, 2, "1", "chief=1,evaluator=1,ps=1",
		.cluster = "{\"chief\":[\"head:5001\"],\"ps\":[\"10.0.0.2:6001\"]}",
		.task = "\"evaluator\",\"index\":0" },
	{ "JAX's coordinator is at rank 0", MET, 2, .jax = "1", .coordinator = "head:7001" },
	{ "roles that may fit when the nodes have met", NOT_YET, 2, "1", "worker=1,ps=7",
		.cluster = "{\"worker\":[\"head:PORT\"],\"ps\":[\"head:PORT\",\"HOST:PORT\",\"HOST:"
			   "PORT\",\"HOST:PORT\",\"HOST:PORT\",\"HOST:PORT\",\"HOST:PORT\"]}",
		.task = "\"ps\",\"index\":0" },
	{ "fewer roles than ranks, yet", NOT_YET, 2, "1", "ps=1",
		.cluster = "{\"ps\":[\"head:PORT\"]}", .task = "\"ps\",\"index\":1" },
	{ "other workers than the job has", MET, 2, "1", "ps=1,worker=3",
		.sentence = "--tf-roles: \"ps=1,worker=3\" is for 4 workers, but the job has 3" },
	{ "more roles than can be rendered", NOT_YET, 2, "1", "worker=2147483647,ps=2147483647",
		.sentence = "with 4294967294 workers TF_CONFIG is longer" },
	{ "a type that is none", MET, 2, "1", "master=1,worker=2", .sentence = "is not a list" },
	{ "a begin of a type", MET, 2, "1", "work=3", .sentence = "is not a list" },
	{ "no number", MET, 2, "1", "worker", .sentence = "is not a list" },
	{ "a number behind the comma", MET, 2, "1", "worker,ps=3", .sentence = "is not a list" },
	{ "none of a type", MET, 2, "1", "ps=0,worker=3", .sentence = "is not a list" },
	{ "an empty role", MET, 2, "1", "worker=2,,ps=1", .sentence = "is not a list" },
	{ "a comma at the end", MET, 2, "1", "worker=3,", .sentence = "is not a list" },
	{ "a type twice", MET, 2, "1", "worker=1,ps=1,worker=1", .sentence = "has worker twice" },
	{ "two chiefs", MET, 2, "1", "chief=2,worker=1", .sentence = "one chief only, not 2" },
	{ "two evaluators", MET, 2, "1", "evaluator=2,worker=1",
		.sentence = "one evaluator only, not 2" },
	{ "nodes that don't meet", NEVER, 2, "1", .sentence = "--tf-config: the launchers choose" },
	{ "and for JAX", NEVER, 2, .jax = "1", .sentence = "--jax-env: the launchers choose" },
	{ "one rank alone", MET, 1, "1", .only = "1",
		.sentence = "but with --only-rank they don't" },
	{ "a launcher without --tf-config", WITHOUT, 2, "1",
		.sentence = "--tf-config: node 1 (10.0.0.2) was started without it" },
	{ "a launcher without --jax-env", WITHOUT, 2, .jax = "1",
		.sentence = "--jax-env: node 1 (10.0.0.2) was started without it" },
	{ "a node that is away", AWAY, 2, "1", .sentence = "--tf-config: node 1 has not joined" },
};

static void assert_text(const char *got, const char *expected)
{
	if (!expected)
		assert_null(got);
	else
		assert_string_equal(got, expected);
}

static void test_row(void **state)
{
	static const char *const env[] = { NULL };
	const struct row *row = *state;
	const struct facts facts = { .env = env };
	const struct peer peers[NODES] = {
		{ .addr = "10.0.0.1", .port_count = 2, .ports = ports0, .jax_port = 7001 },
		{ .addr = row->met == AWAY         ? NULL :
				row->met == MET_V6 ? "::2" :
						     "10.0.0.2",
			.port_count = row->met >= WITHOUT ? 0 : 1,
			.ports = ports1,
			.jax_port = row->met >= WITHOUT ? 0 : 7002 },
	};
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { row->nnodes, 0, "", "", true, false },
		.peers = row->met >= MET ? peers : NULL };
	struct plan p = { .nnodes = row->nnodes,
		.world_size = row->nnodes == 1 ? 2 : 3,
		.provisional = row->met == NOT_YET,
		.master_addr = "head" };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };
	int rc;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_TF_CONFIG, row->tf, "--tf-config");
	settings_fixture_put(&b, SET_TF_ROLES, row->roles, "--tf-roles");
	settings_fixture_put(&b, SET_JAX_ENV, row->jax, "--jax-env");
	settings_fixture_put(&b, SET_ONLY_RANK, row->only, "--only-rank");
	rc = decide_libraries(&d, &t, nproc, &p);
	assert_int_equal(rc, row->sentence ? -EINVAL : 0);
	if (row->sentence) {
		if (!strstr(b.why.text, row->sentence))
			fail_msg("%s", b.why.text);
	} else {
		assert_text(p.library.tf_cluster, row->cluster);
		assert_text(p.library.jax_coordinator, row->coordinator);
	}
	if (row->task)
		assert_string_equal(plan_tf_config(&p, 1, b.s.arena),
			arena_printf(b.s.arena, "{\"cluster\":%s,\"task\":{\"type\":%s}}",
				row->cluster, row->task));
	assert_null(b.notes.first);
	settings_fixture_done(&b);
}

/* TensorFlow's silence. */
static const struct note_row {
	const char *says;
	unsigned nproc, node_rank;
	bool imports;
	const char *env, *put; /* TF_CONFIG: inherited, by --env */
	const char *note;      /* part of it; NULL: there is none */
} note_rows[] = {
	{ "a script without TensorFlow", 2, 0, false, NULL, NULL, NULL },
	{ "a script that trains alone", 2, 0, true, NULL, NULL,
		"s.py imports tensorflow, but TF_CONFIG is not set: each of the 2 workers" },
	{ "one line for all nodes", 2, 1, true, NULL, NULL, NULL },
	{ "one worker is alone anyway", 1, 0, true, NULL, NULL, NULL },
	{ "one worker and its TF_CONFIG", 1, 0, true, "TF_CONFIG={}", NULL, NULL },
	{ "one task for two workers", 2, 1, true, "TF_CONFIG={}", NULL,
		"all 2 workers of this node get the same TF_CONFIG" },
	{ "the same, by --env", 2, 0, false, NULL, "TF_CONFIG={}", "get the same TF_CONFIG" },
	{ "a user who wants them alone", 2, 0, true, NULL, "TF_CONFIG=", NULL },
};

static void test_note(void **state)
{
	const struct note_row *row = *state;
	const char *const env[] = { row->env, NULL };
	const struct facts facts = { .env = env, .program.tensorflow = row->imports };
	const struct topology t = { .launcher = unit_launcher(NULL),
		.identity = { 1, row->node_rank, "", "", true, false } };
	struct plan p = { .nnodes = 1,
		.node_rank = row->node_rank,
		.world_size = row->nproc,
		.start_count = row->nproc,
		.script = "s.py" };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_ENV, row->put, "--env");
	assert_int_equal(decide_libraries(&d, &t, nproc, &p), 0);
	if (!row->note)
		assert_null(b.notes.first);
	else
		assert_true(b.notes.first && strstr(b.notes.first->text, row->note));
	settings_fixture_done(&b);
}

TESTS(libraries)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	SUITE_ROWS(&s, test_note, note_rows);
	return suite_run(&s);
}
