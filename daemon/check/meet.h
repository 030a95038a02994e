/* meet.h - what the nodes of a check say to one another while they measure: a line each, once in a
 * phase. Their launchers carry it over the control channel, so that a check needs no port of its
 * own to meet at.
 *
 * A node's process and its launcher share the room; a byte on the socket between them says that
 * something has come there. */
#ifndef LAUNCHD_DAEMON_CHECK_MEET_H
#define LAUNCHD_DAEMON_CHECK_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEET_LINE_MAX = 128, MEET_ALL_MAX = 512 << 10 };

/* All zeros at first. */
struct meet_room {
	volatile bool said;
	char line[MEET_LINE_MAX]; /* this node's, without a newline */
	volatile bool answered;
	size_t len;
	char all[MEET_ALL_MAX]; /* each with a newline, by node rank; "": it has said none */
};

struct meet {
	struct meet_room *room;
	int fd; /* to the launcher */
};

/* Says this node's line, and waits for all lines until then: monotonic_ms(). -ETIMEDOUT: they have
 * not come. */
int meet_others(const struct meet *m, const char *line, int64_t until_ms);

/* A node's line of those that came; "": it has said none. */
void meet_line(const struct meet *m, unsigned node, char ret[MEET_LINE_MAX]);

/* Says that something is in the room. */
void meet_ring(int fd);

/* In the launcher: hands over what all have said. True: it fits. */
bool meet_answer(struct meet_room *room, int fd, const char *all, size_t len);

#endif
