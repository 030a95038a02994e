/* links_guest.c - see links_guest.h */
#include "daemon/check/links_guest.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/sm.h"

enum { DROPPED_MAX = 1 << 20 }; /* bytes at once */

static const struct sm_state states[LINKS_GUEST_STATES] = {
	[LINKS_GUEST_NONE] = { "none", SM_TO(LINKS_GUEST_GREETING) },
	[LINKS_GUEST_GREETING] = { "greeting",
		SM_TO(LINKS_GUEST_QUEUING) | SM_TO(LINKS_GUEST_NONE) },
	[LINKS_GUEST_QUEUING] = { "queuing", SM_TO(LINKS_GUEST_TAKING) | SM_TO(LINKS_GUEST_NONE) },
	[LINKS_GUEST_TAKING] = { "taking", SM_TO(LINKS_GUEST_NONE) },
};
const struct sm links_guest_life = { "guest of a link", states, LINKS_GUEST_STATES };

static void guest_goto(struct links_guest *g, enum links_guest_state next)
{
	g->state = sm_go(&links_guest_life, g->state, next);
	if (next == LINKS_GUEST_NONE)
		fd_closep(&g->fd);
}

void links_guest_begin(struct links_guest *g, int fd, int64_t now_us)
{
	guest_goto(g, LINKS_GUEST_GREETING);
	g->fd = fd;
	g->got = 0;
	g->moved_us = now_us;
}

short links_guest_events(const struct links_guest *g)
{
	return g->state == LINKS_GUEST_NONE ? 0 : POLLIN;
}

/* Whether recv(2) has left the connection as it was. */
static bool is_nothing(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool greet(struct links_guest *g, int64_t now_us)
{
	ssize_t n = recv(g->fd, (char *)&g->hello + g->got, sizeof g->hello - g->got, MSG_DONTWAIT);

	if (is_nothing(n))
		return false;
	if (n <= 0) {
		links_guest_end(g);
		return false;
	}
	g->got += (size_t)n;
	g->moved_us = now_us;
	return g->got == sizeof g->hello;
}

/* Data, which nobody wants to have: MSG_TRUNC drops it inside the kernel, tcp(7). */
static void take(struct links_guest *g, int64_t now_us)
{
	const char got = LINKS_GOT;
	ssize_t n = recv(g->fd, NULL, DROPPED_MAX, MSG_DONTWAIT | MSG_TRUNC);

	if (is_nothing(n))
		return;
	g->moved_us = now_us;
	if (n > 0)
		return;
	if (n == 0)
		(void)send(g->fd, &got, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	links_guest_end(g);
}

bool links_guest_ready(struct links_guest *g, int64_t now_us)
{
	if (g->state == LINKS_GUEST_GREETING)
		return greet(g, now_us);
	if (g->state == LINKS_GUEST_TAKING)
		take(g, now_us);
	else if (g->state == LINKS_GUEST_QUEUING)
		links_guest_end(g); /* nothing may come before its turn: it is gone */
	return false;
}

void links_guest_queue(struct links_guest *g)
{
	guest_goto(g, LINKS_GUEST_QUEUING);
}

void links_guest_admit(struct links_guest *g, int64_t now_us)
{
	const char go = LINKS_GO;

	guest_goto(g, LINKS_GUEST_TAKING);
	g->moved_us = now_us;
	if (send(g->fd, &go, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		links_guest_end(g);
}

bool links_guest_is_busy(const struct links_guest *g, int64_t now_us)
{
	return g->state == LINKS_GUEST_TAKING && now_us - g->moved_us < LINKS_IDLE_US;
}

void links_guest_end(struct links_guest *g)
{
	if (g->state != LINKS_GUEST_NONE)
		guest_goto(g, LINKS_GUEST_NONE);
}
