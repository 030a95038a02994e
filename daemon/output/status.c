/* status.c - see status.h */
#include "daemon/output/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/text.h"

enum { ROWS_MIN = 4 }; /* of less there is nothing to take away */

static void put(const struct status *s, const struct text *t)
{
	/* one write, which no other process's comes into; a terminal that is full goes without */
	(void)!write(s->fd, text_string(t), t->len);
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

void status_init(struct status *s, uv_loop_t *loop, int fd)
{
	const char *term = getenv("TERM");

	s->fd = fd;
	s->watched = uv_fs_event_init(loop, &s->writes) == 0;
	s->writes.data = s;
	s->over = !s->watched || !isatty(fd) || !term || strcmp(term, "dumb") == 0 || !watch(s);
}

static unsigned rows_of(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row >= ROWS_MIN && size.ws_col > 0 ?
		size.ws_row :
		0;
}

static unsigned columns_of(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void status_show(struct status *s, const char *text)
{
	unsigned rows = rows_of(s->fd), columns = columns_of(s->fd);
	struct text out = { 0 };

	if (s->over)
		return;
	if (rows == 0 || (s->shown && rows != s->rows)) {
		status_end(s); /* nowhere to stand, or the window has changed */
		return;
	}
	(void)uv_fs_event_stop(&s->writes); /* of our own we need not hear */
	if (!s->shown) /* a free row below, out of the region, and the cursor back into it */
		text_printf(&out, "\033D\0337\033[1;%ur\0338\033[1A", rows - 1);
	text_printf(&out, "\0337\033[%u;1H\033[2K%.*s\0338", rows,
		(int)(columns > 1 ? columns - 1 : 1), text);
	put(s, &out);
	text_done(&out);
	s->shown = true;
	s->rows = rows;
	if (!watch(s))
		status_end(s);
}

void status_end(struct status *s)
{
	struct text out = { 0 };

	if (s->watched)
		(void)uv_fs_event_stop(&s->writes);
	if (s->shown) {
		text_printf(&out, "\0337\033[1;%ur\033[%u;1H\033[2K\0338", s->rows, s->rows);
		put(s, &out);
		text_done(&out);
	}
	s->shown = false;
	if (s->over)
		return;
	s->over = true;
	if (s->on_over)
		s->on_over(s);
}

void status_close(struct status *s)
{
	s->on_over = NULL;
	status_end(s);
	if (s->watched)
		uv_close((uv_handle_t *)&s->writes, NULL);
}
