/* test_back.c - the thread that writes: what it is ordered to, in which order, and what it tells.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/output/back.h"
#include "daemon/report/error_file.h"
#include "tests/unit/daemon/output/back_fixture.h"
#include "tests/unit/daemon/output/scratch_dir.h"

static const struct course_row {
	const char *says;
	bool tree, log_all;
	const char *redirects, *tee;
	const char *out, *err; /* on the consoles */
	const char *logs[4];   /* stdout.log and stderr.log of either worker; NULL: there is none */
	const char *log;       /* of the first worker, as the user is told; NULL: none */
} courses[] = {
	{ "lines go through", false, false, "0", "0", "a\nb", "c\n", { 0 }, NULL },
	{ "lines go through and into files", true, true, "0", "0", "a\nb", "c\n",
		{ "a\nb", "c\n", "", "" }, "attempt_0/0" },
	{ "lines go to both", true, false, "0", "3", "[default0]:a\n[default0]:b", "[default0]:c\n",
		{ "a\nb", "c\n", "", "" }, "attempt_0/0" },
	{ "workers have the files", true, false, "3", "0", "", "", { "a\nb", "c\n", "", "" },
		"attempt_0/0" },
	{ "one stream has a file", true, false, "2", "0", "a\nb", "", { NULL, "c\n", NULL, "" },
		"attempt_0/0/stderr.log" },
	{ "one worker has files", true, false, "1:3", "0", "a\nb", "c\n", { NULL, NULL, "", "" },
		NULL },
};

static void test_course(void **state)
{
	static const char *const names[] = { "attempt_0/0/stdout.log", "attempt_0/0/stderr.log",
		"attempt_0/1/stdout.log", "attempt_0/1/stderr.log" };
	const struct course_row *row = *state;
	size_t descriptors = count_descriptors();
	char dir[512] = "", log[512] = "", lines[64] = "", other[64] = "none";
	struct fixture s;

	back_fixture_begin(&s, false);
	s.plan.output.tree = row->tree;
	s.plan.output.log_dir = row->tree ? "logs" : NULL;
	s.plan.output.log_all = row->log_all;
	s.plan.output.redirects = row->redirects;
	s.plan.output.tee = row->tee;
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	if (output_log_dir(s.output))
		(void)snprintf(dir, sizeof dir, "%s", output_log_dir(s.output));
	fixture_start(&s);
	fixture_put(&s, 0, 1, "a\nb");
	fixture_put(&s, 0, 2, "c\n");
	fixture_end_workers(&s);
	fixture_drain(&s);
	if (output_words(s.output, 0)->words.log)
		(void)snprintf(log, sizeof log, "%s", output_words(s.output, 0)->words.log);
	if (output_words(s.output, 0)->words.lines)
		(void)snprintf(lines, sizeof lines, "%s", output_words(s.output, 0)->words.lines);
	if (output_words(s.output, 1)->words.lines)
		(void)snprintf(other, sizeof other, "some");
	fixture_close(&s, false);

	assert_int_equal(s.prepared, 1);
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.drained, 1);
	assert_file("out", row->out);
	assert_file("err", row->err);
	assert_true(strcmp(lines, "a\nb\nc") == 0 || strcmp(lines, "a\nc\nb") == 0 ||
		strcmp(lines, "c\na\nb") == 0);
	assert_string_equal(other, "none");
	assert_int_equal(*dir != '\0', row->tree);
	if (row->log)
		assert_contains(log, row->log);
	else
		assert_string_equal(log, "");
	for (int i = 0; i < 4 && row->tree; i++)
		if (row->logs[i])
			fixture_assert_log("logs", names[i], row->logs[i]);
	back_fixture_done(&s);
	assert_int_equal(count_descriptors(), descriptors);
}

static void begin_files(struct fixture *s)
{
	back_fixture_begin(s, false);
	s->plan.output.tree = true;
	s->plan.output.log_dir = "logs";
	s->plan.output.log_all = true;
	back_fixture_open(s);
}

static void test_tmpdir(void **state)
{
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.tee = "1";
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	fixture_put(&s, 1, 1, "a\n");
	fixture_end_workers(&s);
	fixture_drain(&s);
	fixture_close(&s, false);
	assert_contains(text_string(&s.said), "workers' log files: ");
	assert_contains(text_string(&s.said), "/launchd_logs_");
	fixture_assert_log("launchd_logs_*", "attempt_0/1/stdout.log", "a\n");
	back_fixture_done(&s);
}

