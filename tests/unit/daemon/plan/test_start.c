/* test_start.c - which ranks a node starts, and which of them --wrap is for. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

/* Three nodes of 2, 4 and 3 workers; this is the second, with the ranks 2 to 5. */
static const unsigned nproc_of_node[] = { 2, 4, 3 };

static const struct start_row {
	const char *says;
	const char *only, *wrap_ranks;
	bool wrap, found; /* the command of --wrap is given, is there */
	unsigned port;
	int rc;
	unsigned first, count;
	unsigned wrapped; /* bits of local ranks */
	enum note_level level;
	const char *part; /* of the note or of the sentence; NULL: no note */
} rows[] = {
	{ "all ranks of the node", NULL, NULL, false, false, 1, 0, 0, 4, 0, NOTE_INFO, NULL },
	{ "only its first rank", "2", NULL, false, false, 1, 0, 0, 1, 0, NOTE_INFO, NULL },
	{ "only its last rank", "5", NULL, false, false, 1, 0, 3, 1, 0, NOTE_INFO, NULL },
	{ "a rank of the node before", "1", NULL, false, false, 1, 0, 0, 0, 0, NOTE_INFO,
		"--only-rank: rank 1 is on node 0: this is node 1, so nothing is started here" },
	{ "a rank of the node behind", "6", NULL, false, false, 1, 0, 0, 0, 0, NOTE_INFO,
		"rank 6 is on node 2" },
	{ "the last rank of the job", "8", NULL, false, false, 1, 0, 0, 0, 0, NOTE_INFO,
		"rank 8 is on node 2" },
	{ "no rank of the job", "9", NULL, false, false, 1, -EINVAL, 0, 0, 0, NOTE_INFO,
		"--only-rank: there is no rank 9: the job has ranks 0 to 8" },
	{ "the highest rank that can be written", "2147483647", NULL, false, false, 1, -EINVAL, 0,
		0, 0, NOTE_INFO, "there is no rank 2147483647" },
	{ "a free port is known to no other rank", "3", NULL, false, false, 0, 0, 1, 1, 0,
		NOTE_INFO, "rank 3 gets a free port, which the other ranks can't know" },

	{ "all are wrapped", NULL, NULL, true, true, 1, 0, 0, 4, 0xf, NOTE_INFO, NULL },
	{ "some are wrapped", NULL, "0,3,5-8", true, true, 1, 0, 0, 4, 0xa, NOTE_INFO, NULL },
	{ "none here is wrapped", NULL, "0-1", true, true, 1, 0, 0, 4, 0, NOTE_INFO, NULL },
	{ "a rank to wrap that the job has not", NULL, "0,9", true, true, 1, -EINVAL, 0, 0, 0,
		NOTE_INFO, "--wrap-ranks: there is no rank 9: the job has ranks 0 to 8" },
	{ "the command is not there", NULL, NULL, true, false, 1, -ENOENT, 0, 0, 0, NOTE_INFO,
		"--wrap: nsys: no such file" },
	{ "the command is not there, and one rank needs it", NULL, "0,5", true, false, 1, -ENOENT,
		0, 0, 0, NOTE_INFO, "--wrap: nsys: no such file" },
	{ "a command that only other nodes need may be absent", NULL, "0-1,6", true, false, 1, 0, 0,
		4, 0, NOTE_INFO, NULL },
	{ "a command that only a rank left out needs, too", "3", "2", true, false, 1, 0, 1, 1, 0,
		NOTE_WARNING,
		"--wrap-ranks leaves out rank 3, the only one that is started: --wrap has no "
		"effect" },
	{ "one rank, wrapped", "3", NULL, true, true, 1, 0, 1, 1, 0x2, NOTE_INFO, NULL },
	{ "one rank, wrapped by its number", "3", "3", true, true, 1, 0, 1, 1, 0x2, NOTE_INFO,
		NULL },
	{ "the command of one rank is not there", "3", NULL, true, false, 1, -ENOENT, 0, 0, 0,
		NOTE_INFO, "--wrap: nsys: no such file" },
	{ "nothing is started, so nothing is needed", "0", NULL, true, false, 1, 0, 0, 0, 0,
		NOTE_INFO, "nothing is started here" },
};

static void test_start(void **state)
{
	const struct start_row *row = *state;
	const char *words[] = { "nsys", NULL };
	struct facts facts = { 0 };
	struct plan p = { .nproc = 4,
		.nnodes = 3,
		.node_rank = 1,
		.first_rank = 2,
		.world_size = 9,
		.master_port = row->port };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_ONLY_RANK, row->only, "--only-rank");
	settings_fixture_put(&b, SET_WRAP, row->wrap ? "nsys" : NULL, "--wrap");
	settings_fixture_put(&b, SET_WRAP_RANKS, row->wrap_ranks, "--wrap-ranks");
	if (row->wrap)
		facts.wrapper.words = (struct vec){ words, 1, 2 };
	if (row->found)
		facts.wrapper.path = "/bin/nsys";
	else
		(void)failure_set(&facts.wrapper.why, -ENOENT, "--wrap: nsys: no such file");
	rc = decide_start(&d, nproc_of_node, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_int_equal(p.start_first, row->first);
		assert_int_equal(p.start_count, row->count);
		for (unsigned i = p.start_first; i < p.start_first + p.start_count; i++)
			assert_int_equal(plan_is_wrapped(&p, i), (row->wrapped >> i) & 1);
		assert_note(&b.notes, row->part ? row->level : NOTE_VERBOSE, row->part);
	}
	settings_fixture_done(&b);
}

static void test_alone(void **state)
{
	const struct facts facts = { 0 };
	struct plan p = { .nproc = 1, .nnodes = 1, .world_size = 1 };
	struct settings_fixture b;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	(void)state;
	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_ONLY_RANK, "0", "--only-rank");
	assert_outcome(decide_start(&d, &p.nproc, &p), 0, &b.why, NULL);
	assert_note(&b.notes, NOTE_VERBOSE, NULL);
	settings_fixture_put(&b, SET_ONLY_RANK, "1", "--only-rank");
	assert_outcome(decide_start(&d, &p.nproc, &p), -EINVAL, &b.why, "the job has rank 0 only");
	settings_fixture_done(&b);
}

TESTS(start)
{
	static struct suite s;

	SUITE_ROWS(&s, test_start, rows);
	suite_add(&s, "a job of one worker", test_alone, NULL, NULL);
	return suite_run(&s);
}
