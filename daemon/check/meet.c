/* meet.c - see meet.h */
#include "daemon/check/meet.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/monotonic.h"

void meet_ring(int fd)
{
	(void)send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* one that waits there does as well */
}

int meet_others(const struct meet *m, const char *line, int64_t until_ms)
{
	struct pollfd p = { .fd = m->fd, .events = POLLIN };
	int left = 1;
	char byte;

	(void)snprintf(m->room->line, sizeof m->room->line, "%s", line);
	m->room->said = true;
	meet_ring(m->fd);
	while (!m->room->answered && left > 0) {
		left = monotonic_left_ms(until_ms);
		if (poll(&p, 1, left) > 0 && recv(m->fd, &byte, 1, MSG_DONTWAIT) == 0)
			break; /* the launcher has gone */
	}
	return m->room->answered ? 0 : -ETIMEDOUT;
}

void meet_line(const struct meet *m, unsigned node, char ret[MEET_LINE_MAX])
{
	const char *at = m->room->all, *end = at + m->room->len;
	const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

	for (; newline && node > 0; node--) {
		at = newline + 1;
		newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	}
	(void)snprintf(ret, MEET_LINE_MAX, "%.*s", newline ? (int)(newline - at) : 0, at);
}

bool meet_answer(struct meet_room *room, int fd, const char *all, size_t len)
{
	if (len > MEET_ALL_MAX)
		return false;
	memcpy(room->all, all, len);
	room->len = len;
	room->answered = true;
	meet_ring(fd);
	return true;
}
