/* test_detector.c - see detector.h, classify.h and sample.h: four ranks in a ring, looked at once a
 * second. */
#include "daemon/witness/detector.h"

#include <errno.h>
#include <string.h>

#include "common/sm.h"
#include "common/text.h"
#include "tests/unit/unit.h"

enum { RANKS = 4, AFTER_MS = 60000, STEP_MS = 1000, COMPUTE_MS = 20 };

/* What a rank does all the time: of a second. */
struct way {
	char state;
	enum waiting_in waits;
	unsigned cpu_ms, io, faults; /* its main thread's */
	unsigned rest_cpu_ms, kid_cpu_ms, kid_busiest_ms, read, call, written, net; /* its tree's */
	unsigned kids, dead, stuck;
	int stop_signal;
	enum gpu_activity gpu;
	int64_t working_set;
	bool odd; /* it has not entered the collective that the others wait in */
	const char *key;
};

#define WAITING \
	{ \
		.state = 'S', .waits = WAIT_FUTEX, .cpu_ms = 3 \
	}

struct trial {
	struct detector d;
	struct rank_sight sights[RANKS];
	struct talk_end room[RANKS * TALKS_MAX];
	struct worker_sample sums[RANKS]; /* what each has done so far */
	uint64_t now_ms, entered_ms;
	bool talks;    /* the ranks have connections with one another */
	bool in_store; /* all but rank 1 have one to the store */
	bool unacked;
};

static void begin(struct trial *t, uint64_t after_ms)
{
	memset(t, 0, sizeof *t);
	t->d = (struct detector){
		.after_ms = after_ms, .sights = t->sights, .room = t->room, .ranks = RANKS
	};
	t->now_ms = t->entered_ms = 1000000;
	t->talks = true;
	detector_begin(&t->d, t->now_ms);
}

/* The connection of two neighbours, as the first of them sees it. Who has entered has sent after
 * the pause in which all compute. */
static void add_talk(const struct trial *t, const struct way *ways, unsigned self, unsigned peer,
	struct worker_sample *s)
{
	unsigned low = self < peer ? self : peer, high = self < peer ? peer : self;
	uint32_t age = (uint32_t)(t->now_ms - t->entered_ms);

	s->talks[s->talk_count++] = (struct tcp_talk){
		.id = 16 * low + high + 1,
		.sent_ms = age + (ways[self].odd ? COMPUTE_MS : 0),
		.heard_ms = age + (ways[peer].odd ? COMPUTE_MS : 0),
		.unacked = t->unacked,
	};
}

/* A second more of that. */
static void go_on(struct worker_sample *s, const struct way *w)
{
	s->state = w->state;
	s->waits = w->waits;
	s->main_cpu_ms += w->cpu_ms;
	s->main_bytes += w->io;
	s->main_faults += w->faults;
	s->rest_cpu_ms += w->rest_cpu_ms + w->kid_cpu_ms;
	s->kid_cpu_ms += w->kid_cpu_ms;
	s->kid_busiest_ms = w->kid_busiest_ms;
	s->read_bytes += w->read;
	s->reads += w->call > 0 ? w->read / w->call : 0;
	s->written_bytes += w->written;
	s->writes += w->call > 0 ? w->written / w->call : 0;
	s->net_bytes += w->net;
	s->kids = w->kids;
	s->dead = w->dead;
	s->stuck = w->stuck;
	s->stop_signal = w->stop_signal;
	s->gpu = w->gpu;
	s->working_set = w->working_set > 0 ? w->working_set : WORKING_SET_UNKNOWN;
}

static enum detector_news look(struct trial *t, const struct way ways[RANKS])
{
	t->now_ms += STEP_MS;
	for (unsigned i = 0; i < RANKS; i++) {
		struct worker_sample *s = &t->sums[i];

		go_on(s, &ways[i]);
		s->rank = i;
		s->at_ms = t->now_ms;
		s->store_port = t->in_store && i != 1 ? 40000 + i : 0;
		s->talk_count = 0;
		for (unsigned side = 1; t->talks && side < RANKS; side += 2)
			add_talk(t, ways, i, (i + side) % RANKS, s);
		detector_see(&t->d, s);
		detector_awaits(&t->d, i, ways[i].key ? ways[i].key : "");
	}
	return detector_judge(&t->d, t->now_ms);
}

/* Looks for so long, or until there is news. */
static enum detector_news look_for(struct trial *t, const struct way ways[RANKS], unsigned seconds)
{
	enum detector_news news = NEWS_NONE;

	for (unsigned i = 0; i < seconds && news == NEWS_NONE; i++)
		news = look(t, ways);
	return news;
}

static uint64_t waited_ms(const struct trial *t)
{
	return t->now_ms - t->entered_ms;
}

/* --- what is suspected within 9 s --- */

static const struct row {
	const char *says;
	struct way odd; /* rank 1's; the others wait for it */
	enum hang_class class;
	const char *why;
	bool talks, all; /* all: no rank is named */
} rows[] = {
	{ "it sleeps", { .state = 'S', .waits = WAIT_SLEEP, .odd = true }, HANG_OUTSIDE,
		"it sleeps", true, false },
	{ "it waits for a lock, as the others wait",
		{ .state = 'S', .waits = WAIT_FUTEX, .odd = true }, HANG_OUTSIDE,
		"has sent the others nothing", true, false },
	{ "it waits for a pipe, and nobody talks by TCP", { .state = 'S', .waits = WAIT_PIPE },
		HANG_OUTSIDE, "a pipe", false, false },
	{ "it spins",
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 200000,
			.odd = true },
		HANG_SPINNING, "it runs", true, false },
	{ "it spins, and nobody talks by TCP",
		{ .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 990, .working_set = 200000 },
		HANG_SPINNING, "it runs", false, false },
	{ "it is stopped", { .state = 'T', .waits = WAIT_SIGNAL, .stop_signal = 19, .odd = true },
		HANG_STOPPED, "SIGSTOP", true, false },
	{ "a file system does not answer", { .state = 'D', .waits = WAIT_DISK, .odd = true },
		HANG_STOPPED, "file system", true, false },
	{ "FUSE does not answer", { .state = 'S', .waits = WAIT_DISK, .odd = true }, HANG_STOPPED,
		"file system", true, false },
	{ "what it has started is stuck",
		{ .state = 'S', .waits = WAIT_FUTEX, .kids = 2, .stuck = 1, .odd = true },
		HANG_STOPPED, "a process that it has started", true, false },
	{ "its loader has died", { .state = 'S', .waits = WAIT_FUTEX, .kids = 2, .dead = 1 },
		HANG_OUTSIDE, "has died", true, false },
	{ "it has ended", { .state = 'X', .waits = WAIT_OTHER }, HANG_OUTSIDE, "it has ended",
		false, false },
	{ "a key of the store does not come", { .state = 'S', .waits = WAIT_POLL, .key = "go" },
		HANG_OUTSIDE, "key go", false, false },
	{ "its GPU has nothing to do", { .state = 'S', .waits = WAIT_FUTEX, .gpu = GPU_IDLE },
		HANG_OUTSIDE, "no kernel runs on its GPU", false, false },
	{ "it spins, as CUDA does, and its GPU has nothing to do",
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 200000,
			.gpu = GPU_IDLE },
		HANG_OUTSIDE, "no kernel runs on its GPU", false, false },
	{ "kernels of all wait",
		{ .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 990, .gpu = GPU_WAITS },
		HANG_ALL_WAIT, "all GPUs do far less", false, true },
	{ "kernels of all wait, beside CUDA's threads",
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 1500000,
			.gpu = GPU_WAITS },
		HANG_ALL_WAIT, "all GPUs do far less", false, true },
	{ "all wait alike", WAITING, HANG_ALL_WAIT, "no worker differs", true, true },
};

