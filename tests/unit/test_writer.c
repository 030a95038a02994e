/* test_writer.c - the thread that writes: what it is ordered to, in which order, and what it tells.
 *
 * Its consoles are this process's own stdout and stderr, which are put back before anything is
 * asserted. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/output/output.h"
#include "daemon/report/record.h"
#include "tests/unit/yard.h"

enum { LIMIT_S = 60, WORKERS = 2 };

struct scene {
	struct plan plan;
	const char *env[2];
	char tmpdir[64];
	struct output *output;
	uv_loop_t loop;
	unsigned prepared, drained, status_over;
	int rc;
	char why[512];
	uv_mutex_t lock;
	struct text said, told; /* by the thread */
	int ends[WORKERS][3];   /* the workers' */
	int own[3];             /* this process's stdout and stderr */
	int reader;             /* of stdout, where that is a pipe */
	bool closed, mid_line;
};

static void say(void *owner, bool warning, const char *text)
{
	struct scene *s = owner;

	uv_mutex_lock(&s->lock);
	text_printf(&s->said, "%s%s\n", warning ? "warning: " : "", text);
	uv_mutex_unlock(&s->lock);
}

static void write_events(void *owner, const char *lines, size_t len)
{
	struct scene *s = owner;

	uv_mutex_lock(&s->lock);
	text_add_bytes(&s->told, lines, len);
	uv_mutex_unlock(&s->lock);
}

static void on_prepared(void *owner, int rc, const char *text)
{
	struct scene *s = owner;

	s->prepared++;
	s->rc = rc;
	(void)snprintf(s->why, sizeof s->why, "%s", text);
}

static void on_drained(void *owner)
{
	((struct scene *)owner)->drained++;
}

static void on_status_over(void *owner)
{
	((struct scene *)owner)->status_over++;
}

static void must(bool holds)
{
	if (!holds)
		abort(); /* of the stage, not of what is tested */
}

static void redirect(int fd, const char *path)
{
	autoclose to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	must(to >= 0 && dup2(to, fd) == fd);
}

/* stdout is a file "out" or a pipe, stderr a file "err". */
static void begin(struct scene *s, bool piped)
{
	int ends[2];

	yard_clear();
	(void)alarm(LIMIT_S); /* it hangs */
	*s = (struct scene){ .reader = -1 };
	must(getcwd(s->tmpdir + strlen("TMPDIR="), sizeof s->tmpdir - strlen("TMPDIR=")));
	memcpy(s->tmpdir, "TMPDIR=", strlen("TMPDIR="));
	s->env[0] = s->tmpdir;
	s->plan = (struct plan){ .nproc = WORKERS,
		.nnodes = 1,
		.world_size = WORKERS,
		.start_count = WORKERS,
		.run_id = "run",
		.role = "default",
		.env = s->env };
	s->plan.output = (struct output_plan){
		.redirects = "0", .tee = "0", .keep = 5, .tail_lines = 20, .events_fd = -1
	};
	for (int i = 0; i < WORKERS; i++)
		s->ends[i][1] = s->ends[i][2] = -1;
	must(uv_loop_init(&s->loop) == 0 && uv_mutex_init(&s->lock) == 0);
	must(fflush(stdout) == 0 && fflush(stderr) == 0);
	for (int fd = 1; fd <= 2; fd++)
		must((s->own[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10)) >= 0);
	redirect(2, "err");
	if (!piped) {
		redirect(1, "out");
		return;
	}
	must(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 1) == 1 && close(ends[1]) == 0);
	s->reader = ends[0];
}

static void on_lines(void *owner)
{
	(void)owner; /* nobody merges here */
}

static void open_output(struct scene *s)
{
	static const struct output_events events = { on_prepared, on_drained, on_status_over,
		on_lines };
	const struct output_host host = {
		.hostname = "here", .say = say, .write_events = write_events, .owner = s
	};
	struct failure why = { 0 };

	must(output_open(&s->plan, &host, &s->output, &why) == 0);
	must(output_attach(s->output, &s->loop, &events, s, &why) == 0);
}

