/* lifeline.c - see lifeline.h */
#include "daemon/workers/lifeline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "daemon/os/kernel.h"
#include "daemon/os/procfs.h"

enum {
	DOUBT_MS = 300, /* between a signal to a process group and what it does to its members */
	DEPTH_MAX = 64, /* of shells in shells */
};

static void lose(struct lifeline *l, enum cause_kind kind)
{
	(void)uv_poll_stop(&l->poll);
	(void)uv_timer_stop(&l->doubt);
	l->on_lost(l, kind);
}

/* A signal from a moment before the loss to now: it was for the whole process group. */
static void on_doubt_over(uv_timer_t *t)
{
	struct lifeline *l = t->data;

	if (!l->signal_ns || l->signal_ns + DOUBT_MS * UINT64_C(1000000) < l->lost_ns)
		lose(l, l->lost);
}

static void doubt(struct lifeline *l, enum cause_kind kind)
{
	if (uv_is_active((uv_handle_t *)&l->doubt))
		return;
	l->lost = kind;
	l->lost_ns = uv_hrtime();
	uv_update_time(l->doubt.loop);
	(void)uv_timer_start(&l->doubt, on_doubt_over, DOUBT_MS, 0); /* has a callback */
}

void lifeline_parent_gone(struct lifeline *l)
{
	if (!l->parent_unseen)
		return; /* a pidfd tells */
	l->parent_unseen = false;
	if (l->parent_launches)
		lose(l, CAUSE_LAUNCHER);
	else
		doubt(l, CAUSE_LAUNCHER);
}

static void on_event(uv_poll_t *h, int status, int events)
{
	struct lifeline *l = h->data;
	struct epoll_event e;

	(void)status, (void)events;
	if (epoll_wait(l->epoll, &e, 1, 0) != 1)
		return;
	if (e.data.fd == l->launcher) {
		lose(l, CAUSE_LAUNCHER);
		return;
	}
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, e.data.fd, NULL); /* it is told once */
	doubt(l, e.data.fd == l->shell ? CAUSE_LAUNCHER : CAUSE_HANGUP);
}

/* No event is asked for: a hang-up comes unasked. A file can't hang up (EPERM). */
static int add(struct lifeline *l, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EPERM ? 0 : -errno;
}

/* *ret stays -1 where there are no pidfds. */
static int add_process(struct lifeline *l, pid_t pid, int *ret)
{
	int fd = kernel_pidfd_open(pid);

	if (fd < 0)
		return kernel_refuses(-fd) ? 0 : fd;
	*ret = fd;
	return add(l, fd, EPOLLIN);
}

static bool is_of_this_rank(pid_t pid, const char *mark, const char *value)
{
	char text[256]; /* ids and numbers; a longer value is nobody's */

	return value && process_variable(pid, mark, text, sizeof text) && strcmp(text, value) == 0;
}

static pid_t parent_of(pid_t pid)
{
	struct process p;

	return process_read(pid, &p) == 0 ? p.parent : 0;
}

/* The launcher's process, if it stands above a shell: opened first, asked then whether it is still
 * the shell's parent, so that its number is its own. Where it can't be seen there is none. */
static int add_launcher_above(struct lifeline *l, pid_t shell, const char *mark, const char *value)
{
	pid_t below = shell, above = parent_of(shell);
	int rc;

	for (int i = 0; i < DEPTH_MAX && above > 1 && is_of_this_rank(above, mark, value); i++) {
		below = above;
		above = parent_of(below);
	}
	if (above <= 1)
		return 0;
	rc = add_process(l, above, &l->launcher);
	if (rc == -ESRCH || (rc == 0 && parent_of(below) != above))
		return -ESRCH;
	l->launcher_pid = above;
	return rc;
}

static int add_all(struct lifeline *l, pid_t parent, const char *mark, const char *const *env)
{
	const char *value = env_get(env, mark);
	bool seen = proc_look() == PROC_OURS; /* else it may be a shell as well */
	int rc = add(l, STDOUT_FILENO, 0);

	if (rc == 0)
		rc = add(l, STDERR_FILENO, 0);
	if (rc < 0 || parent <= 1)
		return rc;
	if (!seen || !is_of_this_rank(parent, mark, value))
		l->launcher_pid = parent;
	l->parent_launches = seen && l->launcher_pid;
	rc = add_process(l, parent, l->parent_launches ? &l->launcher : &l->shell);
	l->parent_unseen = rc == 0 && l->launcher < 0 && l->shell < 0;
	if (rc < 0 || l->parent_launches)
		return rc;
	return add_launcher_above(l, parent, mark, value);
}

static void close_all(struct lifeline *l)
{
	fd_closep(&l->epoll);
	fd_closep(&l->launcher);
	fd_closep(&l->shell);
}

int lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, const char *mark,
	const char *const *env, struct failure *why)
{
	int rc;

	l->launcher = l->shell = -1;
	l->launcher_pid = 0;
	l->parent_unseen = l->parent_launches = false;
	l->lost_ns = l->signal_ns = 0;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = l->epoll < 0 ? -errno : add_all(l, parent, mark, env);
	if (rc == 0)
		rc = uv_poll_init(loop, &l->poll, l->epoll);
	if (rc < 0) {
		close_all(l);
		return failure_set(why, rc, "can't watch what started launchd: %s", strerror(-rc));
	}
	(void)uv_timer_init(loop, &l->doubt); /* can't fail, nor can the start of a new watch */
	l->poll.data = l->doubt.data = l;
	l->handles = 2;
	(void)uv_poll_start(&l->poll, UV_READABLE, on_event);
	return 0;
}

bool lifeline_is_launcher(const struct lifeline *l, pid_t sender)
{
	return sender == l->launcher_pid;
}

void lifeline_signalled(struct lifeline *l, int signal)
{
	if (signal != SIGCONT && signal != SIGWINCH && signal != SIGURG && signal != SIGTSTP)
		l->signal_ns = uv_hrtime();
}

static void on_closed(uv_handle_t *h)
{
	struct lifeline *l = h->data;

	if (--l->handles == 0)
		close_all(l);
}

void lifeline_stop(struct lifeline *l)
{
	l->parent_unseen = false; /* the guard may tell of it still */
	if (l->handles == 0 || uv_is_closing((uv_handle_t *)&l->poll))
		return;
	uv_close((uv_handle_t *)&l->poll, on_closed);
	uv_close((uv_handle_t *)&l->doubt, on_closed);
}
