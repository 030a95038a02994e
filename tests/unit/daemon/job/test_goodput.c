/* test_goodput.c - what became of a job's time. Times are in s. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "daemon/job/goodput.h"

enum { RANKS = 3, ATTEMPTS = 4 };

#define NS(s) ((uint64_t)((s)*1e9))

/* One attempt: when it was ordered, when each rank ran, and when its last process was gone. */
struct attempt_row {
	double ordered;
	struct {
		double from, to; /* from 0: it was not started */
	} ranks[RANKS];
	double over;
	struct cause cause;
	bool has_step;
	double step, beyond;
};

#define FAILED .cause = { .kind = CAUSE_FAILURE }
#define WELL   .cause = { .kind = CAUSE_NONE }

static const struct goodput_row {
	const char *says;
	struct attempt_row attempts[ATTEMPTS]; /* up to one that is never over */
	double stopped;                        /* between two attempts; 0: not so */
	double total, running, startup, ending;
	enum cause_kind kind; /* of a loss: */
	unsigned times;
	double lost, work;
	unsigned per_mille;
	const char *text;
} rows[] = {
	{ "all is well", { { 10, { { 11, 100 }, { 12, 110 }, { 11.5, 105 } }, 111, WELL } }, 0,
		.total = 101, .running = 88, .startup = 2, .ending = 11, .per_mille = 871,
		.text = "goodput 87.1 % of 101.0 s: all ranks ran for 88.0 s, start-up took 2.00 s" },
	{ "a failure, and a restart",
		{ { 10, { { 11, 60 }, { 12, 63 }, { 11, 64 } }, 65, FAILED },
			{ 75, { { 76, 170 }, { 76, 170 }, { 80, 170 } }, 170, WELL } },
		0, .total = 160, .running = 138, .startup = 2, .kind = CAUSE_FAILURE, .times = 1,
		.lost = 20, .per_mille = 862,
		.text = "goodput 86.2 % of 160.0 s: all ranks ran for 138.0 s, start-up took 2.00 s; "
			"lost: 20.0 s to 1 failure; work that was done again is not known without "
			"--progress" },
	{ "... with steps, of which the last was long ago",
		{ { 10, { { 12, 60 }, { 12, 60 }, { 12, 60 } }, 60, FAILED, .has_step = true,
			  .step = 45 },
			{ 60, { { 60, 110 }, { 60, 110 }, { 60, 110 } }, 110, WELL } },
		0, .total = 100, .running = 83, .startup = 2, .kind = CAUSE_FAILURE, .times = 1,
		.lost = 15, .work = 15, .per_mille = 830,
		.text = "goodput 83.0 % of 100.0 s: all ranks ran for 83.0 s, start-up took 2.00 s; "
			"lost: 15.0 s to 1 failure" },
	{ "... and an attempt that comes to none",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60, FAILED, .has_step = true,
			  .step = 60 },
			{ 60, { { 62, 80 }, { 62, 80 }, { 62, 80 } }, 80, FAILED } },
		0, .total = 70, .running = 50, .kind = CAUSE_FAILURE, .times = 2, .lost = 20,
		.work = 18, .per_mille = 714,
		.text = "goodput 71.4 % of 70.0 s: all ranks ran for 50.0 s, start-up took 0.00 s; "
			"lost: 20.0 s to 2 failures" },
	{ "... and one that does again what was done, and more",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60, FAILED, .has_step = true,
			  .step = 60, .beyond = 11 },
			{ 60, { { 62, 162 }, { 62, 162 }, { 62, 162 } }, 162, WELL,
				.has_step = true, .step = 160, .beyond = 82 } },
		0, .total = 152, .running = 130, .kind = CAUSE_FAILURE, .times = 1, .lost = 22,
		.work = 20, .per_mille = 855, .text = NULL },
	{ "... or no more",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60, FAILED, .has_step = true,
			  .step = 60, .beyond = 11 },
			{ 60, { { 62, 102 }, { 62, 102 }, { 62, 102 } }, 102, FAILED,
				.has_step = true, .step = 90 } },
		0, .total = 92, .running = 50, .kind = CAUSE_FAILURE, .times = 2, .lost = 42,
		.work = 40, .per_mille = 543, .text = NULL },
	{ "without steps nobody knows",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60, FAILED } }, 0, .total = 50,
		.running = 50, .kind = CAUSE_FAILURE, .times = 1, .per_mille = 1000, .text = NULL },
	{ "a step before all ranks ran costs no more than what was run",
		{ { 10, { { 10, 60 }, { 30, 60 }, { 10, 60 } }, 60, FAILED, .has_step = true,
			.step = 15 } },
		0, .total = 50, .running = 0, .startup = 20, .kind = CAUSE_FAILURE, .times = 1,
		.lost = 30, .work = 30, .per_mille = 0, .text = NULL },
	{ "a step after the end costs nothing",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60, FAILED, .has_step = true,
			.step = 61 } },
		0, .total = 50, .running = 50, .kind = CAUSE_FAILURE, .times = 1, .per_mille = 1000,
		.text = NULL },
	{ "a hang: nothing had moved for so long",
		{ { 10, { { 20, 120 }, { 20, 121 }, { 20, 122 } }, 122,
			.cause = { .kind = CAUSE_HANG, .quiet_ns = NS(60) } } },
		0, .total = 112, .running = 40, .startup = 10, .kind = CAUSE_HANG, .times = 1,
		.lost = 62, .work = 60, .per_mille = 357, .text = NULL },
	{ "... and the last step even longer ago",
		{ { 10, { { 20, 120 }, { 20, 120 }, { 20, 120 } }, 120,
			.cause = { .kind = CAUSE_HANG, .quiet_ns = NS(60) }, .has_step = true,
			.step = 50 } },
		0, .total = 110, .running = 30, .startup = 10, .kind = CAUSE_HANG, .times = 1,
		.lost = 70, .work = 70, .per_mille = 272, .text = NULL },
	{ "a signal is no failure: a checkpoint may be there",
		{ { 10, { { 10, 60 }, { 10, 60 }, { 10, 60 } }, 60,
			.cause = { .kind = CAUSE_SIGNAL }, .has_step = true, .step = 20 } },
		0, .total = 50, .running = 50, .kind = CAUSE_SIGNAL, .times = 1, .per_mille = 1000,
		.text = "goodput 100.0 % of 50.0 s: all ranks ran for 50.0 s, start-up took 0.00 s; "
			"lost: 0.00 s to 1 signal" },
	{ "a rank that never started",
		{ { 10, { { 11, 20 }, { 0, 0 }, { 11, 21 } }, 30, FAILED },
			{ 35, { { 36, 86 }, { 36, 86 }, { 36, 86 } }, 86, WELL } },
		0, .total = 76, .running = 50, .kind = CAUSE_FAILURE, .times = 1, .lost = 26,
		.per_mille = 657, .text = NULL },
	{ "one that ended before the last one started",
		{ { 10, { { 11, 12 }, { 13, 14 }, { 14, 20 } }, 20, FAILED } }, 0, .total = 10,
		.startup = 4, .kind = CAUSE_FAILURE, .times = 1, .lost = 6, .text = NULL },
	{ "a lost node: from its last word on",
		{ { 10, { { 10, 80 }, { 10, 80 }, { 10, 80 } }, 82,
			.cause = { .kind = CAUSE_NODE_LOST, .at_ns = NS(70) } } },
		0, .total = 72, .running = 60, .kind = CAUSE_NODE_LOST, .times = 1, .lost = 12,
		.per_mille = 833, .text = NULL },
	{ "several failures are one loss",
		{ { 10, { { 10, 20 }, { 10, 20 }, { 10, 20 } }, 21, FAILED },
			{ 25, { { 26, 36 }, { 26, 36 }, { 26, 36 } }, 37, FAILED },
			{ 40, { { 41, 51 }, { 41, 51 }, { 41, 51 } }, 53, FAILED } },
		0, .total = 43, .running = 30, .kind = CAUSE_FAILURE, .times = 3, .lost = 13,
		.per_mille = 697,
		.text = "goodput 69.7 % of 43.0 s: all ranks ran for 30.0 s, start-up took 0.00 s; "
			"lost: 13.0 s to 3 failures; work that was done again is not known without "
			"--progress" },
	{ "the job is stopped between two attempts",
		{ { 10, { { 10, 20 }, { 10, 20 }, { 10, 20 } }, 20, FAILED } }, 35, .total = 25,
		.running = 10, .kind = CAUSE_FAILURE, .times = 1, .lost = 15, .per_mille = 400,
		.text = NULL },
	{ "nothing was started", { { .over = 0 } }, 35, .text = NULL },
};