/* Without files: some attempts are not started; of others all has ended before anybody asks. */
static void test_attempts(void **state)
{
	enum { ATTEMPTS = 40 };
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		char line[32];

		fixture_prepare(&s, attempt);
		if (attempt % 4 == 1)
			continue;
		fixture_start(&s);
		(void)snprintf(line, sizeof line, "attempt %u\n", attempt);
		fixture_put(&s, 1, 1, line);
		fixture_end_workers(&s);
		if (attempt % 4 == 2)
			(void)usleep(2000);
		fixture_drain(&s);
		line[strlen(line) - 1] = '\0';
		assert_string_equal(output_words(s.output, 1)->words.lines, line);
		assert_null(output_words(s.output, 0)->words.lines);
	}
	fixture_prepare(&s, ATTEMPTS);
	fixture_close(&s, false);
	assert_int_equal(s.prepared, ATTEMPTS + 1);
	back_fixture_done(&s);
}

/* The job goes on before the thread has prepared an attempt, or has told what the one before it
 * wrote: neither is told then. */
static void test_overtaken(void **state)
{
	enum { ROUNDS = 100 };
	char dir[512];
	struct fixture s;

	(void)state;
	begin_files(&s);
	for (unsigned i = 0; i < ROUNDS; i++) {
		output_prepare(s.output, &s.plan, 2 * i);
		if (i % 3 == 0)
			(void)usleep(i * 10);
		fixture_prepare(&s, 2 * i + 1);
		must(s.prepared == i + 1);
		(void)snprintf(dir, sizeof dir, "/attempt_%u", 2 * i + 1);
		must(strstr(output_log_dir(s.output), dir) != NULL);
		fixture_start(&s);
		fixture_put(&s, 1, 1, "a\n");
		fixture_end_workers(&s);
		output_drain(s.output);
		if (i % 3 == 1)
			(void)usleep(i * 10);
	}
	fixture_prepare(&s, 2 * ROUNDS);
	(void)uv_run(&s.loop, UV_RUN_NOWAIT);
	fixture_close(&s, false);
	assert_int_equal(s.prepared, ROUNDS + 1);
	assert_int_equal(s.drained, 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		(void)snprintf(dir, sizeof dir, "attempt_%u/1/stdout.log", 2 * i + 1);
		fixture_assert_log("logs", dir, "a\n");
	}
	back_fixture_done(&s);
}

static void test_not_prepared(void **state)
{
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	fixture_redirect(2, "file");
	s.plan.output.tree = true;
	s.plan.output.tee = "1";
	s.plan.output.log_dir = "file/logs";
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	must(output_log_dir(s.output) == NULL);
	fixture_close(&s, false);
	assert_int_equal(s.rc, -ENOTDIR);
	assert_contains(s.why, "/file/logs: Not a directory");
	back_fixture_done(&s);
}

static void test_words(void **state)
{
	struct text all = { 0 };
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	for (int i = 0; i < 200; i++) {
		char line[32];
		int n = snprintf(line, sizeof line, "word %d\n", i);

		output_say(s.output, line, (size_t)n);
		output_events(s.output, line, (size_t)n);
		text_add_bytes(&all, line, (size_t)n);
	}
	fixture_close(&s, false);
	assert_file("err", text_string(&all));
	assert_file("out", "");
	assert_string_equal(text_string(&s.told), text_string(&all));
	assert_false(s.mid_line);
	text_done(&all);
	back_fixture_done(&s);
}

/* Not every worker could be started, or none. */
static void test_not_started(void **state)
{
	struct fixture s;

	(void)state;
	begin_files(&s);
	fixture_prepare(&s, 0);
	output_started(s.output);
	fixture_drain(&s);
	must(output_words(s.output, 1)->words.lines == NULL);
	fixture_prepare(&s, 1);
	fixture_close(&s, false);
	assert_int_equal(s.drained, 1);
	fixture_assert_log("logs", "attempt_1/1/stderr.log", "");
	back_fixture_done(&s);
}

static void test_error_file(void **state)
{
	struct fixture s;
	char path[512], is[64] = "", none[8] = "";

	(void)state;
	back_fixture_begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.redirects = "3";
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	(void)snprintf(path, sizeof path, "%s/1/error.json", output_log_dir(s.output));
	fixture_redirect(s.ends[0][1], path);
	fixture_put(&s, 0, 1, "{}");
	fixture_end_workers(&s);
	fixture_drain(&s);
	if (output_words(s.output, 1)->error->at)
		(void)snprintf(is, sizeof is, "%s", output_words(s.output, 1)->error->at);
	if (!output_words(s.output, 0)->error->at)
		memcpy(none, "none", 5);
	fixture_close(&s, false);
	assert_string_equal(is, "{}");
	assert_string_equal(none, "none");
	back_fixture_done(&s);
}