static void test_suspect(void **state)
{
	const struct row *row = *state;
	struct way ways[RANKS] = { WAITING, row->odd, WAITING, WAITING };
	struct text text = { 0 };
	struct trial t;

	for (unsigned i = 0; i < RANKS && row->odd.gpu != GPU_NONE; i++)
		if (i != 1)
			ways[i].gpu = GPU_WAITS;

	begin(&t, AFTER_MS);
	t.talks = row->talks;
	assert_int_equal(look_for(&t, ways, 30), NEWS_SUSPECT);
	assert_true(waited_ms(&t) <= 9000);
	assert_int_equal(t.d.finding.class, row->class);
	assert_int_equal(t.d.finding.count, row->all ? 0 : 1);
	assert_int_equal(t.d.finding.ranks[0], row->all ? 0 : 1);
	finding_describe(&t.d.finding, &text);
	assert_contains(text_string(&text), row->why);
	text_done(&text);
}

/* Worker 0 hosts the store, so nobody sees for which key they wait; all sleep, as torch's clients
 * do between two looks, or wait. */
static void test_unjoined(void **state)
{
	static const enum waiting_in does[] = { WAIT_SLEEP, WAIT_FUTEX, WAIT_POLL };

	(void)state;
	for (size_t i = 0; i < sizeof does / sizeof *does; i++) {
		const struct way out = { .state = 'S', .waits = does[i] };
		const struct way ways[RANKS] = { { .state = 'S', .waits = WAIT_SLEEP }, out,
			WAITING, { .state = 'S', .waits = WAIT_SOCKET } };
		struct text text = { 0 };
		struct trial t;

		begin(&t, AFTER_MS);
		t.in_store = true;
		t.talks = false;
		assert_int_equal(look_for(&t, ways, 30), NEWS_SUSPECT);
		assert_int_equal(t.d.finding.class, HANG_OUTSIDE);
		assert_int_equal(t.d.finding.count, 1);
		assert_int_equal(t.d.finding.ranks[0], 1);
		finding_describe(&t.d.finding, &text);
		assert_contains(text_string(&text), "it has not joined the store");
		text_done(&text);
	}
}

/* --- what is never suspected --- */

static const struct benign_row {
	const char *says;
	struct way one;
	bool talks;
} benign[] = {
	{ "it writes a checkpoint",
		{ .state = 'D', .waits = WAIT_DISK, .cpu_ms = 11, .io = 16000000, .odd = true },
		true },
	{ "it compiles in a child",
		{ .state = 'S', .waits = WAIT_CHILD, .kids = 3, .kid_cpu_ms = 900, .odd = true },
		true },
	{ "it computes",
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 90000000,
			.odd = true },
		true },
	{ "it computes, and nobody knows what it touches",
		{ .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 990, .odd = true }, true },
	{ "its loaders read",
		{ .state = 'S', .waits = WAIT_PIPE, .kids = 4, .kid_cpu_ms = 300, .odd = true },
		true },
	{ "it downloads", { .state = 'S', .waits = WAIT_POLL, .net = 100000, .odd = true }, true },
	{ "its memory grows", { .state = 'S', .waits = WAIT_FUTEX, .faults = 9000, .odd = true },
		true },
	{ "its GPU works", { .state = 'S', .waits = WAIT_FUTEX, .gpu = GPU_BUSY }, true },
	{ "it computes on the CPU while its GPU rests",
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 90000000,
			.gpu = GPU_WAITS },
		true },
	{ "nobody knows what its GPU does",
		{ .state = 'S', .waits = WAIT_SLEEP, .gpu = GPU_UNKNOWN }, false },
};

static void test_benign(void **state)
{
	const struct benign_row *row = *state;
	const struct way ways[RANKS] = { WAITING, row->one, WAITING, WAITING };
	struct trial t;

	begin(&t, AFTER_MS);
	t.talks = row->talks;
	assert_int_equal(look_for(&t, ways, 55), NEWS_NONE);
}

/* --- by what a rank does while the job moves --- */

/* The job moves for so long, as its ranks talk. */
static void move_for(struct trial *t, const struct way ways[RANKS], unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		t->entered_ms = t->now_ms + STEP_MS / 2;
		(void)look(t, ways);
	}
	assert_int_equal(t->d.state, DETECTOR_MOVING);
}

#define STEPS(...) \
	{ \
		.state = 'R', .waits = WAIT_RUNS, .cpu_ms = 300, .faults = 400, \
		.working_set = 52000000, __VA_ARGS__ \
	}
#define HUNG(w, ...) \
	{ \
		.state = 'S', .waits = (w), .odd = true, __VA_ARGS__ \
	}
#define SMALL_PROGRAM .rest_cpu_ms = 6, .kid_cpu_ms = 20, .read = 9000, .call = 440
#define READS_PROC    .kids = 1, .kid_cpu_ms = 90, .kid_busiest_ms = 90, .read = 700000, .call = 1100