static void add(struct goodput *g, const struct attempt_row *row)
{
	const struct goodput_attempt a = { NS(row->ordered), row->has_step, NS(row->step),
		NS(row->beyond) };
	struct outcome outcomes[RANKS] = { 0 };
	const struct result r = {
		.outcomes = outcomes, .count = RANKS, .cause = row->cause, .ended_ns = NS(row->over)
	};

	for (unsigned i = 0; i < RANKS; i++)
		outcomes[i] = (struct outcome){ .rank = i,
			.pid = row->ranks[i].from > 0 ? 100 : 0,
			.started_ns = NS(row->ranks[i].from),
			.ended_ns = NS(row->ranks[i].to) };
	goodput_add(g, &a, &r);
}

static void test_goodput(void **state)
{
	const struct goodput_row *row = *state;
	struct goodput g = { 0 };
	uint64_t sum;
	struct text t = { 0 };

	for (size_t i = 0; i < ATTEMPTS && row->attempts[i].over > 0; i++)
		add(&g, &row->attempts[i]);
	if (row->stopped > 0)
		goodput_stop(&g, NS(row->stopped));
	assert_int_equal(g.total_ns, NS(row->total));
	assert_int_equal(g.running_ns, NS(row->running));
	assert_int_equal(g.startup_ns, NS(row->startup));
	assert_int_equal(g.ending_ns, NS(row->ending));
	assert_int_equal(g.lost[row->kind].ns, NS(row->lost));
	assert_int_equal(g.lost[row->kind].work_ns, NS(row->work));
	assert_int_equal(goodput_per_mille(&g), row->per_mille);
	if (row->kind != CAUSE_NONE)
		assert_int_equal(g.lost[row->kind].attempts, row->times);
	sum = g.running_ns + g.startup_ns + g.ending_ns;
	for (int i = 0; i < CAUSE_KINDS; i++)
		sum += g.lost[i].ns;
	assert_int_equal(sum, g.total_ns); /* each moment counts once */
	goodput_text(&g, &t);
	if (row->text)
		assert_string_equal(text_string(&t), row->text);
	text_done(&t);
}