static void test_reopen(void **state)
{
	struct fixture s;
	char from[512], to[512];

	(void)state;
	back_fixture_begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.redirects = "2";
	s.plan.output.tee = "1";
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	(void)snprintf(from, sizeof from, "%s/0/stdout.log", output_log_dir(s.output));
	(void)snprintf(to, sizeof to, "%s/0/moved.log", output_log_dir(s.output));
	must(rename(from, to) == 0);
	output_reopen(s.output);
	while (access(from, F_OK) < 0)
		(void)usleep(1000);
	fixture_put(&s, 0, 1, "a\n");
	fixture_end_workers(&s);
	fixture_drain(&s);
	output_reopen(s.output);
	fixture_close(&s, false);
	assert_file(from, "a\n");
	assert_file(to, "");
	assert_contains(text_string(&s.said), "2 log files are written by the workers themselves");
	back_fixture_done(&s);
}

/* stdout and stderr are one: lines of both are whole. */
static void test_one_console(void **state)
{
	struct text is;
	struct fixture s;
	unsigned lines = 0;

	(void)state;
	back_fixture_begin(&s, false);
	must(dup2(1, 2) == 2);
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	for (int i = 0; i < 2000; i++) {
		fixture_put(&s, 0, 1, "one");
		fixture_put(&s, 1, 2, "tw");
		fixture_put(&s, 0, 1, "one\n");
		fixture_put(&s, 1, 2, "two\n");
	}
	fixture_end_workers(&s);
	fixture_drain(&s);
	fixture_close(&s, false);
	assert_file("err", "");
	is = scratch_read("out");
	for (const char *at = is.at, *end; at < is.at + is.len; at = end + 1, lines++) {
		end = strchr(at, '\n');
		assert_non_null(end);
		assert_true(strncmp(at, "oneone\n", 7) == 0 || strncmp(at, "twtwo\n", 6) == 0);
	}
	assert_int_equal(lines, 4000);
	text_done(&is);
	back_fixture_done(&s);
}

/* Of fewer libuv leaks some itself. */
static unsigned least_for_loop(void)
{
	uv_loop_t loop;

	for (unsigned n = 0;; n++) {
		int rc;

		limit_descriptors(n);
		rc = uv_loop_init(&loop);
		free_descriptors();
		if (rc < 0)
			continue;
		assert_int_equal(uv_loop_close(&loop), 0);
		return n;
	}
}

static size_t count_threads(void)
{
	size_t count;
	glob_t found;

	must(glob("/proc/self/task/*", 0, NULL, &found) == 0);
	count = found.gl_pathc;
	globfree(&found);
	return count;
}

/* Where nothing is printed and nothing said there is no thread; it comes with the first byte. */
static void test_silent(void **state)
{
	size_t before = count_threads(), threads[4]; /* a sanitizer may have one */
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		fixture_prepare(&s, attempt);
		fixture_start(&s);
		fixture_end_workers(&s);
		fixture_drain(&s);
		must(output_words(s.output, 0)->words.lines == NULL);
		threads[attempt] = count_threads();
	}
	fixture_prepare(&s, 2);
	fixture_start(&s);
	(void)uv_run(&s.loop, UV_RUN_NOWAIT);
	threads[2] = count_threads();
	fixture_put(&s, 0, 1, "a\n");
	fixture_end_workers(&s);
	fixture_drain(&s);
	threads[3] = count_threads();
	fixture_close(&s, false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(threads[i], before);
	assert_int_equal(threads[3], before + 1);
	assert_file("out", "a\n");
	back_fixture_done(&s);
}

/* Nor is there one where something else has a silent worker's pipes, until all has ended. */
static void test_held(void **state)
{
	size_t before = count_threads();
	struct fixture s;
	int other;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	fixture_prepare(&s, 0);
	fixture_start(&s);
	must((other = fcntl(s.ends[1][2], F_DUPFD_CLOEXEC, 3)) >= 0);
	fixture_end_workers(&s);
	(void)uv_run(&s.loop, UV_RUN_NOWAIT);
	must(count_threads() == before);
	fixture_drain(&s);
	must(count_threads() == before + 1 && close(other) == 0);
	fixture_close(&s, false);
	assert_int_equal(s.drained, 1);
	back_fixture_done(&s);
}

