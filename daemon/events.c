/* events.c - see events.h */
#include "daemon/events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/plan/output.h"

bool events_wanted(const struct output_plan *o)
{
	return o->events_path || o->events_fd >= 0;
}

void events_init(struct events *ev)
{
	*ev = (struct events){ .fd = -1 };
}

static int fail(const struct events *ev, struct failure *why, int rc)
{
	return failure_set(why, rc, "--events%s%s: can't be written: %s; there are no more of them",
		ev->path ? " " : "", ev->path ? ev->path : "", strerror(-rc));
}

/* Non-blocking, as a FIFO that nobody reads would hold launchd up here. */
static int open_place(const struct output_plan *o)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
	int fd = o->events_path ? open(o->events_path, FLAGS, 0644) :
				  fcntl(o->events_fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

int events_open(struct events *ev, const struct output_plan *o, struct failure *why)
{
	int fd = events_wanted(o) ? open_place(o) : -1, rc;

	ev->path = o->events_path;
	rc = events_wanted(o) && fd < 0 ? fail(ev, why, fd) : 0;
	ev->open = true;
	ev->fd = fd < 0 ? -1 : fd;
	if (rc == 0 && ev->early.len > 0)
		rc = events_write(ev, text_string(&ev->early), ev->early.len, why);
	text_done(&ev->early);
	return rc;
}

int events_write(struct events *ev, const char *lines, size_t len, struct failure *why)
{
	int rc;

	if (!ev->open) {
		text_add_bytes(&ev->early, lines, len);
		return 0;
	}
	if (ev->fd < 0)
		return 0;
	rc = fd_write_all(ev->fd, lines, len);
	if (rc < 0) {
		fd_closep(&ev->fd);
		(void)fail(ev, why, rc);
	}
	return rc;
}

void events_done(struct events *ev)
{
	fd_closep(&ev->fd);
	text_done(&ev->early);
}
