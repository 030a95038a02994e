/* back_fixture.c - see back_fixture.h */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/daemon/output/back_fixture.h"
#include "tests/unit/daemon/output/scratch_dir.h"

enum { LIMIT_S = 60 };

void fixture_say(void *owner, bool warning, const char *text)
{
	struct fixture *s = owner;

	uv_mutex_lock(&s->lock);
	text_printf(&s->said, "%s%s\n", warning ? "warning: " : "", text);
	uv_mutex_unlock(&s->lock);
}

static bool write_events(void *owner, const char *lines, size_t len)
{
	struct fixture *s = owner;

	uv_mutex_lock(&s->lock);
	text_add_bytes(&s->told, lines, len);
	uv_mutex_unlock(&s->lock);
	return false;
}

static void on_prepared(void *owner, const struct failure *why)
{
	struct fixture *s = owner;

	s->prepared++;
	s->rc = why->code;
	(void)snprintf(s->why, sizeof s->why, "%s", why->text);
}

static void on_drained(void *owner)
{
	((struct fixture *)owner)->drained++;
}

static void on_status_over(void *owner)
{
	((struct fixture *)owner)->status_over++;
}

void must(bool holds)
{
	if (!holds)
		abort();
}

void fixture_redirect(int fd, const char *path)
{
	autoclose to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	must(to >= 0 && dup2(to, fd) == fd);
}

void back_fixture_begin(struct fixture *s, bool piped)
{
	int ends[2];

	scratch_clear();
	(void)alarm(LIMIT_S); /* it hangs */
	*s = (struct fixture){ .reader = -1 };
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
	fixture_redirect(2, "err");
	if (!piped) {
		fixture_redirect(1, "out");
		return;
	}
	must(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 1) == 1 && close(ends[1]) == 0);
	s->reader = ends[0];
}

static void on_lines(void *owner)
{
	(void)owner; /* nobody merges here */
}

void back_fixture_open(struct fixture *s)
{
	static const struct output_events events = {
		.prepared = on_prepared,
		.drained = on_drained,
		.status_over = on_status_over,
		.lines = on_lines,
	};
	const struct output_host host = {
		.hostname = "here", .say = fixture_say, .write_events = write_events, .owner = s
	};
	struct failure why = { 0 };

	must(output_open(&s->plan, &host, &s->output, &why) == 0);
	must(output_attach(s->output, &s->loop, &events, s, &why) == 0);
	output_start(s->output);
}

static void wait_for(struct fixture *s, const unsigned *what, unsigned count)
{
	while (*what < count)
		(void)uv_run(&s->loop, UV_RUN_ONCE);
}

void fixture_prepare(struct fixture *s, unsigned attempt)
{
	output_prepare(s->output, &s->plan, attempt);
	wait_for(s, &s->prepared, s->prepared + 1);
}

void fixture_start(struct fixture *s)
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
			output_take(s->output, i, fd, ends[0], 0);
		}
	output_started(s->output);
}

void fixture_put(const struct fixture *s, unsigned i, int fd, const char *text)
{
	must(fd_write_all(s->ends[i][fd], text, strlen(text)) == 0);
}

void fixture_put_many(const struct fixture *s, char letter)
{
	char line[128];

	for (int i = 0; i < 10000; i++) {
		(void)snprintf(line, sizeof line, "%c%0100d\n", letter, i);
		fixture_put(s, 0, 1, line);
	}
}

void fixture_end_workers(struct fixture *s)
{
	for (unsigned i = 0; i < WORKERS; i++)
		for (int fd = 1; fd <= 2; fd++)
			fd_closep(&s->ends[i][fd]);
}

void fixture_drain(struct fixture *s)
{
	output_drain(s->output);
	wait_for(s, &s->drained, s->drained + 1);
}

void fixture_restore(struct fixture *s)
{
	for (int fd = 1; fd <= 2; fd++)
		must(dup2(s->own[fd], fd) == fd && close(s->own[fd]) == 0);
}

void fixture_close(struct fixture *s, bool hurry)
{
	struct closing c = { .hurry = hurry };

	output_detach(s->output);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	s->closed = output_close(s->output, &c);
	s->mid_line = c.ret_mid_line;
	fixture_end_workers(s);
	fixture_restore(s);
	(void)alarm(0);
}

void back_fixture_done(struct fixture *s)
{
	assert_true(s->closed);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	uv_mutex_destroy(&s->lock);
	fd_closep(&s->reader);
	text_done(&s->said);
	text_done(&s->told);
}

void fixture_find_file(const char *dir, const char *name, char *ret, size_t size)
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

void fixture_assert_log(const char *dir, const char *name, const char *expected)
{
	char path[512];

	fixture_find_file(dir, name, path, sizeof path);
	assert_file(path, expected);
}
