/* pmix.c - see pmix.h */
#include "daemon/meet/pmix.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/signame.h"

enum {
	FINALIZE_MS = 2000, /* beyond the fence's own limit */
	REAP_MS = 1000,     /* from SIGKILL on; longer only for what hangs in the kernel */
};

static const char *const stage_words[] = {
	[PMIX_STAGE_BIRTH] = "its start",
	[PMIX_STAGE_LOAD] = "the loading of its library",
	[PMIX_STAGE_INIT] = "PMIx_Init",
	[PMIX_STAGE_PUT] = "PMIx_Put",
	[PMIX_STAGE_FENCE] = "PMIx_Fence",
	[PMIX_STAGE_GET] = "PMIx_Get",
	[PMIX_STAGE_LEAVE] = "the second PMIx_Fence",
	[PMIX_STAGE_FINALIZE] = "PMIx_Finalize",
	[PMIX_STAGE_DONE] = "its end",
};

/* The child wrote it, whose memory may have been anything. */
static enum pmix_stage stage_of(const struct pmix_exchange *x)
{
	enum pmix_stage stage = x->answer->stage;

	return stage <= PMIX_STAGE_DONE ? stage : PMIX_STAGE_BIRTH;
}

/* The first line of what PMIx printed that has a word in it; its boxes are drawn with dashes. */
static void add_chatter(struct pmix_exchange *x)
{
	char bytes[2048];
	ssize_t n = read(x->chatter, bytes, sizeof bytes - 1);
	char *line = bytes, *next;

	bytes[n > 0 ? n : 0] = '\0';
	for (; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		line += strspn(line, " -=*\t\r");
		if (*line == '\0')
			continue;
		text_add(&x->sentence, "; it says: ");
		text_add_shown(&x->sentence, line, strlen(line));
		return;
	}
}

static void fail(struct pmix_exchange *x, int status)
{
	struct pmix_answer *a = x->answer;
	enum pmix_stage stage = stage_of(x);
	const char *at = stage_words[stage];
	double limit_s = (double)x->timeout_ms / 1000;
	struct text *t = &x->sentence;

	a->text[sizeof a->text - 1] = '\0';
	if (a->timed_out || (x->killed && stage == PMIX_STAGE_FENCE)) {
		text_printf(t, "not all launchers of this job came to PMIx_Fence within %.3g s",
			limit_s);
	} else {
		text_add(t, "the launchers of this job can't meet by PMIx: ");
		if (x->killed)
			text_printf(t, "%s did not end within %.3g s", at,
				limit_s + FINALIZE_MS / 1000.0);
		else if (WIFSIGNALED(status))
			text_printf(t, "its process was killed by %s in %s",
				signal_name(WTERMSIG(status)), at);
		else if (*a->text)
			text_add_shown(t, a->text, strlen(a->text));
		else
			text_printf(t, "its process ended with exit code %d in %s",
				WEXITSTATUS(status), at);
		add_chatter(x);
	}
	x->on_failed(x, text_string(t), stage <= PMIX_STAGE_INIT);
}

static void on_closed(uv_handle_t *h)
{
	struct pmix_exchange *x = h->data;

	if (--x->handles > 0)
		return;
	fd_closep(&x->pidfd);
	fd_closep(&x->chatter);
	(void)munmap(x->answer, sizeof *x->answer);
	text_done(&x->sentence);
}

static void close_handles(struct pmix_exchange *x)
{
	if (uv_is_closing((uv_handle_t *)&x->gone))
		return;
	uv_close((uv_handle_t *)&x->gone, on_closed);
	uv_close((uv_handle_t *)&x->limit, on_closed);
}

static void start_limit(struct pmix_exchange *x, uint64_t ms);

/* The child has ended with this status, or never will. */
static void settle(struct pmix_exchange *x, int status)
{
	struct pmix_answer *a = x->answer;

	(void)uv_poll_stop(&x->gone);
	(void)uv_timer_stop(&x->limit);
	if (x->closing) {
		close_handles(x);
		return;
	}
	x->rank = a->rank;
	x->size = a->size;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && stage_of(x) == PMIX_STAGE_DONE &&
		a->len <= PMIX_BYTES_MAX)
		x->on_done(x, a->bytes, a->len);
	else
		fail(x, status);
}

