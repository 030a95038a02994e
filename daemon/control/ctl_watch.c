/* ctl_watch.c - see ctl_watch.h */
#include "daemon/control/ctl_watch.h"

#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/control/ctl_place.h"

static void on_notice(uv_poll_t *p, int status, int events)
{
	struct ctl_watch *w = p->data;
	char notices[4096]; /* what they are is looked at in the directory */

	(void)status, (void)events;
	while (read(w->fd, notices, sizeof notices) > 0)
		;
	w->on_change(w->owner);
}

static bool watch_open(struct ctl_watch *w, uv_loop_t *loop)
{
	if (w->fd >= 0)
		return true;
	w->wd = -1;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		return false;
	if (uv_poll_init(loop, &w->poll, w->fd) < 0) {
		fd_closep(&w->fd);
		return false;
	}
	w->poll.data = w;
	(void)uv_poll_start(&w->poll, UV_READABLE, on_notice); /* can't fail */
	return true;
}

void ctl_watch_start(struct ctl_watch *w, uv_loop_t *loop, const struct ctl_place *place)
{
	enum { LOSSES = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB };
	struct ctl_place dir = *place;
	char *slash = strrchr(dir.path, '/');

	if (!slash || !watch_open(w, loop))
		return;
	*slash = '\0';
	if (w->wd >= 0)
		(void)inotify_rm_watch(w->fd, w->wd); /* it may be gone with its directory */
	w->wd = inotify_add_watch(w->fd, dir.path, LOSSES | IN_ONLYDIR | IN_DONT_FOLLOW);
}

void ctl_watch_stop(struct ctl_watch *w)
{
	if (w->fd < 0)
		return;
	uv_close((uv_handle_t *)&w->poll, NULL);
	fd_closep(&w->fd); /* libuv polls it no more */
}
