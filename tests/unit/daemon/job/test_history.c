/* test_history.c - where exceptions came from, and what attempts have in common. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/evidence.h"
#include "daemon/job/history.h"

#define FRAMES \
	"Traceback (most recent call last):\n" \
	"  File \"/job/train.py\", line 9, in <module>\n" \
	"    main()\n" \
	"  File \"/job/train.py\", line 42, in step\n" \
	"    raise ValueError('the teapot')\n"

static const struct site_row {
	const char *says, *traceback, *lines, *site;
	bool device;
} sites[] = {
	{ "nothing is said", NULL, NULL, "", false },
	{ "no traceback", NULL, "step 1\nValueError: x\n", "", false },
	{ "an error file", FRAMES "ValueError: the teapot is empty\n", NULL,
		"ValueError at /job/train.py:42 in step", false },
	{ "last lines, and more behind", NULL,
		"step 7\n" FRAMES "ValueError: the teapot is empty\nbye\n",
		"ValueError at /job/train.py:42 in step", false },
	{ "the message differs, the place does not", NULL, FRAMES "ValueError: cup 7\n",
		"ValueError at /job/train.py:42 in step", false },
	{ "the error file first", FRAMES "ValueError: x\n",
		"Traceback (most recent call last):\n  File \"b.py\", line 1, in f\nE: y\n",
		"ValueError at /job/train.py:42 in step", false },
	{ "carets below a line", NULL,
		"  File \"a.py\", line 3, in f\n    g(x)\n    ^^^^\nKeyError: 'x'",
		"KeyError at a.py:3 in f", false },
	{ "an exception without a message", NULL,
		"  File \"a.py\", line 3, in f\nKeyboardInterrupt\n",
		"KeyboardInterrupt at a.py:3 in f", false },
	{ "a module's own exception", NULL,
		"  File \"a.py\", line 3, in f\ntorch.OutOfMemoryError: CUDA out of memory.\n",
		"torch.OutOfMemoryError at a.py:3 in f", false },
	{ "the last of two", NULL,
		"  File \"a.py\", line 3, in f\nKeyError: 1\n\nDuring handling of the above exception, "
		"another exception occurred:\n\nTraceback (most recent call last):\n"
		"  File \"b.py\", line 4, in g\nOSError: 2\n",
		"OSError at b.py:4 in g", false },
	{ "a device's", NULL,
		"  File \"a.py\", line 3, in f\nRuntimeError: CUDA error: uncorrectable ECC error\n",
		"RuntimeError at a.py:3 in f", true },
	{ "a syntax error has no function", NULL,
		"  File \"a.py\", line 3\n    def\n       ^\nSyntaxError: invalid syntax\n",
		"SyntaxError at a.py:3", false },
	{ "cut in a frame", NULL, "  File \"a.p", "", false },
	{ "cut in a number", NULL, "  File \"a.py\", line ", "", false },
	{ "cut before the exception", NULL, "  File \"a.py\", line 3, in f\n    x()\n", "", false },
	{ "words that are no exception", NULL, "  File \"a.py\", line 3, in f\nall is lost\n", "",
		false },
};

static void test_site(void **state)
{
	const struct site_row *row = *state;
	const struct error_record record = { .traceback = row->traceback };
	const struct evidence said = { .record = row->traceback ? &record : NULL,
		.words.lines = row->lines };
	struct crash_site site;

	crash_site_find(&said, &site);
	assert_string_equal(site.text, row->site);
	assert_int_equal(site.device, row->device);
}

static void test_hardware(void **state)
{
	static const struct {
		const char *lines;
		bool hardware;
	} words[] = {
		{ FRAMES "RuntimeError: CUDA error: uncorrectable ECC error encountered\n", true },
		{ "CUDA error: unspecified launch failure\n", true },
		{ FRAMES "RuntimeError: CUDA error: an illegal memory access was encountered\n",
			false },
		{ FRAMES "RuntimeError: CUDA error: device-side assert triggered\n", false },
		{ FRAMES "torch.OutOfMemoryError: CUDA out of memory\n", false },
		{ FRAMES "ValueError: the teapot is empty\n", false },
	};
	struct crash_site site;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const struct evidence said = { .words.lines = words[i].lines };

		crash_site_find(&said, &site);
		assert_int_equal(site.hardware, words[i].hardware);
	}
}

static void test_long_path(void **state)
{
	char lines[2048], path[1000];
	const struct evidence said = { .words.lines = lines };
	struct crash_site site;

	(void)state;
	memset(path, 'd', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	(void)snprintf(lines, sizeof lines, "  File \"%s/train.py\", line 3, in f\nE: x\n", path);
	crash_site_find(&said, &site);
	assert_non_null(strstr(site.text, "ddd/train.py:3 in f"));
}

/* A failure of a worker. */
struct fall {
	unsigned node, local_rank;
	const char *site;
	bool device;
	enum cause_kind cause; /* NONE: a failure */
};

