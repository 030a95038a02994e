/* meet.h - what the nodes of a check send each other while they measure: one line per node and
 * phase. The launchers carry it over the control channel, so a check needs no port of its own.
 *
 * A node's checking process and its launcher share the room; a byte on the socket between them
 * means that something was put there. */
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
	char all[MEET_ALL_MAX]; /* each with a newline, by node rank; "": that node sent none */
};

struct meet {
	struct meet_room *room;
	int fd; /* to the launcher */
};

/* Sends this node's line, and waits for the lines of all nodes until until_ms (monotonic_ms()).
 * -ETIMEDOUT: not all have come. */
int meet_others(const struct meet *m, const char *line, int64_t until_ms);

/* Copies the line of a node; "": it sent none. */
void meet_line(const struct meet *m, unsigned node, char ret[MEET_LINE_MAX]);

/* Wakes the other side: something is in the room. */
void meet_ring(int fd);

/* In the launcher: hands the lines of all nodes over. Returns whether they fit. */
bool meet_answer(struct meet_room *room, int fd, const char *all, size_t len);

#endif