static void on_gone(uv_poll_t *h, int poll_status, int events)
{
	struct pmix_exchange *x = h->data;
	int status = 0;
	pid_t pid = waitpid(x->child, &status, WNOHANG);

	(void)poll_status, (void)events;
	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	x->child = 0;
	settle(x, status);
}

static void kill_child(struct pmix_exchange *x)
{
	(void)kill(x->child, SIGKILL); /* not reaped yet, so the number is its own */
	x->killed = true;
	start_limit(x, REAP_MS);
}

static void on_limit(uv_timer_t *t)
{
	struct pmix_exchange *x = t->data;

	if (x->killed)
		settle(x, SIGKILL); /* in the kernel: who ends the tree at last will reap it */
	else
		kill_child(x);
}

static void start_limit(struct pmix_exchange *x, uint64_t ms)
{
	uv_update_time(x->limit.loop);
	(void)uv_timer_start(&x->limit, on_limit, ms, 0); /* has a callback */
}

/* Ends and reaps a child that can't be used. */
static void undo(pid_t child)
{
	(void)kill(child, SIGKILL); /* not reaped yet, so the number is its own */
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Forks. Returns the child's pid or negative errno; *ret_pidfd is the parent's. */
static pid_t start_child(const struct pmix_child *c, int *ret_pidfd)
{
	pid_t pid = fork();
	int pidfd, error;

	if (pid == 0)
		pmix_child_main(c);
	if (pid < 0)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0u); /* Linux 5.3; close-on-exec by itself */
	if (pidfd >= 0) {
		*ret_pidfd = pidfd;
		return pid;
	}
	error = errno;
	undo(pid);
	return -error;
}

/* The memory that both share; the pipe's writing end is *ret_writer. */
static int open_all(struct pmix_exchange *x, int *ret_writer)
{
	int p[2], error;
	void *shared;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	shared = mmap(
		NULL, sizeof *x->answer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		error = errno;
		(void)close(p[0]);
		(void)close(p[1]);
		return -error;
	}
	x->answer = shared;
	x->chatter = p[0];
	*ret_writer = p[1];
	return 0;
}

static int start(struct pmix_exchange *x, uv_loop_t *loop, struct pmix_child *c)
{
	autoclose writer = -1;
	int rc = open_all(x, &writer);

	if (rc < 0)
		return rc;
	c->answer = x->answer;
	c->chatter = writer;
	rc = start_child(c, &x->pidfd);
	if (rc > 0) {
		x->child = rc;
		rc = uv_poll_init(loop, &x->gone, x->pidfd);
		if (rc == 0)
			return 0;
		undo(x->child);
		x->child = 0;
		fd_closep(&x->pidfd);
	}
	fd_closep(&x->chatter);
	(void)munmap(x->answer, sizeof *x->answer);
	x->answer = NULL;
	return rc;
}

int pmix_start(struct pmix_exchange *x, uv_loop_t *loop, const void *mine, size_t len,
	uint64_t timeout_ms, struct failure *why)
{
	struct pmix_child c = {
		.mine = mine,
		.len = len,
		.timeout_ms = timeout_ms,
		.parent = getpid(),
		.argv = x->argv,
	};
	int rc = len <= PMIX_BYTES_MAX ? 0 : -EMSGSIZE;

	*x = (struct pmix_exchange){
		.on_done = x->on_done,
		.on_failed = x->on_failed,
		.owner = x->owner,
		.argv = x->argv,
		.timeout_ms = timeout_ms,
		.pidfd = -1,
		.chatter = -1,
	};
	if (rc == 0)
		rc = start(x, loop, &c);
	if (rc < 0)
		return failure_not_started(why, rc, "a process to meet by PMIx");
	(void)uv_timer_init(loop, &x->limit); /* can't fail, nor can the start of a new watch */
	x->gone.data = x->limit.data = x;
	x->handles = 2;
	(void)uv_poll_start(&x->gone, UV_READABLE, on_gone);
	start_limit(x, timeout_ms + FINALIZE_MS);
	return 0;
}

void pmix_close(struct pmix_exchange *x)
{
	if (x->handles == 0 || x->closing)
		return;
	x->closing = true;
	if (x->child > 0 && uv_is_active((uv_handle_t *)&x->gone))
		kill_child(x); /* its end closes the rest */
	else
		close_handles(x);
}
