/* status.h - one line at the foot of the terminal while workers start: "8/8 started, 6/8 joined,
 * 12 s". Gone when anything else is written there.
 *
 * Workers have the terminal themselves, so nobody can know when they write before they do. The line
 * therefore stands in the terminal's last row, which is taken out of the region that scrolls
 * (DECSTBM) as long: nothing that is written meanwhile can mix with it, as it would with a line
 * that is drawn where the cursor is. inotify(7) tells of the first write, and the row is given
 * back. For the output thread. */
#ifndef LAUNCHD_DAEMON_OUTPUT_CONSOLE_STATUS_H
#define LAUNCHD_DAEMON_OUTPUT_CONSOLE_STATUS_H

#include <uv.h>

struct sm;

/* Over: something was written, or there is no terminal: never again. */
enum status_state { STATUS_NONE, STATUS_HIDDEN, STATUS_SHOWN, STATUS_OVER, STATUS_STATES };

extern const struct sm status_life;

struct status {
	enum status_state state;
	uv_fs_event_t writes; /* by any process */
	unsigned rows;        /* of the terminal, when the line was drawn */
	int fd;               /* the terminal, blocking or not */
	void (*on_over)(struct status *s);
	void *owner;
};

/* The terminal at fd, from now on; the owner is told when it is over, which may be at once. */
void status_open(
	struct status *s, uv_loop_t *loop, int fd, void (*on_over)(struct status *s), void *owner);

/* Draws the line anew. */
void status_show(struct status *s, const char *text);

/* Takes the line away, for good. */
void status_end(struct status *s);

/* The same without telling, and closes the handle; nothing where it was never opened. */
void status_close(struct status *s);

#endif
