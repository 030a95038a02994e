/* helper.c - see helper.h */
#include "daemon/os/helper.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/signame.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/os/kernel.h"
#include "daemon/os/process.h"

enum { REAP_MS = 1000 }; /* from SIGKILL on; longer only for what hangs in the kernel */

static const struct sm_state states[HELPER_STATES] = {
	[HELPER_NONE] = { "none", SM_TO(HELPER_RUNNING) },
	[HELPER_RUNNING] = { "running",
		SM_TO(HELPER_OVERDUE) | SM_TO(HELPER_UNWANTED) | SM_TO(HELPER_ENDED) },
	[HELPER_OVERDUE] = { "overdue", SM_TO(HELPER_UNWANTED) | SM_TO(HELPER_ENDED) },
	[HELPER_UNWANTED] = { "unwanted", SM_TO(HELPER_CLOSING) },
	[HELPER_ENDED] = { "ended", SM_TO(HELPER_CLOSING) },
	[HELPER_CLOSING] = { "closing", SM_TO(HELPER_NONE) },
};
const struct sm helper_life = { "helper", states, HELPER_STATES };

/* --- the child --- */

_Noreturn void helper_fail(const struct helper *h, const char *fmt, ...)
{
	char text[2 * PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	text_fit(h->answer->text, sizeof h->answer->text, text);
	_exit(1);
}

static void set_up_child(const struct helper *h, pid_t parent, int output)
{
	const char *what;
	int rc = process_set_apart(parent, h->input, output, &what);

	if (rc < 0)
		helper_fail(h, "%s: %s", what, strerror(-rc));
	if (h->group)
		(void)setpgid(0, 0); /* so does the parent: whoever comes first */
	if (h->argv)
		process_rename(h->argv, h->name);
	else
		(void)prctl(PR_SET_NAME, h->name);
}

/* --- the parent --- */

/* One thread. */
static struct helper *without_pidfd, *all_lasting;
static pid_t lost[HELPER_LOST_MAX]; /* the children of lasting ones that hang in the kernel; 0 */

/* The child, which is not reaped yet, so that the number is its own, and so is the group's. */
static void kill_all(const struct helper *h)
{
	(void)kill(h->child, SIGKILL);
	if (h->group)
		(void)kill(-h->child, SIGKILL);
}

static void forget(const struct helper *h)
{
	for (struct helper **at = &all_lasting; *at; at = &(*at)->next_lasting)
		if (*at == h) {
			*at = h->next_lasting;
			break;
		}
	for (struct helper **at = &without_pidfd; *at; at = &(*at)->next)
		if (*at == h) {
			*at = h->next;
			return;
		}
}

static void release(struct helper *h)
{
	forget(h);
	fd_closep(&h->pidfd);
	fd_closep(&h->printed);
	if (h->answer)
		(void)munmap(h->answer, h->answer_size);
	h->answer = NULL;
}

static void on_limit(uv_timer_t *t);
static void on_closed(uv_handle_t *handle);

static void start_limit(struct helper *h, uint64_t ms)
{
	uv_update_time(h->limit.loop);
	(void)uv_timer_start(&h->limit, on_limit, ms, 0); /* has a callback */
}

static void helper_goto(struct helper *h, enum helper_state next)
{
	h->state = sm_go(&helper_life, h->state, next);
	if (next == HELPER_OVERDUE || next == HELPER_UNWANTED) {
		kill_all(h);
		start_limit(h, REAP_MS);
	} else if (next == HELPER_ENDED) {
		if (h->pidfd >= 0)
			(void)uv_poll_stop(&h->gone);
		(void)uv_timer_stop(&h->limit);
	} else if (next == HELPER_CLOSING) {
		if (h->pidfd >= 0)
			uv_close((uv_handle_t *)&h->gone, on_closed);
		uv_close((uv_handle_t *)&h->limit, on_closed);
	} else if (next == HELPER_NONE) {
		release(h);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct helper *h = handle->data;

	if (--h->handles > 0)
		return;
	helper_goto(h, HELPER_NONE);
	if (h->on_closed)
		h->on_closed(h);
}

/* The child has ended with this status, or never will. */
static void end(struct helper *h, int status)
{
	if (h->state == HELPER_UNWANTED) {
		helper_goto(h, HELPER_CLOSING);
		return;
	}
	h->timed_out = h->state == HELPER_OVERDUE;
	h->status = status;
	helper_goto(h, HELPER_ENDED);
	h->on_end(h, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void look(struct helper *h)
{
	siginfo_t ended = { 0 };
	int status = 0;
	pid_t pid;

	if (h->group && waitid(P_PID, (id_t)h->child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		ended.si_pid == h->child)
		kill_all(h);
	pid = waitpid(h->child, &status, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return;
	h->child = 0;
	end(h, status);
}

static void on_gone(uv_poll_t *poll, int poll_status, int events)
{
	(void)poll_status, (void)events;
	look(poll->data);
}

void helper_on_child(void)
{
	struct helper *next;

	for (struct helper *h = without_pidfd; h; h = next) {
		next = h->next; /* its end may be the last of it */
		if (h->child && h->state != HELPER_ENDED && h->state != HELPER_CLOSING)
			look(h);
	}
}

static struct helper *lasting_of(pid_t child)
{
	for (struct helper *h = all_lasting; h; h = h->next_lasting)
		if (h->child == child &&
			(h->state == HELPER_RUNNING || h->state == HELPER_OVERDUE ||
				h->state == HELPER_UNWANTED))
			return h;
	return NULL;
}

/* Where it stands among the lost; NULL: it doesn't. 0: a place that is free. */
static pid_t *lost_place(pid_t child)
{
	for (size_t i = 0; i < HELPER_LOST_MAX; i++)
		if (lost[i] == child)
			return &lost[i];
	return NULL;
}

void helper_lose(pid_t child)
{
	pid_t *place = lost_place(0);

	if (place)
		*place = child;
}

size_t helper_lost(pid_t ret[HELPER_LOST_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < HELPER_LOST_MAX; i++)
		if (lost[i] > 0)
			ret[count++] = lost[i];
	return count;
}

bool helper_any_lasting(void)
{
	pid_t left[HELPER_LOST_MAX];

	return all_lasting || helper_lost(left) > 0;
}

bool helper_is_lasting(pid_t child)
{
	return child > 0 && (lasting_of(child) || lost_place(child));
}

bool helper_reap_lasting(pid_t child)
{
	struct helper *h = child > 0 ? lasting_of(child) : NULL;
	pid_t *place = child > 0 ? lost_place(child) : NULL;

	if (h)
		look(h);
	else if (place && waitpid(child, NULL, WNOHANG) != 0)
		*place = 0;
	return h || place;
}

static void on_limit(uv_timer_t *t)
{
	struct helper *h = t->data;

	if (h->state == HELPER_RUNNING) {
		helper_goto(h, HELPER_OVERDUE);
		return;
	}
	if (h->lasting)
		helper_lose(h->child);
	end(h, SIGKILL); /* it hangs in the kernel: who ends the tree at last will reap it */
}

/* What it prints goes into a pipe that refuses more once it is full, instead of blocking. */
static int start(struct helper *h, uv_loop_t *loop)
{
	const pid_t parent = getpid();
	autoclose output = -1;
	int p[2], rc;
	void *shared;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	h->printed = p[0];
	output = p[1];
	shared = mmap(
		NULL, h->answer_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	h->answer = shared;
	h->child = fork();
	if (h->child == 0) {
		set_up_child(h, parent, output);
		h->work(h);
		_exit(0);
	}
	if (h->child < 0)
		return -errno;
	if (h->group)
		(void)setpgid(h->child, h->child);
	h->pidfd = kernel_pidfd_open(h->child);
	if (h->pidfd < 0 && kernel_refuses(-h->pidfd)) {
		h->next = without_pidfd;
		without_pidfd = h;
		return 0;
	}
	rc = h->pidfd < 0 ? h->pidfd : uv_poll_init(loop, &h->gone, h->pidfd);
	if (rc < 0)
		process_undo(h->child);
	return rc;
}

int helper_start(struct helper *h, uv_loop_t *loop, size_t answer_size, uint64_t limit_ms)
{
	int rc;

	h->answer_size = answer_size;
	h->limit_ms = limit_ms;
	h->pidfd = h->printed = -1;
	rc = start(h, loop);
	if (rc < 0) {
		release(h);
		return rc;
	}
	(void)uv_timer_init(loop, &h->limit); /* can't fail, nor can the start of a new watch */
	h->gone.data = h->limit.data = h;
	h->handles = h->pidfd < 0 ? 1 : 2;
	helper_goto(h, HELPER_RUNNING);
	if (h->pidfd >= 0)
		(void)uv_poll_start(&h->gone, UV_READABLE, on_gone);
	if (limit_ms > 0)
		start_limit(h, limit_ms);
	if (h->lasting) {
		h->next_lasting = all_lasting;
		all_lasting = h;
	}
	return 0;
}

void helper_close(struct helper *h)
{
	/* the child of an end that never came is not waited for again */
	if (h->state == HELPER_RUNNING || h->state == HELPER_OVERDUE)
		helper_goto(h, HELPER_UNWANTED);
	else if (h->state == HELPER_ENDED)
		helper_goto(h, HELPER_CLOSING);
}

/* The first line of what it printed that has a word in it; libraries draw boxes with dashes. */
static void add_printed(const struct helper *h, struct text *t)
{
	char bytes[2048];
	ssize_t n = read(h->printed, bytes, sizeof bytes - 1);
	char *line = bytes, *next;

	bytes[n > 0 ? n : 0] = '\0';
	for (; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		line += strspn(line, " -=*\t\r");
		if (*line == '\0')
			continue;
		text_add(t, "; it printed: ");
		text_add_shown(t, line, strlen(line));
		return;
	}
}

void helper_explain(const struct helper *h, const char *step, struct text *t)
{
	const char *said = h->answer->text;
	size_t len = strnlen(said, sizeof h->answer->text);

	if (h->timed_out)
		text_printf(t, "%s did not finish within %.3g s", step, (double)h->limit_ms / 1000);
	else if (WIFSIGNALED(h->status))
		text_printf(t, "its process was killed by %s in %s",
			signal_name(WTERMSIG(h->status)), step);
	else if (len > 0)
		text_add_shown(t, said, len);
	else
		text_printf(
			t, "its process exited with code %d in %s", WEXITSTATUS(h->status), step);
	add_printed(h, t);
}