static void wait_for(struct scene *s, const unsigned *what, unsigned count)
{
	while (*what < count)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
}

static void prepare(struct scene *s, unsigned attempt)
{
	output_prepare(s->output, &s->plan, attempt);
	wait_for(s, &s->prepared, s->prepared + 1);
}

/* What pool and starter do for two workers. */
static void start(struct scene *s)
{
	for (unsigned i = 0; i < WORKERS; i++)
		for (int fd = 1; fd <= 2; fd++) {
			struct stdio how = output_stdio(s->output, i, fd);
			int ends[2];

			if (how.how == STDIO_OPEN)
				must((s->ends[i][fd] = fcntl(how.fd, F_DUPFD_CLOEXEC, 3)) >= 0);
			if (how.how != STDIO_PIPE)
				continue;
			must(pipe2(ends, O_CLOEXEC) == 0 &&
				fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
			s->ends[i][fd] = ends[1];
			output_take(s->output, i, fd, ends[0]);
		}
	output_started(s->output);
}

static void put(const struct scene *s, unsigned i, int fd, const char *text)
{
	must(fd_write_all(s->ends[i][fd], text, strlen(text)) == 0);
}

static void end_workers(struct scene *s)
{
	for (unsigned i = 0; i < WORKERS; i++)
		for (int fd = 1; fd <= 2; fd++)
			fd_closep(&s->ends[i][fd]);
}

static void drain(struct scene *s)
{
	output_drain(s->output);
	wait_for(s, &s->drained, s->drained + 1);
}

/* Puts this process's own back. */
static void restore(struct scene *s)
{
	for (int fd = 1; fd <= 2; fd++)
		must(dup2(s->own[fd], fd) == fd && close(s->own[fd]) == 0);
}

static void close_output(struct scene *s, bool hurry)
{
	output_detach(s->output);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	s->closed = output_close(s->output, hurry, &s->mid_line);
	end_workers(s);
	restore(s);
	(void)alarm(0);
}

static void done(struct scene *s)
{
	assert_true(s->closed);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	uv_mutex_destroy(&s->lock);
	fd_closep(&s->reader);
	text_done(&s->said);
	text_done(&s->told);
}

/* A file of the only run below that directory. */
static void find_file(const char *dir, const char *name, char *ret, size_t size)
{
	char pattern[256];
	glob_t found;

	(void)snprintf(pattern, sizeof pattern, "%s/run_*/%s", dir, name);
	if (glob(pattern, 0, NULL, &found) != 0)
		fail_msg("%s: there is none", pattern);
	assert_int_equal(found.gl_pathc, 1);
	(void)snprintf(ret, size, "%s", found.gl_pathv[0]);
	globfree(&found);
}

static void assert_log(const char *dir, const char *name, const char *expected)
{
	char path[512];

	find_file(dir, name, path, sizeof path);
	assert_file(path, expected);
}

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
	struct scene s;

	begin(&s, false);
	s.plan.output.tree = row->tree;
	s.plan.output.log_dir = row->tree ? "logs" : NULL;
	s.plan.output.log_all = row->log_all;
	s.plan.output.redirects = row->redirects;
	s.plan.output.tee = row->tee;
	open_output(&s);
	prepare(&s, 0);
	if (output_log_dir(s.output))
		(void)snprintf(dir, sizeof dir, "%s", output_log_dir(s.output));
	start(&s);
	put(&s, 0, 1, "a\nb");
	put(&s, 0, 2, "c\n");
	end_workers(&s);
	drain(&s);
	if (output_words(s.output, 0)->words.log)
		(void)snprintf(log, sizeof log, "%s", output_words(s.output, 0)->words.log);
	if (output_words(s.output, 0)->words.lines)
		(void)snprintf(lines, sizeof lines, "%s", output_words(s.output, 0)->words.lines);
	if (output_words(s.output, 1)->words.lines)
		(void)snprintf(other, sizeof other, "some");
	close_output(&s, false);

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
			assert_log("logs", names[i], row->logs[i]);
	done(&s);
	assert_int_equal(count_descriptors(), descriptors);
}