/* Rank 1, beside the others: as they move, and then while all is quiet. */
static const struct habit_row {
	const char *says;
	struct way moving, quiet;
	bool hangs;
} habits[] = {
	{ "a thread runs a small program each second", STEPS(SMALL_PROGRAM),
		HUNG(WAIT_FUTEX, SMALL_PROGRAM), true },
	{ "that, and a pipe is waited for", STEPS(SMALL_PROGRAM), HUNG(WAIT_PIPE, SMALL_PROGRAM),
		true },
	{ "a child samples /proc", STEPS(READS_PROC), HUNG(WAIT_FUTEX, READS_PROC), true },
	{ "that, and a child is waited for", STEPS(READS_PROC), HUNG(WAIT_CHILD, READS_PROC),
		true },
	{ "a thread samples /proc", STEPS(.rest_cpu_ms = 40, .read = 90000, .call = 900),
		HUNG(WAIT_POLL, .rest_cpu_ms = 40, .read = 90000, .call = 900), true },
	{ "a thread writes records", STEPS(.written = 3000, .call = 100),
		HUNG(WAIT_FUTEX, .written = 3000, .call = 100), true },
	{ "a thread runs Python programs, which read by calls of about 8 KB",
		STEPS(.kid_cpu_ms = 30, .read = 400000, .call = 7800),
		HUNG(WAIT_FUTEX, .kid_cpu_ms = 30, .read = 200000, .call = 8900), true },
	{ "a monitor begins with the hang", STEPS(.kids = 0), HUNG(WAIT_FUTEX, READS_PROC), true },
	{ "it spins beside a monitor, where steps touch much memory", STEPS(SMALL_PROGRAM),
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 990,
			.working_set = 1900000,
			.odd = true,
			SMALL_PROGRAM },
		true },
	{ "its loader receives 1 MB/s, as it always does",
		STEPS(.kids = 1, .net = 1000000, .kid_cpu_ms = 20),
		HUNG(WAIT_PIPE, .kids = 1, .net = 1000000, .kid_cpu_ms = 20), false },
	{ "its child receives little, and it polls for that", STEPS(.kids = 1),
		HUNG(WAIT_POLL, .kids = 1, .net = 9000), false },
	{ "it receives little, which is new", STEPS(.kids = 0), HUNG(WAIT_SOCKET, .net = 9000),
		false },
	{ "a thread of it receives little, which is new", STEPS(.kids = 0),
		HUNG(WAIT_FUTEX, .net = 9000), false },
	{ "a thread of it sends little, as it always does", STEPS(.net = 20000),
		HUNG(WAIT_SOCKET, .net = 20000), true },
	{ "a child of it sends little, as it always does", STEPS(.kids = 1, .net = 20000),
		HUNG(WAIT_FUTEX, .kids = 1, .net = 20000), true },
	{ "its loader computes, as it always does",
		STEPS(.kids = 1, .kid_cpu_ms = 400, .kid_busiest_ms = 400),
		HUNG(WAIT_POLL, .kids = 1, .kid_cpu_ms = 400, .kid_busiest_ms = 400), false },
	{ "its loader does more than it did", STEPS(.kids = 1, .kid_cpu_ms = 20),
		HUNG(WAIT_PIPE, .kids = 1, .kid_cpu_ms = 70), false },
	{ "a thread reads data, as it always does", STEPS(.read = 300000, .call = 65536),
		HUNG(WAIT_FUTEX, .read = 300000, .call = 65536), false },
	{ "its pool computes, on a machine with ten times as much to do", STEPS(.kids = 0),
		HUNG(WAIT_FUTEX, .kids = 2, .kid_cpu_ms = 130, .kid_busiest_ms = 65), false },
	{ "its threads compute", STEPS(.kids = 0), HUNG(WAIT_FUTEX, .rest_cpu_ms = 1800), false },
	{ "it polls, and does a little each time", STEPS(.kids = 0), HUNG(WAIT_SLEEP, .cpu_ms = 40),
		false },
};

static void test_habit(void **state)
{
	const struct habit_row *row = *state;
	const struct way step = STEPS(.kids = 0);
	const struct way moving[RANKS] = { step, row->moving, step, step };
	const struct way quiet[RANKS] = { WAITING, row->quiet, WAITING, WAITING };
	struct trial t;

	begin(&t, AFTER_MS);
	move_for(&t, moving, 9);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, quiet, 55), row->hangs ? NEWS_SUSPECT : NEWS_NONE);
	if (!row->hangs)
		return;
	assert_true(waited_ms(&t) <= 9000);
	assert_int_equal(t.d.finding.count, 1);
	assert_int_equal(t.d.finding.ranks[0], 1);
	assert_int_equal(look_for(&t, quiet, 300), NEWS_CERTAIN);
}

/* A monitor that writes much each 7 s, as it did while the job moved. */
static void test_burst_each_7_s(void **state)
{
	const struct way step = STEPS(.kids = 0);
	enum detector_news news = NEWS_NONE;
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 30 && news == NEWS_NONE; i++) {
		const unsigned written = i % 7 == 6 ? 1000000 : 0;
		const struct way moving[RANKS] = { step, STEPS(.written = written, .call = 100000),
			step, step };
		const struct way quiet[RANKS] = { WAITING,
			HUNG(WAIT_FUTEX, .written = written, .call = 100000), WAITING, WAITING };

		if (i < 16)
			move_for(&t, moving, 1);
		else
			news = look(&t, quiet);
		if (i == 15)
			t.entered_ms = t.now_ms;
	}
	assert_int_equal(news, NEWS_SUSPECT);
	assert_true(waited_ms(&t) <= 9000);
}

/* A compiler begins, and what others still say comes a look later: it is no habit. */
static void test_last_looks_are_no_habit(void **state)
{
	const struct way step = STEPS(.kids = 0), compiles = STEPS(.kids = 2, .kid_cpu_ms = 150);
	const struct way moving[RANKS] = { step, step, step, step };
	const struct way begins[RANKS] = { step, compiles, step, step };
	const struct way quiet[RANKS] = { WAITING, HUNG(WAIT_CHILD, .kids = 2, .kid_cpu_ms = 140),
		WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	move_for(&t, moving, 9);
	move_for(&t, begins, 2);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, quiet, 30), NEWS_NONE);
}

/* What a job touched while it started says nothing of its steps. */
static void test_touched_lately(void **state)
{
	const struct way starts = STEPS(.kids = 0);
	const struct way step = { .state = 'R',
		.waits = WAIT_RUNS,
		.cpu_ms = 300,
		.faults = 400,
		.working_set = 3000000 };
	const struct way starting[RANKS] = { starts, starts, starts, starts };
	const struct way moving[RANKS] = { step, step, step, step };
	const struct way quiet[RANKS] = { WAITING,
		{ .state = 'R',
			.waits = WAIT_RUNS,
			.cpu_ms = 300,
			.working_set = 1200000,
			.odd = true },
		WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	move_for(&t, starting, 3);
	move_for(&t, moving, 9);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, quiet, 30), NEWS_NONE);
}

/* What its main thread has used before it hung is no work of the looks behind that. */
static void test_mean_of_before(void **state)
{
	const struct way step = { .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 150 };
	const struct way moving[RANKS] = { step, step, step, step };
	const struct way still = { .state = 'S', .waits = WAIT_FUTEX };
	const struct way quiet[RANKS] = { still, HUNG(WAIT_FUTEX, .kids = 0), still, still };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	move_for(&t, moving, 9);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, quiet, 30), NEWS_SUSPECT);
	assert_int_equal(waited_ms(&t), SUSPECT_MS);
}

