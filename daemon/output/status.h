/* status.h - one line at the foot of the terminal while workers start: "8/8 started, 6/8 joined,
 * 12 s". Gone when anything else is written there.
 *
 * Workers have the terminal themselves, so nobody can know when they write before they do. The line
 * therefore stands in the terminal's last row, which is taken out of the region that scrolls
 * (DECSTBM) as long: nothing that is written meanwhile can mix with it. inotify(7) tells of the
 * first write, and the row is given back. For the output thread. */
#ifndef LAUNCHD_DAEMON_OUTPUT_STATUS_H
#define LAUNCHD_DAEMON_OUTPUT_STATUS_H

#include <stdbool.h>
#include <uv.h>

struct status {
	uv_fs_event_t writes; /* by whomever */
	bool watched;         /* the handle is in the loop */
	bool over;            /* something was written: never again */
	bool shown;
	unsigned rows; /* of the terminal, when the line was drawn */
	int fd;        /* the terminal, blocking or not */
	void (*on_over)(struct status *s);
	void *owner;
};

/* The terminal at fd, from now on. Where it can't be watched, or is none, there is no line: over.
 */
void status_init(struct status *s, uv_loop_t *loop, int fd);

/* Draws the line anew. */
void status_show(struct status *s, const char *text);

/* Takes the line away, for good. */
void status_end(struct status *s);

/* Closes the handle. */
void status_close(struct status *s);

#endif