static void test_tmpdir(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.tee = "1";
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	put(&s, 1, 1, "a\n");
	end_workers(&s);
	drain(&s);
	close_output(&s, false);
	assert_contains(text_string(&s.said), "log files of the workers: ");
	assert_contains(text_string(&s.said), "/launchd_logs_");
	assert_log("launchd_logs_*", "attempt_0/1/stdout.log", "a\n");
	done(&s);
}

/* Without files: some attempts are not started; of others all has ended before anybody asks. */
static void test_attempts(void **state)
{
	enum { ATTEMPTS = 40 };
	struct scene s;

	(void)state;
	begin(&s, false);
	open_output(&s);
	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		char line[32];

		prepare(&s, attempt);
		if (attempt % 4 == 1)
			continue;
		start(&s);
		(void)snprintf(line, sizeof line, "attempt %u\n", attempt);
		put(&s, 1, 1, line);
		end_workers(&s);
		if (attempt % 4 == 2)
			(void)usleep(2000);
		drain(&s);
		line[strlen(line) - 1] = '\0';
		assert_string_equal(output_words(s.output, 1)->words.lines, line);
		assert_null(output_words(s.output, 0)->words.lines);
	}
	prepare(&s, ATTEMPTS);
	close_output(&s, false);
	assert_int_equal(s.prepared, ATTEMPTS + 1);
	done(&s);
}

static void test_not_prepared(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, false);
	redirect(2, "file");
	s.plan.output.tree = true;
	s.plan.output.tee = "1";
	s.plan.output.log_dir = "file/logs";
	open_output(&s);
	prepare(&s, 0);
	must(output_log_dir(s.output) == NULL);
	close_output(&s, false);
	assert_int_equal(s.rc, -ENOTDIR);
	assert_contains(s.why, "file/logs: can't be made: Not a directory");
	done(&s);
}

static void test_words(void **state)
{
	struct text all = { 0 };
	struct scene s;

	(void)state;
	begin(&s, false);
	open_output(&s);
	for (int i = 0; i < 200; i++) {
		char line[32];
		int n = snprintf(line, sizeof line, "word %d\n", i);

		output_say(s.output, line, (size_t)n);
		output_events(s.output, line, (size_t)n);
		text_add_bytes(&all, line, (size_t)n);
	}
	close_output(&s, false);
	assert_file("err", text_string(&all));
	assert_file("out", "");
	assert_string_equal(text_string(&s.told), text_string(&all));
	assert_false(s.mid_line);
	text_done(&all);
	done(&s);
}

static void test_mid_line(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, false);
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	put(&s, 0, 1, "out");
	put(&s, 1, 2, "err");
	end_workers(&s);
	drain(&s);
	close_output(&s, false);
	assert_true(s.mid_line);
	assert_file("out", "out");
	assert_file("err", "err");
	done(&s);
}

/* A helper of the first worker's keeps its stdout. */
static void test_kept(void **state)
{
	struct scene s;
	char lines[16] = "";

	(void)state;
	begin(&s, false);
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	put(&s, 0, 1, "a\nb\n");
	drain(&s);
	(void)snprintf(lines, sizeof lines, "%s", output_words(s.output, 0)->words.lines);
	close_output(&s, false);
	assert_string_equal(lines, "a\nb");
	assert_file("out", "a\nb\n");
	done(&s);
}

/* Not every worker could be started, or none. */
static void test_not_started(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.log_all = true;
	open_output(&s);
	prepare(&s, 0);
	output_started(s.output);
	drain(&s);
	must(output_words(s.output, 1)->words.lines == NULL);
	prepare(&s, 1);
	close_output(&s, false);
	assert_int_equal(s.drained, 1);
	assert_log("logs", "attempt_1/1/stderr.log", "");
	done(&s);
}