/* A line of output shows that it moves, too; the look that it falls into is of a job that does. */
static void test_habit_by_lines(void **state)
{
	const struct way step = STEPS(.kids = 0), monitored = STEPS(READS_PROC);
	const struct way moving[RANKS] = { step, monitored, step, step };
	const struct way quiet[RANKS] = { WAITING, HUNG(WAIT_PIPE, READS_PROC), WAITING, WAITING };
	struct trial t;

	(void)state;
	for (unsigned learns = 0; learns < 2; learns++) {
		begin(&t, AFTER_MS);
		t.d.no_habits = !learns;
		t.talks = false;
		for (unsigned i = 0; i < 9; i++) {
			assert_int_equal(detector_moved(&t.d, t.now_ms), NEWS_NONE);
			(void)look(&t, moving);
		}
		assert_int_equal(look_for(&t, quiet, 30), learns ? NEWS_SUSPECT : NEWS_NONE);
	}
}

/* Of the same loader, waited for a second time: what it did the first time is no habit. */
static void test_quiet_is_no_habit(void **state)
{
	const struct way step = STEPS(.kids = 1);
	const struct way moving[RANKS] = { step, step, step, step };
	const struct way quiet[RANKS] = { WAITING, HUNG(WAIT_PIPE, .kids = 1, .kid_cpu_ms = 70),
		WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 3; i++) {
		move_for(&t, moving, 5);
		t.entered_ms = t.now_ms;
		assert_int_equal(look_for(&t, quiet, 15), NEWS_NONE);
		(void)detector_moved(&t.d, t.now_ms);
	}
}

/* One rank spins. A peer's page faults, and pages of its own now and then, are no progress: it
 * stays suspected, until it is certain. */
static void test_spin_stays(void **state)
{
	const struct way step = STEPS(.kids = 0);
	const struct way moving[RANKS] = { step, step, step, step };
	struct way ways[RANKS] = { WAITING,
		{ .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 990, .odd = true }, WAITING,
		WAITING };
	enum detector_news news = NEWS_NONE;
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	move_for(&t, moving, 9);
	t.entered_ms = t.now_ms;
	ways[1].working_set = 200000;
	assert_int_equal(look_for(&t, ways, 9), NEWS_SUSPECT);
	for (unsigned i = 0; i < 60 && news != NEWS_CERTAIN; i++) {
		ways[1].working_set = i % 4 == 3 ? 11000000 : 200000;
		ways[2].faults = i % 7 == 6 ? 900 : 0;
		ways[3].cpu_ms = i % 5 == 4 ? 80 : 3;
		news = look(&t, ways);
		assert_int_not_equal(news, NEWS_CLEARED);
	}
	assert_int_equal(news, NEWS_CERTAIN);
	assert_int_equal(t.d.finding.class, HANG_SPINNING);
	assert_int_equal(t.d.finding.ranks[0], 1);
}

/* What a loop touches is known later than that it runs: the time until then was no work. */
static void test_spin_known_late(void **state)
{
	const struct way step = STEPS(.kids = 0);
	const struct way moving[RANKS] = { step, step, step, step };
	struct way ways[RANKS] = { WAITING,
		{ .state = 'R', .waits = WAIT_RUNS, .cpu_ms = 990, .odd = true }, WAITING,
		WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	move_for(&t, moving, 9);
	for (unsigned i = 0; i < RANKS; i++)
		t.sights[i].work.rated = 0; /* what it touched is long ago */
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, ways, 4), NEWS_NONE);
	ways[1].working_set = 200000;
	assert_int_equal(look_for(&t, ways, 3), NEWS_SUSPECT);
	assert_int_equal(t.d.finding.class, HANG_SPINNING);
}

/* Work of one rank in three looks in a row clears a suspicion, and less does not; workers that talk
 * clear it at once. */
static void test_cleared_by_work(void **state)
{
	static const struct way busy[RANKS] = { { .state = 'S', .waits = WAIT_FUTEX, .io = 9000 },
		{ .state = 'S', .waits = WAIT_SLEEP, .odd = true }, WAITING, WAITING };
	static const struct way still[RANKS] = { WAITING,
		{ .state = 'S', .waits = WAIT_SLEEP, .odd = true }, WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, still, 30), NEWS_SUSPECT);
	assert_int_equal(look_for(&t, busy, 2), NEWS_NONE);
	assert_int_equal(look_for(&t, still, 2), NEWS_NONE);
	assert_int_equal(look_for(&t, busy, 2), NEWS_NONE);
	assert_int_equal(look(&t, busy), NEWS_CLEARED);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, still, 60), NEWS_SUSPECT);
	t.entered_ms = t.now_ms + STEP_MS / 2;
	assert_int_equal(look(&t, still), NEWS_CLEARED);
}

/* What clears no suspicion keeps it from being certain, if it is more than seldom: a loader that
 * works in every second look is not ended. */
static void test_works_now_and_then(void **state)
{
	static const struct way busy[RANKS] = { { .state = 'S', .waits = WAIT_FUTEX, .io = 9000 },
		{ .state = 'S', .waits = WAIT_SLEEP, .odd = true }, WAITING, WAITING };
	static const struct way still[RANKS] = { WAITING,
		{ .state = 'S', .waits = WAIT_SLEEP, .odd = true }, WAITING, WAITING };
	struct trial t;

	(void)state;
	for (unsigned each = 2; each < 6; each++) {
		enum detector_news news = NEWS_NONE;

		begin(&t, AFTER_MS);
		assert_int_equal(look_for(&t, still, 30), NEWS_SUSPECT);
		for (unsigned i = 0; i < 200 && news == NEWS_NONE; i++)
			news = look(&t, i % each == 0 ? busy : still);
		assert_int_equal(news, each <= 3 ? NEWS_NONE : NEWS_CERTAIN);
		if (news == NEWS_NONE) /* it stops */
			assert_int_equal(look_for(&t, still, 40), NEWS_CERTAIN);
	}
}

/* --- what NCCL's RAS tells --- */

static const struct rank_ops even = { .known = true, .still_ms = 4000 };
static const struct rank_ops ahead = { .known = true, .ahead = true, .still_ms = 4000 };
static const struct rank_ops behind = {
	.known = true, .behind = true, .started = 41, .most = 42, .still_ms = 4000
};

/* Ranks that are alike in /proc, and whose only connections are those that RAS keeps alive: it
 * answers at first after so many seconds, and again every four; of the first nothing follows. */
static enum detector_news look_with_ras(
	struct trial *t, const struct way ways[RANKS], const struct rank_ops *one, unsigned seconds)
{
	enum detector_news news = NEWS_NONE;

	for (unsigned n = 0; n < seconds && news == NEWS_NONE; n++) {
		if (n % 4 == 2)
			detector_ras(&t->d, 5120);
		for (unsigned i = 0; i < RANKS && n % 4 == 2 && n > 2; i++)
			detector_ops(&t->d, i, i == 1 ? one : one->behind ? &ahead : &even);
		t->entered_ms = t->now_ms + STEP_MS / 2; /* it has just sent */
		news = look(t, ways);
	}
	return news;
}

