/* status.c - see status.h */
#include "daemon/output/console/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/sm.h"
#include "common/text.h"

enum { ROWS_MIN = 4 }; /* of less there is nothing to take away */

static const struct sm_state states[STATUS_STATES] = {
	[STATUS_NONE] = { "none", SM_TO(STATUS_HIDDEN) | SM_TO(STATUS_OVER) },
	[STATUS_HIDDEN] = { "hidden", SM_TO(STATUS_SHOWN) | SM_TO(STATUS_OVER) },
	[STATUS_SHOWN] = { "shown", SM_TO(STATUS_OVER) },
	[STATUS_OVER] = { "over", 0 },
};

const struct sm status_life = { "status line", states, STATUS_STATES };

/* One write, which no other process's comes into; a terminal that is full goes without. */
static void put(const struct status *s, struct text *t)
{
	(void)!write(s->fd, text_string(t), t->len);
	text_done(t);
}

static void status_goto(struct status *s, enum status_state next)
{
	enum status_state before = s->state;
	struct text out = { 0 };

	s->state = sm_go(&status_life, s->state, next);
	if (next != STATUS_OVER)
		return;
	(void)uv_fs_event_stop(&s->writes);
	if (before == STATUS_SHOWN) {
		text_printf(&out, "\0337\033[1;%ur\033[%u;1H\033[2K\0338", s->rows, s->rows);
		put(s, &out);
	}
	if (s->on_over)
		s->on_over(s);
}

static void on_write(uv_fs_event_t *h, const char *name, int events, int status)
{
	(void)name, (void)events, (void)status;
	status_end(h->data);
}

static bool watch(struct status *s)
{
	char path[64];

	return ttyname_r(s->fd, path, sizeof path) == 0 &&
		uv_fs_event_start(&s->writes, on_write, path, 0) == 0;
}

void status_open(
	struct status *s, uv_loop_t *loop, int fd, void (*on_over)(struct status *s), void *owner)
{
	const char *term = getenv("TERM");

	*s = (struct status){ .fd = fd, .on_over = on_over, .owner = owner };
	(void)uv_fs_event_init(loop, &s->writes); /* can't fail */
	s->writes.data = s;
	status_goto(s,
		isatty(fd) && term && strcmp(term, "dumb") != 0 && watch(s) ? STATUS_HIDDEN :
									      STATUS_OVER);
}

void status_show(struct status *s, const char *text)
{
	struct winsize size = { 0 };
	struct text out = { 0 };

	if (s->state == STATUS_OVER)
		return;
	(void)ioctl(s->fd, TIOCGWINSZ, &size);
	if (size.ws_row < ROWS_MIN || size.ws_col == 0 ||
		(s->state == STATUS_SHOWN && size.ws_row != s->rows)) {
		status_end(s); /* nowhere to stand, or the window has changed */
		return;
	}
	(void)uv_fs_event_stop(&s->writes); /* of our own we need not hear */
	if (s->state == STATUS_HIDDEN) {
		/* a free row below, out of the region, and the cursor back into it */
		text_printf(&out, "\033D\0337\033[1;%dr\0338\033[1A", size.ws_row - 1);
		status_goto(s, STATUS_SHOWN);
	}
	text_printf(&out, "\0337\033[%u;1H\033[2K%.*s\0338", size.ws_row,
		size.ws_col > 1 ? size.ws_col - 1 : 1, text);
	put(s, &out);
	s->rows = size.ws_row;
	if (!watch(s))
		status_end(s);
}

void status_end(struct status *s)
{
	if (s->state == STATUS_HIDDEN || s->state == STATUS_SHOWN)
		status_goto(s, STATUS_OVER);
}

void status_close(struct status *s)
{
	if (s->state == STATUS_NONE)
		return;
	s->on_over = NULL;
	status_end(s);
	uv_close((uv_handle_t *)&s->writes, NULL);
}