/* Of its ranks nobody knows when they started; the others tell. */
static void test_lost_node(void **state)
{
	struct outcome outcomes[2] = {
		{ .node = 0, .pid = 7, .started_ns = NS(11), .ended_ns = NS(60) },
		{ .rank = 1, .node = 1 }
	};
	const struct node nodes[2] = { { .lost = false }, { .lost = true } };
	const struct goodput_attempt a = { .started_ns = NS(10) };
	const struct result r = { .outcomes = outcomes,
		.count = 2,
		.nodes = nodes,
		.node_count = 2,
		.cause = { .kind = CAUSE_NODE_LOST, .at_ns = NS(50) },
		.ended_ns = NS(61) };
	struct goodput g = { 0 };

	(void)state;
	goodput_add(&g, &a, &r);
	assert_int_equal(g.startup_ns, NS(1));
	assert_int_equal(g.running_ns, NS(39));
	assert_int_equal(g.lost[CAUSE_NODE_LOST].ns, NS(11));
}

/* Every cause has a name. */
static void test_names(void **state)
{
	(void)state;
	for (int kind = CAUSE_NONE + 1; kind < CAUSE_KINDS; kind++) {
		struct goodput g = { .attempts = 1, .total_ns = NS(1) };
		struct text t = { 0 };

		g.lost[kind].attempts = 2;
		goodput_text(&g, &t);
		assert_null(strstr(text_string(&t), "null"));
		assert_non_null(strstr(text_string(&t), " to 2 "));
		text_done(&t);
	}
}

TESTS(goodput)
{
	static struct suite s;

	SUITE_ROWS(&s, test_goodput, rows);
	suite_add(&s, "a lost node's ranks", test_lost_node, NULL, NULL);
	suite_add(&s, "every cause has a name", test_names, NULL, NULL);
	return suite_run(&s);
}