static const struct rank_ops *const told[] = { &even, &behind,
	&(const struct rank_ops){ .known = true, .gone = true },
	&(const struct rank_ops){ .known = true, .odd = true },
	&(const struct rank_ops){ .known = true, .behind = true, .ahead = true } };

static const struct ras_row {
	const char *says;
	size_t told;
	enum hang_class class;
	const char *why;
} ras_rows[] = {
	{ "all have started the same", 0, HANG_ALL_WAIT, "the same collectives of NCCL's" },
	{ "one has started less", 1, HANG_OUTSIDE,
		"has started 41 collectives of a communicator of NCCL's, while others have 42" },
	{ "one does not answer NCCL", 2, HANG_OUTSIDE, "does not answer NCCL's RAS" },
	{ "one has started something else", 3, HANG_DESYNC, "other collectives" },
	{ "one has started less here, and more there", 4, HANG_DESYNC, "other collectives" },
};

static void test_ras(void **state)
{
	static const struct way ways[RANKS] = { WAITING, WAITING, WAITING, WAITING };
	const struct ras_row *row = *state;
	const uint64_t since_ms = 1000000;
	struct text text = { 0 };
	struct trial t;

	begin(&t, AFTER_MS);
	assert_int_equal(look_with_ras(&t, ways, told[row->told], 30), NEWS_SUSPECT);
	assert_true(t.now_ms - since_ms <= 10000);
	assert_int_equal(t.d.finding.class, row->class);
	assert_int_equal(t.d.finding.count, row->told > 0);
	finding_describe(&t.d.finding, &text);
	assert_contains(text_string(&text), row->why);
	text_done(&text);
	assert_int_equal(look_with_ras(&t, ways, told[row->told], 70), NEWS_CERTAIN);
}

/* Who waits for a kernel of NCCL's spins, which is no work. */
static void test_ras_spins(void **state)
{
	static const struct way spins = { .state = 'R',
		.waits = WAIT_RUNS,
		.cpu_ms = 990,
		.working_set = 200000,
		.gpu = GPU_UNKNOWN };
	const struct way ways[RANKS] = { spins,
		{ .state = 'S', .waits = WAIT_FUTEX, .gpu = GPU_UNKNOWN }, spins, spins };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_with_ras(&t, ways, &behind, 30), NEWS_SUSPECT);
	assert_int_equal(t.d.finding.class, HANG_OUTSIDE);
	assert_int_equal(t.d.finding.ranks[0], 1);
}

/* Without RAS' word connections over which something goes are the workers' own. */
static void test_no_ras(void **state)
{
	static const struct way ways[RANKS] = { WAITING, WAITING, WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 50; i++) {
		t.entered_ms = t.now_ms + STEP_MS / 2;
		assert_int_equal(look(&t, ways), NEWS_NONE);
	}
	/* it answers now: what was before is not taken back */
	assert_int_equal(look_with_ras(&t, ways, &even, 6), NEWS_NONE);
	detector_ras(&t.d, 0);
	assert_int_equal(t.sights[1].ops.known, false);
}

/* GPUs that can't be seen may all be computing for a while. */
static void test_ras_blind(void **state)
{
	static const struct way way = { .state = 'S', .waits = WAIT_FUTEX, .gpu = GPU_UNKNOWN };
	const struct way ways[RANKS] = { way, way, way, way };
	const struct rank_ops long_ago = { .known = true, .still_ms = 24000 };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_with_ras(&t, ways, &even, 20), NEWS_NONE);
	for (unsigned i = 0; i < RANKS; i++)
		detector_ops(&t.d, i, &long_ago);
	(void)look(&t, ways);
	assert_int_equal(look(&t, ways), NEWS_SUSPECT);
	assert_int_equal(t.d.finding.class, HANG_ALL_WAIT);
}

/* --- when --- */

static const struct way hung[RANKS] = { WAITING, { .state = 'S', .waits = WAIT_SLEEP, .odd = true },
	WAITING, WAITING };

static void test_certain_after(void **state)
{
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, hung, 30), NEWS_SUSPECT);
	assert_int_equal(look_for(&t, hung, 300), NEWS_CERTAIN);
	assert_int_equal(waited_ms(&t), AFTER_MS);
	assert_int_equal(look_for(&t, hung, 300), NEWS_NONE); /* once */
}

/* A job that has been quiet for 40 s before is given three times as long. */
static void test_learns(void **state)
{
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, hung, 10), NEWS_SUSPECT);
	assert_int_equal(look_for(&t, hung, 30), NEWS_NONE);
	assert_int_equal(detector_moved(&t.d, t.now_ms), NEWS_CLEARED);
	assert_int_equal(t.d.longest_ms / 1000, waited_ms(&t) / 1000);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, hung, 300), NEWS_SUSPECT);
	assert_true(waited_ms(&t) > t.d.longest_ms);
	assert_int_equal(look_for(&t, hung, 300), NEWS_CERTAIN);
	assert_true(waited_ms(&t) >= LEARNED * t.d.longest_ms);
}

/* While it moves looks are some seconds apart: these were no quiet. */
static void test_seldom_looks(void **state)
{
	static const struct way moving[RANKS] = { WAITING, WAITING, WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 9; i++) {
		move_for(&t, moving, 2);
		t.now_ms += 4000;
	}
	assert_true(t.d.longest_ms < 2000);
	assert_true(detector_hears_talk(&t.d, t.now_ms));
	assert_false(detector_hears_talk(&t.d, t.now_ms + 4000)); /* looks have ended */
	t.now_ms -= 4000;
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, hung, 6), NEWS_SUSPECT);
}

/* What was done before a line of output is no reason to wait longer behind it: the quiet counts
 * from the line on, however much was done between the last look before it and the first one behind.
 */
static void test_old_looks(void **state)
{
	static const struct way busy[RANKS] = { { .state = 'R', .waits = WAIT_RUNS, .io = 90000 },
		WAITING, WAITING, WAITING };
	struct trial t;
	uint64_t line_ms;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, busy, 5), NEWS_NONE);
	line_ms = t.now_ms += 3000;
	assert_int_equal(detector_moved(&t.d, line_ms), NEWS_NONE);
	t.entered_ms = line_ms;
	t.now_ms += 1000;
	for (unsigned i = 0; i < RANKS; i++)
		t.sights[i].now.main_bytes =
			0; /* the next look shows more, and all that follow the same */
	assert_int_equal(look_for(&t, hung, 30), NEWS_SUSPECT);
	assert_true(t.now_ms - line_ms <= 9000);
	assert_true(t.d.moved_ms == line_ms);
}

/* Looks that are late are not judged twice: one that shows work says nothing of the time behind it.
 */
