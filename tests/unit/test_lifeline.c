/* test_lifeline.c - the end of what started launchd, and a hang-up of its output. */
#include "tests/unit/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/workers/lifeline.h"

static uv_loop_t loop;
static struct lifeline line;
static uv_timer_t limit;
static unsigned lost;
static enum cause_kind kind;

static void on_lost(struct lifeline *l, enum cause_kind k)
{
	lost++;
	kind = k;
	lifeline_stop(l);
	uv_close((uv_handle_t *)&limit, NULL);
}

static void on_limit(uv_timer_t *t)
{
	lifeline_stop(&line);
	uv_close((uv_handle_t *)t, NULL);
}

/* Watches for at most so long; returns whether something was lost. False also for a failure. */
static bool watch(pid_t parent, uint64_t ms)
{
	struct failure why = { 0 };
	bool started;

	lost = 0;
	kind = CAUSE_NONE;
	line = (struct lifeline){ .on_lost = on_lost };
	if (uv_loop_init(&loop) < 0 || uv_timer_init(&loop, &limit) < 0)
		return false;
	started = lifeline_start(&line, &loop, parent, &why) == 0;
	(void)uv_timer_start(&limit, on_limit, started ? ms : 0, 0);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop) == 0 && started && line.epoll == -1 && line.parent == -1 &&
		lost == 1;
}

/* Puts a file at stdout and stderr. */
static void put(int fd)
{
	(void)dup2(fd, STDOUT_FILENO);
	(void)dup2(fd, STDERR_FILENO);
}

static void put_nowhere(void)
{
	put(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

enum { LONG_MS = 60000, SHORT_MS = 200 };

static const char *part_parent(void)
{
	pid_t parent = stage_start(ACTOR_CHILD, stage_wait);

	put_nowhere();
	HOLDS(!watch(parent, SHORT_MS), "not while it lives");
	(void)kill(parent, SIGKILL);
	HOLDS(watch(parent, LONG_MS) && kind == CAUSE_LAUNCHER, "its end");
	(void)stage_reap(parent);
	return NULL;
}

static const char *part_gone(void)
{
	pid_t parent = stage_start(ACTOR_CHILD, stage_end);
	struct failure why = { 0 };
	int rc;

	put_nowhere();
	(void)stage_reap(parent);
	HOLDS(uv_loop_init(&loop) == 0, "set-up");
	rc = lifeline_start(&line, &loop, parent, &why);
	HOLDS(rc == -ESRCH && why.text[0] != '\0', "it can't be watched");
	HOLDS(line.epoll == -1 && line.parent == -1, "nothing is left open");
	HOLDS(uv_loop_close(&loop) == 0, "nor in the loop");
	return NULL;
}

static const char *part_nobody(void)
{
	put_nowhere();
	HOLDS(!watch(0, SHORT_MS) && !watch(1, SHORT_MS), "nothing happens");
	return NULL;
}

/* Either stream alone, of a pipe, a socket pair or a terminal. */
static const char *hang_up(int ours, int other, int at)
{
	put_nowhere();
	(void)dup2(ours, at);
	(void)close(ours);
	HOLDS(!watch(0, SHORT_MS), "not while somebody reads");
	(void)close(other);
	HOLDS(watch(0, LONG_MS) && kind == CAUSE_HANGUP, "a hang-up");
	return NULL;
}

static const char *part_stdout(void)
{
	int p[2];

	HOLDS(pipe2(p, O_CLOEXEC) == 0, "set-up");
	return hang_up(p[1], p[0], STDOUT_FILENO);
}

static const char *part_stderr(void)
{
	int p[2];

	HOLDS(pipe2(p, O_CLOEXEC) == 0, "set-up");
	return hang_up(p[1], p[0], STDERR_FILENO);
}

static const char *part_terminal(void)
{
	int master, slave;

	HOLDS(openpty(&master, &slave, NULL, NULL, NULL) == 0, "set-up");
	return hang_up(slave, master, STDOUT_FILENO);
}

static const char *part_flags(void)
{
	int p[2];

	HOLDS(pipe2(p, O_CLOEXEC) == 0, "set-up");
	put(p[1]);
	HOLDS(!watch(0, 1), "nothing happens");
	HOLDS(!(fcntl(STDOUT_FILENO, F_GETFL) & O_NONBLOCK),
		"it still blocks for all who share it");
	return NULL;
}

static const char *part_file(void)
{
	char path[] = "/tmp/launchd_unit_XXXXXX";
	int fd = mkstemp(path);

	HOLDS(fd >= 0, "set-up");
	(void)unlink(path);
	put(fd);
	HOLDS(!watch(0, SHORT_MS), "nothing happens");
	return NULL;
}

static const char *part_both(void)
{
	pid_t parent = stage_start(ACTOR_CHILD, stage_end);
	int p[2];

	stage_await(parent, 'Z');
	HOLDS(pipe2(p, O_CLOEXEC) == 0, "set-up");
	put(p[1]);
	(void)close(p[0]);
	HOLDS(watch(parent, LONG_MS), "it is lost once");
	return NULL;
}

static const char *part_unstarted(void)
{
	struct lifeline none = { 0 };

	lifeline_stop(&none);
	HOLDS(none.epoll == 0 && none.parent == 0, "nothing is touched");
	return NULL;
}

static const struct stage_row rows[] = {
	{ "the end of what started launchd is noticed", part_parent, false },
	{ "one that is gone already is a failure", part_gone, false },
	{ "nobody in particular need be there", part_nobody, false },
	{ "a hang-up of stdout is noticed", part_stdout, false },
	{ "a hang-up of stderr is", part_stderr, false },
	{ "a hang-up of a terminal is", part_terminal, false },
	{ "the streams stay as they are", part_flags, false },
	{ "a file can't hang up", part_file, false },
	{ "all at once are told once", part_both, false },
	{ "what was never started can be stopped", part_unstarted, false },
};

int main(void)
{
	static struct suite s;

	stage_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