static void test_error_file(void **state)
{
	struct scene s;
	char path[512], is[64] = "", none[8] = "";

	(void)state;
	begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.redirects = "3";
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	(void)snprintf(path, sizeof path, "%s/1/error.json", output_log_dir(s.output));
	redirect(s.ends[0][1], path);
	put(&s, 0, 1, "{}");
	end_workers(&s);
	drain(&s);
	if (output_words(s.output, 1)->error->at)
		(void)snprintf(is, sizeof is, "%s", output_words(s.output, 1)->error->at);
	if (!output_words(s.output, 0)->error->at)
		memcpy(none, "none", 5);
	close_output(&s, false);
	assert_string_equal(is, "{}");
	assert_string_equal(none, "none");
	done(&s);
}

static void put_many(const struct scene *s, char letter)
{
	char line[128];

	for (int i = 0; i < 10000; i++) {
		(void)snprintf(line, sizeof line, "%c%0100d\n", letter, i);
		put(s, 0, 1, line);
	}
}

struct hearing {
	struct scene *scene;
	struct text got;
};

static void hear(void *arg)
{
	static char buf[65536];
	struct hearing *h = arg;
	ssize_t n;

	while ((n = read(h->scene->reader, buf, sizeof buf)) > 0)
		text_add_bytes(&h->got, buf, (size_t)n);
}

/* The console is read when two attempts are over. */
static void test_two_attempts(void **state)
{
	struct hearing h = { 0 };
	uv_thread_t reader;
	unsigned count[2] = { 0 };
	struct scene s;
	char line[128];

	(void)state;
	begin(&s, true);
	h.scene = &s;
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.log_all = true;
	s.plan.output.max_size_bytes = 100000;
	s.plan.output.keep = 100;
	open_output(&s);
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		prepare(&s, attempt);
		start(&s);
		put_many(&s, attempt ? 'b' : 'a');
		end_workers(&s);
		drain(&s);
	}
	must(uv_thread_create(&reader, hear, &h) == 0);
	close_output(&s, false);
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
	done(&s);
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
	struct scene s;
	char line[128];

	begin(&s, true);
	s.plan.output.tree = row->file;
	s.plan.output.log_dir = "logs";
	s.plan.output.log_all = true;
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	must(row->file || fcntl(s.ends[0][1], F_SETFL, O_NONBLOCK) == 0);
	if (row->file)
		put_many(&s, 'a');
	else
		while (write(s.ends[0][1], "abc\n", 4) > 0)
			;
	if (row->drained) {
		end_workers(&s);
		drain(&s);
	} else {
		output_drain(s.output);
	}
	close_output(&s, true);
	if (row->file) {
		char path[512];
		struct text is;

		find_file("logs", "attempt_0/0/stdout.log", path, sizeof path);
		is = yard_read(path);
		assert_int_equal(is.len, 10000 * 102);
		(void)snprintf(line, sizeof line, "a%0100d\n", 9999);
		assert_memory_equal(is.at + 9999 * 102, line, 102);
		text_done(&is);
	}
	done(&s);
}

static void test_reopen(void **state)
{
	struct scene s;
	char from[512], to[512];

	(void)state;
	begin(&s, false);
	s.plan.output.tree = true;
	s.plan.output.log_dir = "logs";
	s.plan.output.redirects = "2";
	s.plan.output.tee = "1";
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	(void)snprintf(from, sizeof from, "%s/0/stdout.log", output_log_dir(s.output));
	(void)snprintf(to, sizeof to, "%s/0/moved.log", output_log_dir(s.output));
	must(rename(from, to) == 0);
	output_reopen(s.output);
	while (access(from, F_OK) < 0)
		(void)usleep(1000);
	put(&s, 0, 1, "a\n");
	end_workers(&s);
	drain(&s);
	output_reopen(s.output);
	close_output(&s, false);
	assert_file(from, "a\n");
	assert_file(to, "");
	assert_contains(text_string(&s.said), "2 log files are the workers' own");
	done(&s);
}