static void test_late_looks(void **state)
{
	static const struct way busy[RANKS] = { { .state = 'R', .waits = WAIT_RUNS, .io = 90000 },
		WAITING, WAITING, WAITING };
	struct trial t;
	uint64_t seen_ms;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, busy, 5), NEWS_NONE);
	seen_ms = t.now_ms;
	assert_int_equal(detector_judge(&t.d, seen_ms + 1000), NEWS_NONE);
	assert_int_equal(detector_judge(&t.d, seen_ms + 2000), NEWS_NONE);
	assert_true(t.d.moved_ms == seen_ms);
}

/* Two looks that are next to each other, one tick of the kernel's clock between them: nobody works.
 */
static void test_looks_apart(void **state)
{
	struct trial t;
	struct worker_sample s;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, hung, 30), NEWS_SUSPECT);
	s = t.sights[3].now;
	s.at_ms += 13;
	s.main_cpu_ms += 10;
	detector_see(&t.d, &s);
	assert_int_equal(detector_judge(&t.d, t.now_ms + 13), NEWS_NONE);
	assert_int_equal(t.d.state, DETECTOR_SUSPECT);
}

/* Of two looks that come between two judgements the first one shows that somebody has written. */
static void test_two_between(void **state)
{
	struct trial t;
	struct worker_sample s;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, hung, 4), NEWS_NONE);
	s = t.sights[3].now;
	s.main_bytes += 90000;
	for (unsigned i = 0; i < 2; i++) {
		s.at_ms += STEP_MS;
		detector_see(&t.d, &s);
	}
	assert_int_equal(detector_judge(&t.d, s.at_ms), NEWS_NONE);
	assert_true(t.d.moved_ms == s.at_ms);
}

/* A file system that did not answer for 4 s, and then did, may do so again. */
static void test_stalls_again(void **state)
{
	static const struct way stalled[RANKS] = { WAITING,
		{ .state = 'S', .waits = WAIT_DISK, .odd = true }, WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, stalled, 4), NEWS_NONE);
	assert_int_equal(detector_moved(&t.d, t.now_ms), NEWS_NONE);
	t.entered_ms = t.now_ms;
	assert_int_equal(look_for(&t, stalled, 5), NEWS_NONE);
	assert_int_equal(look_for(&t, stalled, 3), NEWS_SUSPECT);
	assert_int_equal(t.d.finding.class, HANG_STOPPED);
}

/* One is looked at late, so that nobody knows yet whether it works; and one never. */
static void test_unseen_yet(void **state)
{
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 9; i++) {
		t.sights[2].looks = 0;
		assert_int_equal(look(&t, hung), NEWS_NONE);
	}
	assert_int_equal(look_for(&t, hung, 2), NEWS_SUSPECT);
	begin(&t, AFTER_MS);
	for (unsigned i = 0; i < 30 && t.d.state == DETECTOR_MOVING; i++) {
		t.sights[2].looks = 0;
		(void)look(&t, hung);
	}
	assert_int_equal(t.d.state, DETECTOR_SUSPECT);
	assert_true(waited_ms(&t) >= SUSPECT_MS + UNSEEN_MS);
	for (unsigned i = 0; i < 300; i++) { /* it may work: that is not acted on */
		t.sights[2].looks = 0;
		assert_int_not_equal(look(&t, hung), NEWS_CERTAIN);
	}
}

/* What was seen before looks ended is old, and what all have done since they began is not what they
 * do now. */
static void test_looks_end(void **state)
{
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	t.now_ms += 1000000; /* they have used 3 s of CPU time each */
	t.entered_ms = t.now_ms;
	detector_begin(&t.d, t.now_ms);
	assert_int_equal(look_for(&t, hung, 4), NEWS_NONE);
	for (unsigned i = 0; i < RANKS; i++)
		detector_see(&t.d,
			&(struct worker_sample){
				.rank = i, .at_ms = t.now_ms + 1000, .state = '?' });
	for (unsigned i = 0; i < 3; i++) {
		t.now_ms += STEP_MS;
		assert_int_equal(detector_judge(&t.d, t.now_ms), NEWS_NONE);
	}
	assert_int_equal(look_for(&t, hung, 3), NEWS_SUSPECT);
}

/* The longest quiet counts in the next attempt, too. */
static void test_next_attempt(void **state)
{
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	(void)look_for(&t, hung, 10);
	(void)detector_moved(&t.d, t.now_ms + 30000);
	detector_begin(&t.d, t.now_ms + 40000);
	assert_int_equal(t.d.state, DETECTOR_MOVING);
	assert_true(t.d.longest_ms >= 30000);
	assert_int_equal(t.sights[1].looks, 0);
}

static void test_stopped_sooner(void **state)
{
	const struct way ways[RANKS] = { WAITING,
		{ .state = 'T', .waits = WAIT_SIGNAL, .stop_signal = 19, .odd = true }, WAITING,
		WAITING };
	struct trial t;

	(void)state;
	begin(&t, 600000);
	assert_int_equal(look_for(&t, ways, 30), NEWS_SUSPECT);
	assert_int_equal(look_for(&t, ways, 700), NEWS_CERTAIN);
	assert_int_equal(waited_ms(&t), STOPPED_MS);
}

/* By a terminal, or by nobody knows whom: no sooner than any other. */
static void test_stopped_by_terminal(void **state)
{
	const struct way ways[RANKS] = { WAITING,
		{ .state = 'T', .waits = WAIT_SIGNAL, .stop_signal = 20, .odd = true }, WAITING,
		WAITING };
	struct trial t;

	(void)state;
	begin(&t, 600000);
	assert_int_equal(look_for(&t, ways, 30), NEWS_SUSPECT);
	assert_int_equal(look_for(&t, ways, 580), NEWS_NONE);
}

static void test_network(void **state)
{
	const struct way ways[RANKS] = { WAITING, WAITING, WAITING, WAITING };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	t.unacked = true;
	assert_int_equal(look_for(&t, ways, 30), NEWS_SUSPECT);
	assert_int_equal(t.d.finding.class, HANG_ALL_WAIT);
	assert_contains(t.d.finding.why, "the network");
}

/* Somebody has sent over a connection that was idle for long: it is in another collective. */
static void test_desync(void **state)
{
	struct rank_sight all[3] = { { .looks = 0 } };
	struct talk_end room[3 * TALKS_MAX];
	struct hang_finding f;
	struct at_work w;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		all[i].looks = 2;
		all[i].before = (struct worker_sample){ .rank = i, .at_ms = 1000, .state = 'S' };
		all[i].now = (struct worker_sample){
			.rank = i, .at_ms = 2000, .state = 'S', .waits = WAIT_FUTEX
		};
	}
	all[0].now.talks[0] = (struct tcp_talk){ 7, 5132, 5152, 0, 0, 0 };
	all[0].now.talk_count = 1;
	all[1].now.talks[0] = (struct tcp_talk){ 7, 5152, 5132, 0, 0, 0 };
	all[1].now.talks[1] = (struct tcp_talk){ 9, 5132, 5944, 0, 0, 0 };
	all[1].now.talk_count = 2;
	all[2].now.talks[0] = (struct tcp_talk){ 9, 5944, 5132, 0, 0, 0 };
	all[2].now.talks[1] = (struct tcp_talk){ 11, 5132, 5132, 0, 0, 0 };
	all[2].now.talk_count = 2;
	all[0].now.talks[1] = (struct tcp_talk){ 11, 5132, 5132, 0, 0, 0 };
	all[0].now.talk_count = 2;
	ranks_connect(all, 3, room);
	w = ranks_at_work(all, 3);
	assert_false(w.talk || w.net || w.work);
	hang_classify(all, 3, &f);
	assert_int_equal(f.class, HANG_DESYNC);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.ranks[0], 1);
}

