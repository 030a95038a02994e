/* test_restart.c - whether a job that has failed is started again, and if not, why. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/job/restart.h"

static void test_delay(void **state)
{
	static const struct {
		unsigned delay_ms, attempt, asked_before;
		enum cause_kind restart;
		uint64_t ms;
	} delays[] = {
		{ 1000, 0, 0, CAUSE_NONE, 1000 },
		{ 1000, 1, 0, CAUSE_NONE, 2000 },
		{ 1000, 8, 0, CAUSE_NONE, 256000 },
		{ 1000, 9, 0, CAUSE_NONE, RESTART_DELAY_MAX_MS },
		{ 1000, 4000000000, 0, CAUSE_NONE, RESTART_DELAY_MAX_MS },
		{ 0, 4000000000, 0, CAUSE_NONE, 0 },
		{ 1000, 8, 7, CAUSE_NONE, 2000 },
		{ 1000, 8, 0, CAUSE_RESTART, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		const struct job j = { .policy.delay_ms = delays[i].delay_ms,
			.attempt = delays[i].attempt,
			.asked_restarts = delays[i].asked_before,
			.restart.kind = delays[i].restart };

		assert_int_equal(restart_delay_ms(&j, 0), delays[i].ms);
	}
}

/* Rank 3 fails 0.8 s after the start of an attempt, on the first of two nodes. */
static const struct row {
	const char *says, *why; /* why NULL: it is started again */
	struct restart_policy policy;
	struct ending end;
	unsigned attempt;
	enum node_state other;
	enum cause_kind kind, asked, restart;
	unsigned asked_before;
	unsigned idle;         /* failed attempts in a row without a new step */
	uint64_t best_step;    /* 0: there never was one */
	unsigned restarts_ago; /* so many restarts that counted, one each second until now */
	const char *site, *site_before;
	bool device; /* the exceptions tell of one */
} rows[] = {
	{ "a failure", NULL, { .max_restarts = 1 }, { ENDED_EXIT, 2, false }, .attempt = 0 },
	{ "no restarts are wanted", "", { .max_restarts = 0 }, { ENDED_EXIT, 2, false },
		.attempt = 0 },
	{ "the last one", NULL, { .max_restarts = 3 }, { ENDED_EXIT, 2, false }, .attempt = 2 },
	{ "none is left", "the limit is reached", { .max_restarts = 3 }, { ENDED_EXIT, 2, false },
		.attempt = 3 },
	{ "the only one is used", "the limit is reached", { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 1 },
	{ "named by --restart-on", NULL, { .max_restarts = 1, .on = "2" }, { ENDED_EXIT, 2, false },
		.attempt = 0 },
	{ "not named by --restart-on", "exit code 2 is not in --restart-on",
		{ .max_restarts = 1, .on = "3" }, { ENDED_EXIT, 2, false }, .attempt = 0 },
	{ "a signal that is not named", "SIGSEGV is not in --restart-on",
		{ .max_restarts = 1, .on = "3" }, { ENDED_SIGNAL, SIGSEGV, true }, .attempt = 0 },
	{ "named by --no-restart-on", "SIGKILL is in --no-restart-on",
		{ .max_restarts = 1, .not_on = "3,KILL" }, { ENDED_SIGNAL, SIGKILL, false },
		.attempt = 0 },
	{ "a shell's 137, where a signal is named", NULL,
		{ .max_restarts = 1, .not_on = "SIGKILL" }, { ENDED_EXIT, 137, false },
		.attempt = 0 },
	{ "a signal, where a shell's 137 is named", "SIGKILL is not in --restart-on",
		{ .max_restarts = 1, .on = "137,9" }, { ENDED_SIGNAL, SIGKILL, false },
		.attempt = 0 },
	{ "not named by --no-restart-on", NULL, { .max_restarts = 1, .not_on = "3" },
		{ ENDED_EXIT, 2, false }, .attempt = 0 },
	{ "named by both", "exit code 2 is in --no-restart-on",
		{ .max_restarts = 1, .on = "2", .not_on = "2" }, { ENDED_EXIT, 2, false },
		.attempt = 0 },
	{ "no program", "exit code 127 means that a program could not be started",
		{ .max_restarts = 1 }, { ENDED_UNSTARTED, ENOENT, false }, .attempt = 0 },
	{ "no program, of a shell", "exit code 126 means that a program could not be started",
		{ .max_restarts = 1 }, { ENDED_EXIT, 126, false }, .attempt = 0 },
	{ "no program, which --restart-on names", NULL, { .max_restarts = 1, .on = "127" },
		{ ENDED_UNSTARTED, ENOENT, false }, .attempt = 0 },
	{ "too soon",
		"rank 3 failed 0.80 s after the start, sooner than --restart-min-uptime (10 s)",
		{ .max_restarts = 1, .min_uptime_ms = 10000 }, { ENDED_EXIT, 2, false },
		.attempt = 0 },
	{ "late enough", NULL, { .max_restarts = 1, .min_uptime_ms = 800 },
		{ ENDED_EXIT, 2, false }, .attempt = 0 },
	{ "a lost node", "node 1 was lost", { .max_restarts = 1 }, { ENDED_EXIT, 2, false },
		.attempt = 0, .other = NODE_LOST },
	{ "a node that has left", "node 1 has ended and left", { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 0, .other = NODE_LEFT },
	{ "a node without a launcher", "node 1 runs without launchd", { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 0, .other = NODE_ABSENT },
	{ "a request after the failure", "the job was asked to end", { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 0, .asked = CAUSE_SIGNAL },
	{ "a request alone", "", { .max_restarts = 1 }, { ENDED_EXIT, 2, false }, .attempt = 0,
		.kind = CAUSE_SIGNAL, .asked = CAUSE_SIGNAL },
	{ "a bad node", "", { .max_restarts = 1 }, { ENDED_EXIT, 2, false }, .attempt = 0,
		.kind = CAUSE_BAD_NODE, .asked = CAUSE_BAD_NODE },
	{ "a hang that ends the job", "", { .max_restarts = 1 }, { ENDED_EXIT, 2, false },
		.attempt = 0, .kind = CAUSE_HANG, .asked = CAUSE_HANG },
	{ "a hang that ends the attempt", NULL, { .max_restarts = 1, .hangs = true },
		{ ENDED_EXIT, 2, false }, .attempt = 0, .kind = CAUSE_HANG, .asked = CAUSE_HANG },
	{ "a hang, at the limit", "the limit is reached", { .max_restarts = 1, .hangs = true },
		{ ENDED_EXIT, 2, false }, .attempt = 1, .kind = CAUSE_HANG, .asked = CAUSE_HANG },
	{ "a hang, and a request to end", "the job was asked to end",
		{ .max_restarts = 1, .hangs = true }, { ENDED_EXIT, 2, false }, .attempt = 0,
		.kind = CAUSE_HANG, .asked = CAUSE_SIGNAL },
	{ "a failure of nobody knows whom", "it is not known which worker failed",
		{ .max_restarts = 1 }, { ENDED_EXIT, 2, false }, .attempt = 0,
		.kind = CAUSE_NODE_LOST },
	{ "a lost node alone", "node 1 was lost", { .max_restarts = 1 }, { ENDED_EXIT, 2, false },
		.attempt = 0, .other = NODE_LOST, .kind = CAUSE_NODE_LOST },
	{ "one that was asked for, where none are wanted", NULL, { .max_restarts = 0 },
		{ ENDED_EXIT, 2, false }, .kind = CAUSE_RESTART, .restart = CAUSE_RESTART },
	{ "one that was asked for after a failure", NULL, { .max_restarts = 0 },
		{ ENDED_EXIT, 2, false }, .restart = CAUSE_RESTART },
	{ "one that was asked for, before the job was asked to end", "", { .max_restarts = 0 },
		{ ENDED_EXIT, 2, false }, .kind = CAUSE_SIGNAL, .asked = CAUSE_SIGNAL,
		.restart = CAUSE_RESTART },
	{ "one that was asked for, and a lost node", "node 1 was lost", { .max_restarts = 0 },
		{ ENDED_EXIT, 2, false }, .other = NODE_LOST, .kind = CAUSE_NODE_LOST,
		.restart = CAUSE_RESTART },
	{ "one that counts, after two that do not", NULL, { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 2, .asked_before = 2 },
	{ "the limit, with two that do not count", "the limit is reached", { .max_restarts = 1 },
		{ ENDED_EXIT, 2, false }, .attempt = 3, .asked_before = 2 },
	{ "a window that has room again", NULL, { .max_restarts = 3, .window_ms = 3000 },
		{ ENDED_EXIT, 2, false }, .attempt = 9, .restarts_ago = 2 },
	{ "a window that is full", "the limit is reached: 3 within 3.00 s",
		{ .max_restarts = 3, .window_ms = 3000 }, { ENDED_EXIT, 2, false }, .attempt = 9,
		.restarts_ago = 9 },
	{ "a window that forgets the first", NULL, { .max_restarts = 4, .window_ms = 2900 },
		{ ENDED_EXIT, 2, false }, .attempt = 9, .restarts_ago = 9 },
	{ "no progress, but not often enough", NULL, { .max_restarts = 9, .no_progress = 3 },
		{ ENDED_EXIT, 2, false }, .attempt = 2, .idle = 2 },
	{ "no progress, too often",
		"3 attempts in a row ended without a new step (the best is 1200): --no-progress-restarts",
		{ .max_restarts = 9, .no_progress = 3 }, { ENDED_EXIT, 2, false }, .attempt = 2,
		.idle = 3, .best_step = 1200 },
	{ "not a step, at the limit",
		"1 attempt in a row ended without a new step (there never was one): --no-progress-restarts",
		{ .max_restarts = 1, .no_progress = 1 }, { ENDED_EXIT, 2, false }, .attempt = 1,
		.idle = 1 },
	{ "hangs without progress",
		"2 attempts in a row ended without a new step (there never was one): --no-progress-restarts",
		{ .max_restarts = 9, .hangs = true, .no_progress = 2 }, { ENDED_EXIT, 2, false },
		.kind = CAUSE_HANG, .asked = CAUSE_HANG, .idle = 2 },
	{ "no progress, and a request to end", "the job was asked to end",
		{ .max_restarts = 9, .no_progress = 2 }, { ENDED_EXIT, 2, false }, .idle = 2,
		.asked = CAUSE_SIGNAL },
	{ "no progress, and somebody asks for another attempt", NULL,
		{ .max_restarts = 9, .no_progress = 2 }, { ENDED_EXIT, 2, false }, .idle = 2,
		.restart = CAUSE_RESTART },
	{ "the same exception, of which nobody says that it is in the way", NULL,
		{ .max_restarts = 9, .not_on = "3" }, { ENDED_EXIT, 1, false },
		.site = "E at a.py:1", .site_before = "E at a.py:1" },
	{ "the same exception", "E at a.py:1, as in attempt 4, and repeat is in --no-restart-on",
		{ .max_restarts = 9, .not_on = "3,repeat" }, { ENDED_EXIT, 1, false }, .attempt = 5,
		.site = "E at a.py:1", .site_before = "E at a.py:1" },
	{ "the same exception from another line", NULL, { .max_restarts = 9, .not_on = "repeat" },
		{ ENDED_EXIT, 1, false }, .site = "E at a.py:1", .site_before = "E at a.py:2" },
	{ "the same one, of a device", NULL, { .max_restarts = 9, .not_on = "repeat" },
		{ ENDED_EXIT, 1, false }, .site = "E at a.py:1", .site_before = "E at a.py:1",
		.device = true },
	{ "twice an end that is not known", NULL, { .max_restarts = 9, .not_on = "repeat" },
		{ ENDED_EXIT, 1, false }, .site = "", .site_before = "" },
};

enum { NOW_S = 100, NS_PER_S = 1000000000 };

static void remember(const struct row *row, struct history *h, struct arena *arena)
{
	const char *const sites[] = { row->site_before, row->site };

	for (unsigned i = 0; i < 2 && row->site; i++) {
		struct past_attempt p = {
			.attempt = row->attempt + i - 1, .cause = CAUSE_FAILURE, .has_culprit = true
		};

		(void)snprintf(p.site.text, sizeof p.site.text, "%s", sites[i]);
		p.site.device = row->device;
		assert_non_null(history_add(h, &p, arena));
	}
	for (unsigned i = 0; i < row->restarts_ago; i++)
		history_note_restart(
			h, (uint64_t)(NOW_S + i + 1 - row->restarts_ago) * NS_PER_S, 0, arena);
	h->idle = row->idle;
	h->any_step = row->best_step > 0;
	h->best_step = row->best_step;
}

static void test_restart(void **state)
{
	const struct row *row = *state;
	struct arena arena = { 0 };
	const struct outcome o = { .rank = 3, .end = row->end, .ended_ns = 1800000000 };
	struct job_node nodes[2] = { { .state = NODE_ENDED },
		{ .state = row->other ? row->other : NODE_ENDED } };
	struct job j = { .nnodes = 2,
		.attempt = row->attempt,
		.policy = row->policy,
		.nodes = nodes,
		.asked = { .kind = row->asked },
		.restart = { .kind = row->restart },
		.asked_restarts = row->asked_before,
		.started_ns = 1000000000 };
	struct result r = { .cause = { .kind = row->kind } };
	char why[WHY_NOT_SIZE];

	if (row->kind == CAUSE_NONE || row->kind == CAUSE_FAILURE)
		r.cause = cause_of_failure(&o);
	remember(row, &j.past, &arena);
	assert_int_equal(restart_is_due(&j, &r, (uint64_t)NOW_S * NS_PER_S, why), row->why == NULL);
	assert_string_equal(why, row->why ? row->why : "");
	assert_int_equal(restart_is_futile(&j, &r) > 0, strstr(why, "without a new step") != NULL);
	arena_done(&arena);
}

TESTS(restart)
{
	static struct suite s;

	SUITE_ROWS(&s, test_restart, rows);
	suite_add(&s, "the delay doubles, to five minutes", test_delay, NULL, NULL);
	return suite_run(&s);
}