/* The thread starts whole, or not at all. */
static void test_no_descriptors(void **state)
{
	unsigned least = least_for_loop(), refused = 0;
	size_t before = count_descriptors();

	(void)state;
	for (unsigned n = least; n < least + 16; n++) {
		struct fixture s;

		back_fixture_begin(&s, true);
		s.plan.output.merge = true;
		back_fixture_open(&s);
		limit_descriptors(n);
		fixture_prepare(&s, 0);
		free_descriptors();
		fixture_close(&s, false);
		if (s.rc < 0) {
			assert_int_equal(s.rc, -EMFILE);
			assert_contains(s.why, "can't start the output thread");
			refused++;
		}
		back_fixture_done(&s);
	}
	assert_in_range(refused, 1, 15);
	assert_int_equal(count_descriptors(), before);
}

static off_t size_of_err(void)
{
	struct stat st;

	must(fstat(2, &st) == 0);
	return st.st_size;
}

static struct output *begin_unstarted(struct fixture *s)
{
	static const struct output_host host = { .hostname = "here", .say = fixture_say };
	struct failure why = { 0 };
	struct output *o = NULL;

	back_fixture_begin(s, false);
	must(output_open(&s->plan, &host, &o, &why) == 0);
	return o;
}

static void close_unstarted(struct fixture *s, struct output *o)
{
	s->closed = output_close(o, &(struct closing){ .hurry = false });
	fixture_restore(s);
	(void)alarm(0);
	assert_true(s->closed);
}

/* Whoever forks before it is started finds no lock taken. */
static void test_not_before_start(void **state)
{
	size_t threads = count_threads();
	struct fixture s;
	struct output *o;
	off_t before;

	(void)state;
	o = begin_unstarted(&s);
	output_say(o, "early\n", 6);
	must(count_threads() == threads);
	before = size_of_err();
	output_start(o);
	while (size_of_err() == 0) /* or the alarm comes */
		(void)usleep(1000);
	output_say(o, "late\n", 5);
	close_unstarted(&s, o);
	assert_int_equal(before, 0);
	assert_file("err", "early\nlate\n");
	back_fixture_done(&s);
}

/* It need not have been. */
static void test_never_started(void **state)
{
	struct fixture s;
	struct output *o;

	(void)state;
	o = begin_unstarted(&s);
	output_say(o, "early\n", 6);
	close_unstarted(&s, o);
	assert_file("err", "early\n");
	back_fixture_done(&s);
}

/* What launchd says at the end needs no descriptor that it hasn't got. */
static void test_said_without_descriptors(void **state)
{
	struct fixture s;

	(void)state;
	back_fixture_begin(&s, false);
	back_fixture_open(&s);
	limit_descriptors(0);
	output_say(s.output, "why\n", 4);
	fixture_close(&s, false);
	free_descriptors();
	assert_file("err", "why\n");
	back_fixture_done(&s);
}

static void test_back_life(void **state)
{
	(void)state;
	assert_life(&back_life,
		(const char *const[]){ "running: ending", "ending: hurried pressed closed",
			"hurried: closed", "pressed: closed", "closed:", NULL });
}

TESTS(back)
{
	static struct suite s;
	uv_loop_t first; /* libuv then has the descriptors that it keeps */
	int rc = uv_loop_init(&first) < 0 || uv_loop_close(&first) < 0 || scratch_make() < 0 ||
			signal(SIGPIPE, SIG_IGN) == SIG_ERR ?
		2 :
		0;

	suite_add(&s, "the output thread's end", test_back_life, NULL, NULL);
	SUITE_ROWS(&s, test_course, courses);
	suite_add(&s, "no thread before there is anything to write", test_silent, NULL, NULL);
	suite_add(&s, "a pipe that another process has", test_held, NULL, NULL);
	suite_add(&s, "files in a directory of their own", test_tmpdir, NULL, NULL);
	suite_add(&s, "attempts without files", test_attempts, NULL, NULL);
	suite_add(&s, "an attempt that is overtaken by the next one", test_overtaken, NULL, NULL);
	suite_add(&s, "files that can't be made", test_not_prepared, NULL, NULL);
	suite_add(&s, "words and events, in order", test_words, NULL, NULL);
	suite_add(&s, "no worker could be started", test_not_started, NULL, NULL);
	suite_add(&s, "a worker's error file", test_error_file, NULL, NULL);
	suite_add(&s, "files are opened again", test_reopen, NULL, NULL);
	suite_add(&s, "stdout and stderr are one", test_one_console, NULL, NULL);
	suite_add(&s, "nothing is done before the start", test_not_before_start, NULL, NULL);
	suite_add(&s, "closed without a start", test_never_started, NULL, NULL);
	suite_add(&s, "no descriptors at the end", test_said_without_descriptors, NULL, NULL);
	suite_add(&s, "no descriptors for the thread", test_no_descriptors, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
