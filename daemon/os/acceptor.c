/* acceptor.c - see acceptor.h */
#include "daemon/os/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/address.h"
#include "common/fd.h"

enum { AT_ONCE = 64 };

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void acceptor_open(struct acceptor *a)
{
	a->spare = open_spare();
	a->closed = false;
}

/* Without a free descriptor accept4(2) says so whether a connection waits or not. */
static bool is_waiting(int listening)
{
	struct pollfd p = { .fd = listening, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Takes one with the spare descriptor. False: there is none any more, or somebody else had it. */
static bool shed(struct acceptor *a, int listening)
{
	int fd;

	fd_closep(&a->spare);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	a->spare = open_spare();
	if (fd >= 0 && a->on_dropped)
		a->on_dropped(a);
	return fd >= 0;
}

/* False: none waits. */
static bool accept_one(struct acceptor *a, int listening)
{
	struct address from = { 0 };
	socklen_t len = sizeof from;
	int fd = accept4(listening, &from.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		a->on_connection(a, fd, &from);
	else if (errno == EMFILE || errno == ENFILE)
		return is_waiting(listening) &&
			((a->make_room && a->make_room(a)) || shed(a, listening));
	else if (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS)
		return false;
	return true; /* other errors are those of one connection that broke: see accept(2) */
}

bool acceptor_run(struct acceptor *a, int listening)
{
	unsigned most = a->at_once ? a->at_once : AT_ONCE;

	for (unsigned i = 0; i < most; i++)
		if (a->closed || !accept_one(a, listening))
			return false;
	return true;
}

void acceptor_close(struct acceptor *a)
{
	a->closed = true;
	fd_closep(&a->spare);
}
