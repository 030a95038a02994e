/* console_open.c - what a console is made of; see console.h */
#include "daemon/output/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"

enum {
	OUT_ROOM = 128 * 1024,
	PIPE_BYTES = 256 * 1024, /* a reader that is woken less often is faster: 1.3 to 1.8 x */
};

/* A file of our own for the same pipe or terminal: what is non-blocking there stays blocking for
 * mpirun, the shell and the workers that have it, too. */
static int open_again(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum console_kind kind_of(int fd, int *ret_again)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return CONSOLE_FILE;
	if (S_ISSOCK(st.st_mode))
		return CONSOLE_SOCKET;
	if (S_ISFIFO(st.st_mode) || isatty(fd)) {
		*ret_again = open_again(fd);
		if (S_ISFIFO(st.st_mode) && fcntl(fd, F_GETPIPE_SZ) < PIPE_BYTES)
			(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* we may not have so much */
		/* another user's terminal (su): then it may make us wait */
		return *ret_again < 0 ? CONSOLE_FILE : CONSOLE_POLLED;
	}
	return CONSOLE_FILE;
}

/* What all kinds have. */
static int begin_open(struct console *c, uv_loop_t *loop)
{
	c->out = (struct outbuf){ .at = malloc(OUT_ROOM), .room = OUT_ROOM };
	(void)uv_timer_init(loop, &c->silence); /* can't fail */
	(void)uv_timer_init(loop, &c->patience);
	c->silence.data = c->patience.data = c;
	c->handles = 2;
	return c->out.at ? 0 : -ENOMEM;
}

int console_open_remote(struct console *c, uv_loop_t *loop,
	ssize_t (*write)(const struct console *c, const char *at, size_t len), void *owner)
{
	*c = (struct console){ .fd = -1,
		.epoll = -1,
		.kind = CONSOLE_REMOTE,
		.drops = true,
		.write = write,
		.owner_of_write = owner };
	return begin_open(c, loop);
}

int console_open(struct console *c, uv_loop_t *loop, int fd)
{
	struct epoll_event writable = { .events = EPOLLOUT };
	int again = -1, rc;

	*c = (struct console){ .fd = fd, .epoll = -1 };
	c->kind = kind_of(fd, &again);
	if (c->kind == CONSOLE_POLLED)
		c->fd = again;
	rc = begin_open(c, loop);
	if (rc < 0 || c->kind == CONSOLE_FILE)
		return rc;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->fd, &writable) < 0)
		return -errno;
	rc = uv_poll_init(loop, &c->poll, c->epoll);
	if (rc < 0)
		return rc;
	c->poll.data = c;
	c->handles = 3;
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct console *c = h->data;

	c->handles--;
}

void console_close(struct console *c)
{
	if (c->handles >= 2) {
		uv_close((uv_handle_t *)&c->silence, on_closed);
		uv_close((uv_handle_t *)&c->patience, on_closed);
	}
	if (c->handles >= 3)
		uv_close((uv_handle_t *)&c->poll, on_closed);
}

void console_done(struct console *c)
{
	fd_closep(&c->epoll);
	if (c->kind == CONSOLE_POLLED)
		fd_closep(&c->fd);
	free(c->out.at);
	c->out = (struct outbuf){ 0 };
	text_done(&c->words);
}