/* The same at both looks; NULL: that rank is not seen. */
static void see_twice(struct rank_sight all[RANKS], const char *const lines[RANKS])
{
	for (unsigned i = 0; i < RANKS; i++) {
		if (!lines[i])
			continue;
		assert_int_equal(sample_read(lines[i], strlen(lines[i]), &all[i].now), 0);
		all[i].before = all[i].now;
		all[i].before.at_ms = 1;
		all[i].looks = 2;
	}
}

static struct hang_finding classify_all(struct rank_sight all[RANKS])
{
	struct talk_end room[RANKS * TALKS_MAX];
	struct hang_finding f;

	ranks_connect(all, RANKS, room);
	hang_classify(all, RANKS, &f);
	return f;
}

/* Of a real job: rank 2 gathers what the others reduce, and has sent that before they have. Rank 0,
 * with which it has not talked since the start, has sent to others since, so it is in that with
 * them. */
static void test_not_behind(void **state)
{
	static const char *const lines[] = {
		"rank=0 at=2 state=S wait=futex mcpu=0 talk=9de6,13212,13212 talk=cfff,19448,19448 "
		"talk=ccc8,13212,13212",
		"rank=1 at=2 state=S wait=futex mcpu=0 talk=71df,13212,13280 talk=9de6,13212,13212",
		"rank=2 at=2 state=S wait=futex mcpu=0 talk=cfff,19448,19448 talk=71df,13280,13212 "
		"talk=de50,13280,13212",
		"rank=3 at=2 state=S wait=futex mcpu=0 talk=de50,13212,13280 talk=ccc8,13212,13212",
	};
	struct rank_sight all[RANKS] = { { .looks = 0 } };
	struct hang_finding f;

	(void)state;
	see_twice(all, lines);
	f = classify_all(all);
	assert_int_equal(f.class, HANG_OUTSIDE);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.ranks[0], 2);
}

/* A root gathers from all, and rank 1 was the last one the time before: what it sent and what came
 * back are so close that, of the two ends, none can be said to wait. The others have asked since.
 */
static void test_last_of_the_step_before(void **state)
{
	static const char *const roots[] = {
		"rank=0 at=2 state=S wait=futex mcpu=0 talk=9de6,5000,5000 talk=cfff,5000,4904 "
		"talk=ccc8,5000,4900",
		"rank=0 at=2 state=S wait=futex mcpu=0 talk=9de6,5000,5004 talk=cfff,5000,4904 "
		"talk=ccc8,5000,4900",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof roots / sizeof *roots; i++) {
		const char *const lines[] = {
			roots[i],
			i == 0 ? "rank=1 at=2 state=S wait=futex mcpu=0 talk=9de6,5000,5000" :
				 "rank=1 at=2 state=S wait=futex mcpu=0 talk=9de6,5004,5000",
			"rank=2 at=2 state=S wait=futex mcpu=0 talk=cfff,4904,5000",
			"rank=3 at=2 state=S wait=futex mcpu=0 talk=ccc8,4900,5000",
		};
		struct rank_sight all[RANKS] = { { .looks = 0 } };
		struct hang_finding f;

		see_twice(all, lines);
		f = classify_all(all);
		assert_int_equal(f.class, HANG_OUTSIDE);
		assert_int_equal(f.count, 1);
		assert_int_equal(f.ranks[0], 1);
	}
}

/* Rank 2's node does not answer: it may work, or what is sent to it is not acknowledged. */
static void test_cut_off(void **state)
{
	static const char *const lines[] = {
		"rank=0 at=2 state=S wait=futex mcpu=0 talk=9de6,8100,8000 talk=ccc8,8000,8100",
		"rank=1 at=2 state=S wait=futex mcpu=0 talk=71df,8000,8100,0,1,5 talk=9de6,8000,8100",
		NULL,
		"rank=3 at=2 state=S wait=futex mcpu=0 talk=de50,8000,8100 talk=ccc8,8100,8000",
	};
	struct rank_sight all[RANKS] = { { .looks = 0 } };
	struct hang_finding f;

	(void)state;
	see_twice(all, lines);
	f = classify_all(all);
	assert_int_equal(f.class, HANG_ALL_WAIT);
	assert_int_equal(f.count, 0);
	assert_contains(f.why, "1 of them, rank 2, can't be seen");
	assert_contains(f.why, "not acknowledged: the network");
	all[1].now.talks[0].unacked = all[1].now.talks[0].retries = 0;
	f = classify_all(all);
	assert_int_equal(f.class, HANG_NONE);
}

/* Nothing is said of workers that nobody has seen, or whose nodes tell nothing any more. */
static void test_unseen(void **state)
{
	static const struct way gone[RANKS] = { { .state = '?' }, { .state = '?' },
		{ .state = '?' }, { .state = '?' } };
	struct trial t;

	(void)state;
	begin(&t, AFTER_MS);
	assert_int_equal(look_for(&t, gone, 300), NEWS_NONE);
}

/* All sleep, and none waits for another: that is no hang before a minute has passed. */
static void test_all_sleep(void **state)
{
	static const struct way asleep[RANKS] = { { .state = 'S', .waits = WAIT_SLEEP },
		{ .state = 'S', .waits = WAIT_SLEEP }, { .state = 'S', .waits = WAIT_SLEEP },
		{ .state = 'S', .waits = WAIT_SLEEP } };
	struct trial t;

	(void)state;
	begin(&t, 10 * AFTER_MS);
	t.talks = false;
	assert_int_equal(look_for(&t, asleep, 300), NEWS_SUSPECT);
	assert_true(waited_ms(&t) >= SILENT_MS);
	assert_int_equal(t.d.finding.class, HANG_ALL_WAIT);
}

/* --- lines --- */