enum { FALLS_MAX = 5 };

static const struct place_row {
	const char *says;
	struct fall falls[FALLS_MAX];
	unsigned count, nnodes, workers;
	const char *text; /* NULL: no place */
	bool hardware;    /* .device speaks of it */
} places[] = {
	{ "the first failure", { { 1, 3, .site = "" } }, 1, 4, 32, .text = NULL },
	{ "two nodes", { { 1, 3, .site = "" }, { 2, 3, .site = "" } }, 2, 4, 32, .text = NULL },
	{ "one node, two of its workers", { { 1, 3, .site = "" }, { 1, 4, .site = "" } }, 2, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 2 attempts" },
	{ "one GPU", { { 1, 3, .site = "" }, { 1, 3, .site = "" } }, 2, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 2 attempts, local rank 3 each time" },
	{ "another node between",
		{ { 1, 3, .site = "" }, { 0, 0, .site = "" }, { 1, 3, .site = "" } }, 3, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 3 attempts, local rank 3 each time" },
	{ "the same exception is the program's",
		{ { 0, 0, .site = "E at a" }, { 0, 0, .site = "E at a" } }, 2, 4, 32,
		.text = NULL },
	{ "but not a device's",
		{ { 1, 0, .site = "E at a", .device = true },
			{ 1, 0, .site = "E at a", .device = true } },
		2, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 2 attempts, local rank 0 each time",
		.hardware = true },
	{ "of a device once, then the program's",
		{ { 1, 0, .site = "E at a", .device = true }, { 1, 0, .site = "E at b" } }, 2, 4,
		32,
		.text = "node 1 (n1) was the first to fail in 2 of 2 attempts, local rank 0 each time" },
	{ "of a device on two nodes",
		{ { 2, 0, .site = "E at a", .device = true },
			{ 1, 0, .site = "E at a", .device = true } },
		2, 4, 32, .text = NULL },
	{ "two exceptions", { { 1, 0, .site = "E at a" }, { 1, 0, .site = "E at b" } }, 2, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 2 attempts, local rank 0 each time" },
	{ "a request between is none",
		{ { 1, 3, .site = "" }, { 1, 3, .site = "", .cause = CAUSE_RESTART },
			{ 1, 3, .site = "" } },
		3, 4, 32,
		.text = "node 1 (n1) was the first to fail in 2 of 3 attempts, local rank 3 each time" },
	{ "a hang is no worker's",
		{ { 1, 3, .site = "" }, { 1, 3, .site = "", .cause = CAUSE_HANG } }, 2, 4, 32,
		.text = NULL },
	{ "of one node its GPU", { { 0, 3, .site = "" }, { 0, 3, .site = "" } }, 2, 1, 8,
		.text = "local rank 3 was the first to fail in 2 of 2 attempts" },
	{ "of one node another GPU", { { 0, 3, .site = "" }, { 0, 4, .site = "" } }, 2, 1, 8,
		.text = NULL },
	{ "of one worker", { { 0, 0, .site = "" }, { 0, 0, .site = "" } }, 2, 1, 1, .text = NULL },
};

static void test_place(void **state)
{
	const struct place_row *row = *state;
	const struct node nodes[4] = { { .name = "n0" }, { .name = "n1" }, { .name = "n2" },
		{ .name = "n3" } };
	struct arena arena = { 0 };
	struct history h = { 0 };
	struct text t = { 0 };

	for (unsigned i = 0; i < row->count; i++) {
		const struct fall *f = &row->falls[i];
		struct past_attempt p = { .attempt = i,
			.cause = f->cause ? f->cause : CAUSE_FAILURE,
			.has_culprit = !f->cause,
			.node = f->node,
			.local_rank = f->local_rank,
			.site.device = f->device,
			.site.hardware = f->device };

		(void)snprintf(p.site.text, sizeof p.site.text, "%s", f->site);
		assert_non_null(history_add(&h, &p, &arena));
	}
	assert_int_equal(
		history_place_add(&h, nodes, row->nnodes, row->workers, &t), row->text != NULL);
	assert_string_equal(text_string(&t), row->text ? row->text : "");
	assert_int_equal(history_blames_hardware(&h), row->hardware);
	text_done(&t);
	arena_done(&arena);
}

/* Counts are of all attempts, not of those that are kept whole. */
static void test_many(void **state)
{
	enum { FAILED = 3 * PAST_KEPT };
	const struct node nodes[2] = { { .name = "n0" }, { .name = "n1" } };
	const struct past_attempt broken = { .cause = CAUSE_FAILURE,
		.has_culprit = true,
		.node = 1,
		.local_rank = 3,
		.site = { .hardware = true } };
	struct past_attempt other = { .cause = CAUSE_FAILURE, .has_culprit = true };
	struct arena arena = { 0 };
	struct history h = { 0 };
	struct past_attempt *last;
	struct text t = { 0 };

	(void)state;
	for (unsigned i = 0; i < FAILED; i++)
		assert_non_null(history_add(&h, &broken, &arena));
	for (unsigned i = 0; i < 2 * PAST_KEPT; i++) {
		other.local_rank = i;
		(void)snprintf(other.site.text, sizeof other.site.text, "E at a.py:%u", i % 3);
		assert_non_null(history_add(&h, &other, &arena));
	}
	assert_false(history_blames_hardware(&h));
	last = history_add(&h, &broken, &arena);
	assert_non_null(last);
	last->attempt = FAILED + 2 * PAST_KEPT;
	assert_true(history_place_add(&h, nodes, 2, 16, &t));
	assert_string_equal(text_string(&t),
		"node 1 (n1) was the first to fail in 193 of 321 attempts, local rank 3 each time");
	assert_true(history_blames_hardware(&h));
	text_done(&t);
	arena_done(&arena);
}

/* Attempts with their newest steps; 0: none. */
static void test_progress(void **state)
{
	static const struct {
		enum cause_kind cause;
		uint64_t step;
		unsigned idle;
		bool progressed;
	} attempts[] = {
		{ CAUSE_FAILURE, 0, 1, false },
		{ CAUSE_FAILURE, 100, 0, true },
		{ CAUSE_FAILURE, 100, 1, false }, /* from the checkpoint to the same step */
		{ CAUSE_RESTART, 60, 1, false },  /* not asked for because it failed */
		{ CAUSE_FAILURE, 99, 2, false },
		{ CAUSE_HANG, 100, 3, false },
		{ CAUSE_RESTART, 101, 0, true },
		{ CAUSE_FAILURE, 0, 1, false },
	};
	struct arena arena = { 0 };
	struct history h = { 0 };

	(void)state;
	for (unsigned i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		const struct past_attempt now = { .cause = attempts[i].cause,
			.has_step = attempts[i].step > 0,
			.step = attempts[i].step };
		const struct past_attempt *p = history_add(&h, &now, &arena);

		assert_non_null(p);
		assert_int_equal(h.idle, attempts[i].idle);
		assert_int_equal(p->progressed, attempts[i].progressed);
	}
	assert_int_equal(h.best_step, 101);
	arena_done(&arena);
}

static void test_ring(void **state)
{
	struct arena arena = { 0 };
	struct history h = { 0 };

	(void)state;
	assert_int_equal(history_count(&h), 0);
	for (unsigned i = 0; i < 3 * PAST_KEPT + 5; i++) {
		assert_non_null(history_add(&h, &(struct past_attempt){ .attempt = i }, &arena));
		assert_int_equal(
			history_nth(&h, 0)->attempt, i < PAST_KEPT ? 0 : i + 1 - PAST_KEPT);
		assert_int_equal(history_nth(&h, history_count(&h) - 1)->attempt, i);
		assert_true(h.room <= 2 * history_count(&h));
	}
	assert_int_equal(history_count(&h), PAST_KEPT);
	assert_int_equal(history_nth(&h, 0)->attempt, 2 * PAST_KEPT + 5);
	assert_int_equal(history_nth(&h, PAST_KEPT - 1)->attempt, 3 * PAST_KEPT + 4);
	history_withdraw(&h, "node 1 was lost");
	assert_string_equal(history_nth(&h, PAST_KEPT - 1)->reason, "node 1 was lost");
	arena_done(&arena);
}

/* A restart every second, for a day, in a window of a minute: memory is that of the minute. */
static void test_window(void **state)
{
	enum { WINDOW = 60, DAY = 86400 };
	struct arena arena = { 0 };
	struct history h = { 0 };

	(void)state;
	for (uint64_t now = 1; now <= DAY; now++) {
		uint64_t since = now > WINDOW ? now - WINDOW : 0;

		assert_int_equal(
			history_restarts_since(&h, since), now <= WINDOW ? now - 1 : WINDOW);
		history_note_restart(&h, now, since, &arena);
	}
	assert_true(h.decided_room <= 4 * WINDOW);
	arena_done(&arena);
}

TESTS(history)
{
	static struct suite s;

	SUITE_ROWS(&s, test_site, sites);
	SUITE_ROWS(&s, test_place, places);
	suite_add(&s, "words that speak of hardware", test_hardware, NULL, NULL);
	suite_add(&s, "of a long path the end counts", test_long_path, NULL, NULL);
	suite_add(&s, "attempts in a row without a new step", test_progress, NULL, NULL);
	suite_add(&s, "only the last attempts are kept", test_ring, NULL, NULL);
	suite_add(&s, "many attempts", test_many, NULL, NULL);
	suite_add(&s, "restarts within a window", test_window, NULL, NULL);
	return suite_run(&s);
}
