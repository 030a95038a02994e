/* step_socket.c - see step_socket.h */
#include "daemon/run/watch/step_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"

enum { AT_ONCE = 64, DATAGRAM_MAX = 512 };

void step_socket_read(struct step_socket *s)
{
	char text[DATAGRAM_MAX];
	uint64_t step = 0;

	if (!s->open)
		return;
	for (int i = 0; i < AT_ONCE; i++) {
		ssize_t n = recv(s->fd, text, sizeof text, MSG_DONTWAIT);
		enum progress_news news;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		news = progress_in_datagram(text, (size_t)n, &step);
		if (news != PROGRESS_NO_NEWS)
			s->on_news(s->owner, news, step);
	}
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	(void)status, (void)events;
	step_socket_read(p->data);
}

/* The directory is the user's alone. */
static int bind_to(int fd, const char *path, struct failure *why)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof at.sun_path)
		return failure_set(why, -ENAMETOOLONG,
			"--progress notify: the path of the socket is too long: %s; a shorter TMPDIR "
			"helps",
			path);
	memcpy(at.sun_path, path, strlen(path));
	if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0)
		return failure_set(why, -errno, "--progress notify: can't bind a socket to %s: %s",
			path, strerror(errno));
	return 0;
}

static bool step_socket_is_there(const struct step_socket *s, const char *path)
{
	struct stat st;

	return s->open && lstat(path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

/* A handle polls one number for ever, so the new socket replaces the old one under it. */
static int put_into_loop(struct step_socket *s, uv_loop_t *loop, int *fd)
{
	int rc;

	if (s->open) {
		(void)uv_poll_stop(&s->poll);
		return dup3(*fd, s->fd, O_CLOEXEC) < 0 ? -errno : 0;
	}
	rc = uv_poll_init(loop, &s->poll, *fd);
	if (rc == 0)
		s->fd = fd_take(fd);
	return rc;
}

int step_socket_open(struct step_socket *s, uv_loop_t *loop, const char *path, struct failure *why)
{
	autoclose fd = -1;
	struct stat st;
	int rc;

	if (step_socket_is_there(s, path))
		return 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failure_set(
			why, -errno, "--progress notify: can't make a socket: %s", strerror(errno));
	rc = bind_to(fd, path, why);
	if (rc < 0)
		return rc;
	rc = put_into_loop(s, loop, &fd);
	if (rc < 0)
		return failure_set(
			why, rc, "--progress notify: can't watch the socket: %s", uv_strerror(rc));
	if (lstat(path, &st) == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	s->poll.data = s;
	s->open = true;
	(void)uv_poll_start(&s->poll, UV_READABLE, on_readable); /* can't fail */
	return 0;
}

void step_socket_close(struct step_socket *s)
{
	if (!s->open)
		return;
	s->open = false;
	uv_close((uv_handle_t *)&s->poll, NULL);
	fd_closep(&s->fd); /* libuv polls it no more */
}
