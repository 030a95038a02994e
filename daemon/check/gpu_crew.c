/* gpu_crew.c - see gpu_crew.h */
#include "daemon/check/gpu_crew.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/os/process.h"

enum { OUT, SAID, STREAMS };
enum { OUT_MAX = 256 << 10, SAID_KEPT = 4096 };

struct crew_run {
	pid_t pids[GPU_CREW_MAX];
	unsigned started;
	int read[STREAMS], write[STREAMS];
	struct text *text[STREAMS];
};

/* Its environment: a worker's, as far as launchd-nodecheck looks at it. */
static char *const *environment_of(const struct gpu_crew *c, unsigned local, struct arena *arena)
{
	static const char *const own[] = { "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
		"GROUP_RANK", "MASTER_ADDR", "MASTER_PORT" };
	struct vec env = { 0 };

	for (const char *const *at = c->env; *at; at++) {
		size_t len = env_name_length(*at);
		bool ours = false;

		for (size_t i = 0; i < sizeof own / sizeof *own; i++)
			ours = ours || (strlen(own[i]) == len && memcmp(own[i], *at, len) == 0);
		if (!ours)
			vec_add(arena, &env, *at);
	}
	vec_add(arena, &env, arena_printf(arena, "RANK=%u", c->first + local));
	vec_add(arena, &env, arena_printf(arena, "WORLD_SIZE=%u", c->ranks));
	vec_add(arena, &env, arena_printf(arena, "LOCAL_RANK=%u", local));
	vec_add(arena, &env, arena_printf(arena, "LOCAL_WORLD_SIZE=%u", c->count));
	vec_add(arena, &env, arena_printf(arena, "GROUP_RANK=%u", c->node));
	if (c->nccl_home)
		vec_add(arena, &env, arena_printf(arena, "NCCL_HOME=%s", c->nccl_home));
	if (c->store_port) {
		vec_add(arena, &env, arena_printf(arena, "MASTER_ADDR=%s", c->store_host));
		vec_add(arena, &env, arena_printf(arena, "MASTER_PORT=%u", c->store_port));
	}
	return vec_argv(&env);
}

/* The child, up to exec. Whoever wants nothing of its stdout gets none of it. */
static _Noreturn void exec_member(const struct gpu_crew *c, const struct crew_run *r,
	unsigned local, char *const *argv, char *const *env, pid_t parent)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	if (none < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
		dup2(none, STDIN_FILENO) < 0 ||
		dup2(local == 0 ? r->write[OUT] : none, STDOUT_FILENO) < 0 ||
		dup2(r->write[SAID], STDERR_FILENO) < 0)
		_exit(127);
	(void)signal(SIGPIPE, SIG_DFL);
	sigemptyset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)execve(c->program, argv, env);
	dprintf(STDERR_FILENO, "%s can't be executed: %s\n", c->program, strerror(errno));
	_exit(127);
}

static int start_members(
	const struct gpu_crew *c, struct crew_run *r, struct arena *arena, struct failure *why)
{
	const pid_t self = getpid();
	const char *const words[] = { "launchd-nodecheck", "--findings", "--keys", c->keys,
		"--limit", arena_printf(arena, "%u", c->limit_s), c->least ? "--least" : NULL,
		c->least, NULL };
	struct vec argv = { 0 };

	vec_add_all(arena, &argv, words);
	for (unsigned local = 0; local < c->count; local++) {
		char *const *env = environment_of(c, local, arena);
		pid_t pid;

		if (arena_failed(arena))
			return failure_oom(why);
		pid = process_fork_to_exec();
		if (pid == 0)
			exec_member(c, r, local, vec_argv(&argv), env, self);
		if (pid < 0)
			return failure_not_started(why, -errno, "launchd-nodecheck");
		r->pids[r->started++] = pid;
	}
	return 0;
}

static int open_streams(struct crew_run *r, struct failure *why)
{
	for (int i = 0; i < STREAMS; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return failure_set(
				why, -errno, "no pipe for launchd-nodecheck: %s", strerror(errno));
		r->read[i] = fds[0];
		r->write[i] = fds[1];
	}
	return 0;
}

/* Takes what there is; a stream that has ended is closed. Of the verdict more than any verdict has
 * is dropped, of the rest the end is kept. */
static void take(struct crew_run *r, int i)
{
	char bytes[4096];
	ssize_t got = read(r->read[i], bytes, sizeof bytes);
	struct text *t = r->text[i];

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		fd_closep(&r->read[i]);
		return;
	}
	if (i == SAID && t->len > SAID_KEPT)
		text_drop(t, t->len - SAID_KEPT);
	if (i == SAID || t->len < OUT_MAX)
		text_add_bytes(t, bytes, (size_t)got);
}

/* Until all have closed both streams, which is when they have ended. */
static int hear(const struct gpu_crew *c, struct crew_run *r, struct failure *why)
{
	while (r->read[OUT] >= 0 || r->read[SAID] >= 0) {
		struct pollfd p[STREAMS] = { { .fd = r->read[OUT], .events = POLLIN },
			{ .fd = r->read[SAID], .events = POLLIN } };
		int left = monotonic_left_ms(c->until_ms), rc = poll(p, STREAMS, left);

		if (rc == 0 && left == 0)
			return failure_set(
				why, -ETIMEDOUT, "launchd-nodecheck did not end in its time");
		for (int i = 0; rc > 0 && i < STREAMS; i++)
			if (p[i].revents)
				take(r, i);
	}
	return 0;
}

/* Their parts die with them (PDEATHSIG). Those that a driver holds are left to our own parent. */
static void end_members(struct crew_run *r, bool in_time)
{
	for (unsigned i = 0; i < r->started; i++)
		(void)kill(r->pids[i], SIGKILL);
	for (unsigned i = 0; i < r->started; i++)
		(void)waitpid(r->pids[i], NULL, in_time ? 0 : WNOHANG);
}

/* Keeps the last line alone. */
static void keep_last_line(struct text *t)
{
	char *end;

	while (t->len && t->at[t->len - 1] == '\n')
		t->at[--t->len] = '\0';
	end = t->len ? strrchr(t->at, '\n') : NULL;
	if (end)
		text_drop(t, (size_t)(end + 1 - t->at));
}

int gpu_crew_run(
	const struct gpu_crew *c, struct text *ret_out, struct text *ret_said, struct failure *why)
{
	struct crew_run r = {
		.read = { -1, -1 }, .write = { -1, -1 }, .text = { ret_out, ret_said }
	};
	struct arena arena = { 0 };
	int rc = open_streams(&r, why);

	if (rc == 0)
		rc = start_members(c, &r, &arena, why);
	for (int i = 0; i < STREAMS; i++)
		fd_closep(&r.write[i]);
	if (rc == 0)
		rc = hear(c, &r, why);
	end_members(&r, rc == 0);
	for (int i = 0; i < STREAMS; i++)
		fd_closep(&r.read[i]);
	keep_last_line(ret_said);
	arena_done(&arena);
	return rc;
}