static void test_line(void **state)
{
	struct worker_sample s = { .rank = 3,
		.at_ms = 81234,
		.state = 'D',
		.waits = WAIT_DISK,
		.main_cpu_ms = 1,
		.main_bytes = 2,
		.main_faults = 3,
		.rest_cpu_ms = 4,
		.read_bytes = 5,
		.reads = 6,
		.written_bytes = 7,
		.writes = 8,
		.net_bytes = 9,
		.kid_cpu_ms = 10,
		.kid_busiest_ms = 11,
		.kids = 7,
		.dead = 8,
		.stuck = 9,
		.stop_signal = 19,
		.traced = true,
		.gpu = GPU_IDLE,
		.working_set = 4096,
		.store_port = 40112,
		.talks = { { UINT64_MAX, 1, 2, 3, 4, 5 }, { 1, 6, 7, 8, 9, 10 } },
		.talk_count = 2 };
	struct worker_sample got;
	struct text line = { 0 }, again = { 0 };

	(void)state;
	sample_add(&line, &s);
	assert_int_equal(sample_read(text_string(&line), line.len - 1, &got), 0);
	sample_add(&again, &got);
	assert_string_equal(text_string(&line), text_string(&again));
	text_done(&again);
	text_done(&line);
}

static void test_hostile_line(void **state)
{
	static const char old[] = "rank=1 at=1 state=S wait=futex cpu=1 io=2 flt=3";
	static const char many[] =
		"rank=1 talk=1,1,1 talk=1 talk=,,,,,, talk=2 talk=3 talk=4 talk=5 "
		"talk=6 talk=7 talk=8 talk=9 talk=a talk=b talk=c talk=d wait=x "
		"state=\x1b gpu= mcpu=99999999999999999999999 new=1 = x";
	struct worker_sample got;

	(void)state;
	assert_int_equal(sample_read("", 0, &got), -EINVAL);
	assert_int_equal(sample_read("quiet", 5, &got), -EINVAL);
	assert_int_equal(sample_read(old, sizeof old - 1, &got), -EINVAL);
	assert_int_equal(sample_read(many, sizeof many - 1, &got), 0);
	assert_int_equal(got.talk_count, TALKS_MAX);
	assert_int_equal(got.state, '?');
	assert_int_equal(got.waits, WAIT_OTHER);
	assert_true(got.main_cpu_ms == INT64_MAX);
}

static void test_wchan(void **state)
{
	(void)state;
	assert_int_equal(waiting_of("futex_do_wait"), WAIT_FUTEX);
	assert_int_equal(waiting_of("hrtimer_nanosleep"), WAIT_SLEEP);
	assert_int_equal(waiting_of("anon_pipe_read"), WAIT_PIPE);
	assert_int_equal(waiting_of("rpc_wait_bit_killable"), WAIT_DISK);
	assert_int_equal(waiting_of("0"), WAIT_RUNS);
	assert_int_equal(waiting_of(""), WAIT_UNKNOWN);
	assert_int_equal(waiting_of("something_else"), WAIT_OTHER);
}

static void test_life(void **state)
{
	static const unsigned next[DETECTOR_STATES] = { SM_TO(DETECTOR_SUSPECT),
		SM_TO(DETECTOR_CERTAIN) | SM_TO(DETECTOR_MOVING), SM_TO(DETECTOR_MOVING) };

	(void)state;
	for (unsigned from = 0; from < DETECTOR_STATES; from++)
		for (unsigned to = 0; to < DETECTOR_STATES; to++)
			assert_int_equal(
				sm_may_go(&detector_life, from, to), (next[from] & SM_TO(to)) != 0);
}

TESTS(detector)
{
	static struct suite s;

	SUITE_ROWS(&s, test_suspect, rows);
	suite_add(&s, "it has not joined the store, and worker 0 hosts that", test_unjoined, NULL,
		NULL);
	SUITE_ROWS(&s, test_benign, benign);
	SUITE_ROWS(&s, test_habit, habits);
	suite_add(&s, "a burst each 7 s", test_burst_each_7_s, NULL, NULL);
	suite_add(&s, "the last looks before a quiet", test_last_looks_are_no_habit, NULL, NULL);
	suite_add(&s, "what is touched at a start", test_touched_lately, NULL, NULL);
	suite_add(&s, "what was used before a hang", test_mean_of_before, NULL, NULL);
	suite_add(&s, "a habit by lines of output", test_habit_by_lines, NULL, NULL);
	suite_add(&s, "what is done in a long quiet", test_quiet_is_no_habit, NULL, NULL);
	suite_add(&s, "one that spins stays suspected", test_spin_stays, NULL, NULL);
	suite_add(
		&s, "what one that spins touches is known late", test_spin_known_late, NULL, NULL);
	suite_add(&s, "what clears a suspicion", test_cleared_by_work, NULL, NULL);
	suite_add(&s, "work in every second look", test_works_now_and_then, NULL, NULL);
	SUITE_ROWS(&s, test_ras, ras_rows);
	suite_add(&s, "who waits for NCCL spins", test_ras_spins, NULL, NULL);
	suite_add(&s, "connections without RAS", test_no_ras, NULL, NULL);
	suite_add(&s, "NCCL, and GPUs that can't be seen", test_ras_blind, NULL, NULL);
	suite_add(&s, "certain after the time that was set", test_certain_after, NULL, NULL);
	suite_add(&s, "never before three times the longest quiet", test_learns, NULL, NULL);
	suite_add(&s, "looks that are seldom", test_seldom_looks, NULL, NULL);
	suite_add(&s, "what was done before", test_old_looks, NULL, NULL);
	suite_add(&s, "looks that are late", test_late_looks, NULL, NULL);
	suite_add(&s, "looks next to each other", test_looks_apart, NULL, NULL);
	suite_add(&s, "a stall that was there before", test_stalls_again, NULL, NULL);
	suite_add(&s, "one that is not seen yet", test_unseen_yet, NULL, NULL);
	suite_add(&s, "two looks between judgements", test_two_between, NULL, NULL);
	suite_add(&s, "what was learned stays", test_next_attempt, NULL, NULL);
	suite_add(&s, "sooner where somebody stopped it", test_stopped_sooner, NULL, NULL);
	suite_add(&s, "not sooner where a terminal did", test_stopped_by_terminal, NULL, NULL);
	suite_add(&s, "packets that are not acknowledged", test_network, NULL, NULL);
	suite_add(&s, "another collective", test_desync, NULL, NULL);
	suite_add(&s, "who has sent since is not behind", test_not_behind, NULL, NULL);
	suite_add(&s, "the last one of the step before is behind", test_last_of_the_step_before,
		NULL, NULL);
	suite_add(&s, "a node that is cut off", test_cut_off, NULL, NULL);
	suite_add(&s, "nobody is seen", test_unseen, NULL, NULL);
	suite_add(&s, "looks end, and begin again", test_looks_end, NULL, NULL);
	suite_add(&s, "all sleep", test_all_sleep, NULL, NULL);
	suite_add(&s, "a line is read as it was written", test_line, NULL, NULL);
	suite_add(&s, "a line that nobody writes", test_hostile_line, NULL, NULL);
	suite_add(&s, "where the kernel waits", test_wchan, NULL, NULL);
	suite_add(&s, "its life", test_life, NULL, NULL);
	return suite_run(&s);
}