/* stdout and stderr are one: lines of both are whole. */
static void test_one_console(void **state)
{
	struct text is;
	struct scene s;
	unsigned lines = 0;

	(void)state;
	begin(&s, false);
	must(dup2(1, 2) == 2);
	open_output(&s);
	prepare(&s, 0);
	start(&s);
	for (int i = 0; i < 2000; i++) {
		put(&s, 0, 1, "one");
		put(&s, 1, 2, "tw");
		put(&s, 0, 1, "one\n");
		put(&s, 1, 2, "two\n");
	}
	end_workers(&s);
	drain(&s);
	close_output(&s, false);
	assert_file("err", "");
	is = yard_read("out");
	for (const char *at = is.at, *end; at < is.at + is.len; at = end + 1, lines++) {
		end = strchr(at, '\n');
		assert_non_null(end);
		assert_true(strncmp(at, "oneone\n", 7) == 0 || strncmp(at, "twtwo\n", 6) == 0);
	}
	assert_int_equal(lines, 4000);
	text_done(&is);
	done(&s);
}

/* Of fewer libuv leaks some itself. */
static unsigned least_for_loop(void)
{
	uv_loop_t loop;

	for (unsigned n = 0;; n++) {
		int rc;

		yard_limit_descriptors(n);
		rc = uv_loop_init(&loop);
		yard_free_descriptors();
		if (rc < 0)
			continue;
		assert_int_equal(uv_loop_close(&loop), 0);
		return n;
	}
}

/* It starts whole, or not at all. */
static void test_no_descriptors(void **state)
{
	static const struct output_host host = { .hostname = "here", .say = say };
	unsigned least = least_for_loop(), refused = 0;
	size_t before = count_descriptors();

	(void)state;
	for (unsigned n = least; n < least + 16; n++) {
		struct failure why = { 0 };
		struct output *o = NULL;
		struct scene s;
		int rc;

		begin(&s, true);
		yard_limit_descriptors(n);
		rc = output_open(&s.plan, &host, &o, &why);
		yard_free_descriptors();
		if (rc == 0)
			s.closed = output_close(o, false, &s.mid_line);
		restore(&s);
		(void)alarm(0);
		if (rc < 0) {
			assert_outcome(rc, -EMFILE, &why, "can't start the output thread");
			s.closed = true;
			refused++;
		}
		done(&s);
	}
	assert_in_range(refused, 1, 15);
	assert_int_equal(count_descriptors(), before);
}

int main(void)
{
	static struct suite s;
	uv_loop_t first; /* libuv then has the descriptors that it keeps */
	int rc = uv_loop_init(&first) < 0 || uv_loop_close(&first) < 0 || yard_make() < 0 ||
			signal(SIGPIPE, SIG_IGN) == SIG_ERR ?
		2 :
		0;

	SUITE_ROWS(&s, test_course, courses);
	SUITE_ROWS(&s, test_hurry, hurries);
	suite_add(&s, "files in a directory of their own", test_tmpdir, NULL, NULL);
	suite_add(&s, "attempts without files", test_attempts, NULL, NULL);
	suite_add(&s, "files that can't be made", test_not_prepared, NULL, NULL);
	suite_add(&s, "words and events, in order", test_words, NULL, NULL);
	suite_add(&s, "a last line without an end", test_mid_line, NULL, NULL);
	suite_add(&s, "somebody keeps a pipe open", test_kept, NULL, NULL);
	suite_add(&s, "no worker could be started", test_not_started, NULL, NULL);
	suite_add(&s, "a worker's error file", test_error_file, NULL, NULL);
	suite_add(&s, "an attempt while the last one's lines wait", test_two_attempts, NULL, NULL);
	suite_add(&s, "files are opened again", test_reopen, NULL, NULL);
	suite_add(&s, "stdout and stderr are one", test_one_console, NULL, NULL);
	suite_add(&s, "no descriptors for the thread", test_no_descriptors, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return yard_done() < 0 ? 2 : rc;
}
