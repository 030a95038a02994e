/* test_back_ends.c - the thread that writes, when workers end and lines are left. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/daemon/output/back_fixture.h"
#include "tests/unit/daemon/output/scratch_dir.h"

static void test_mid_line(void **state)
{
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	fixture_put(&s, 0, 1, "out");
	fixture_put(&s, 1, 2, "err");
	fixture_end_workers(&s);
	fixture_drain(&s);
	fixture_close(&s, false);
	assert_true(s.mid_line);
	assert_file("out", "out");
	assert_file("err", "err");
	back_fixture_done(&s);
}

/* A helper of the first worker's keeps its stdout. */
static void test_kept(void **state)
{
	struct fixture s;
	char lines[16] = "";

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	fixture_put(&s, 0, 1, "a\nb\n");
	fixture_drain(&s);
	(void)snprintf(lines, sizeof lines, "%s", output_words(s.output, 0)->words.lines);
	fixture_close(&s, false);
	assert_string_equal(lines, "a\nb");
	assert_file("out", "a\nb\n");
	back_fixture_done(&s);
}

struct hearing {
	struct fixture *fixture;
	struct text got;
};

static void hear(void *arg)
{
	static char buf[65536];
	struct hearing *h = arg;
	ssize_t n;

	while ((n = read(h->fixture->reader, buf, sizeof buf)) > 0)
		text_add_bytes(&h->got, buf, (size_t)n);
}

/* The console is read when two attempts are over. */
static void test_two_attempts(void **state)
{
	struct hearing h = { 0 };
	uv_thread_t reader;
	unsigned count[2] = { 0 };
	struct fixture s;
	char line[128];

	(void)state;
	back_fixture_begin(&s, true);
	h.fixture = &s;
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.log_all = true;
	s.plan.output.max_size_bytes = 100000;
	s.plan.output.keep = 100;
	back_fixture_open(&s);
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		fixture_prepare(&s, attempt);
		fixture_start(&s);
		fixture_put_many(&s, attempt ? 'b' : 'a');
		fixture_end_workers(&s);
		fixture_drain(&s);
	}
	must(uv_thread_create(&reader, hear, &h) == 0);
	fixture_close(&s, false);
	must(uv_thread_join(&reader) == 0); /* stdout was the last one to write to it */
	assert_int_equal(h.got.len, 2 * 10000 * 102);
	for (size_t i = 0; i < 2 * 10000; i++) { /* they have turns, as any streams have */
		const char *at = h.got.at + i * 102;

		assert_true(*at == 'a' || *at == 'b');
		(void)snprintf(line, sizeof line, "%c%0100u\n", *at, count[*at - 'a']++);
		assert_memory_equal(at, line, 102);
	}
	assert_string_equal(text_string(&s.said), "");
	text_done(&h.got);
	back_fixture_done(&s);
}

static const struct hurry_row {
	const char *says;
	bool file, drained;
} hurries[] = {
	{ "in a hurry, a reader that stands still", true, true },
	{ "in a hurry, while workers' pipes are drained", true, false },
	{ "in a hurry, workers wait for the reader", false, false },
};

static void test_hurry(void **state)
{
	const struct hurry_row *row = *state;
	struct fixture s;
	char line[128];

	back_fixture_begin(&s, true);
	s.plan.output.tree = row->file;
	s.plan.output.log_dir = "logs";
	s.plan.output.log_all = true;
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	must(row->file || fcntl(s.ends[0][1], F_SETFL, O_NONBLOCK) == 0);
	if (row->file)
		fixture_put_many(&s, 'a');
	else
		while (write(s.ends[0][1], "abc\n", 4) > 0)
			;
	if (row->drained) {
		fixture_end_workers(&s);
		fixture_drain(&s);
	} else {
		output_drain(s.output);
	}
	fixture_close(&s, true);
	if (row->file) {
		char path[512];
		struct text is;

		fixture_find_file("logs", "attempt_0/0/stdout.log", path, sizeof path);
		is = scratch_read(path);
		assert_int_equal(is.len, 10000 * 102);
		(void)snprintf(line, sizeof line, "a%0100d\n", 9999);
		assert_memory_equal(is.at + 9999 * 102, line, 102);
		text_done(&is);
	}
	back_fixture_done(&s);
}

TESTS(back_ends)
{
	static struct suite s;
	int rc = scratch_make() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ? 2 : 0;

	SUITE_ROWS(&s, test_hurry, hurries);
	suite_add(&s, "a last line without an end", test_mid_line, NULL, NULL);
	suite_add(&s, "somebody keeps a pipe open", test_kept, NULL, NULL);
	suite_add(&s, "an attempt while the last one's lines wait", test_two_attempts, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
