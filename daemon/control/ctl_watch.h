/* ctl_watch.h - learns when something is removed from the control socket's directory, or the
 * directory itself. libuv's own handle for that aborts where a read(2) fails. */
#ifndef LAUNCHD_DAEMON_CONTROL_CTL_WATCH_H
#define LAUNCHD_DAEMON_CONTROL_CTL_WATCH_H

#include <uv.h>

struct ctl_place;

/* Begins as { .fd = -1 }. */
struct ctl_watch {
	/* the owner's */
	void (*on_change)(void *owner);
	void *owner;

	/* private */
	int fd, wd;
	uv_poll_t poll;
};

/* Watches the directory of that place, and no longer the one before. If the kernel can't, nothing
 * is learned. */
void ctl_watch_start(struct ctl_watch *w, uv_loop_t *loop, const struct ctl_place *place);

/* Out of the loop; also if it never was in it. */
void ctl_watch_stop(struct ctl_watch *w);

#endif
