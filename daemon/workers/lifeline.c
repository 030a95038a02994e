/* lifeline.c - see lifeline.h */
#include "daemon/workers/lifeline.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"

static void on_event(uv_poll_t *h, int status, int events)
{
	struct lifeline *l = h->data;
	struct epoll_event e;

	(void)status, (void)events;
	if (epoll_wait(l->epoll, &e, 1, 0) != 1)
		return;
	(void)uv_poll_stop(h);
	l->on_lost(l, e.data.fd == l->parent ? CAUSE_LAUNCHER : CAUSE_HANGUP);
}

/* No event is asked for: a hang-up comes unasked. A file can't hang up (EPERM). */
static int add(struct lifeline *l, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) == 0 || errno == EPERM ? 0 : -errno;
}

static int add_all(struct lifeline *l, pid_t parent)
{
	int rc = add(l, STDOUT_FILENO, 0);

	if (rc == 0)
		rc = add(l, STDERR_FILENO, 0);
	if (rc < 0 || parent <= 1)
		return rc;
	l->parent = (int)syscall(SYS_pidfd_open, parent, 0u);
	return l->parent < 0 ? -errno : add(l, l->parent, EPOLLIN);
}

int lifeline_start(struct lifeline *l, uv_loop_t *loop, pid_t parent, struct failure *why)
{
	int rc;

	l->parent = -1;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = l->epoll < 0 ? -errno : add_all(l, parent);
	if (rc == 0)
		rc = uv_poll_init(loop, &l->poll, l->epoll);
	if (rc < 0) {
		fd_closep(&l->epoll);
		fd_closep(&l->parent);
		return failure_set(why, rc, "can't watch what started launchd: %s", strerror(-rc));
	}
	l->poll.data = l;
	(void)uv_poll_start(&l->poll, UV_READABLE, on_event); /* can't fail on a new handle */
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct lifeline *l = h->data;

	fd_closep(&l->epoll);
	fd_closep(&l->parent);
}

void lifeline_stop(struct lifeline *l)
{
	if (l->poll.data == l && !uv_is_closing((uv_handle_t *)&l->poll))
		uv_close((uv_handle_t *)&l->poll, on_closed);
}
