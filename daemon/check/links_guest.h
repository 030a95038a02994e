/* links_guest.h - a connection that a partner tries its link to us by: see links_dial.h. Nothing
 * here blocks. Times are CLOCK_MONOTONIC in us. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_GUEST_H
#define LAUNCHD_DAEMON_CHECK_LINKS_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/check/links_dial.h"

enum links_guest_state {
	LINKS_GUEST_NONE, /* the place is free */
	LINKS_GUEST_GREETING,
	LINKS_GUEST_QUEUING, /* until it is its turn */
	LINKS_GUEST_TAKING,
	LINKS_GUEST_STATES
};

struct links_guest {
	enum links_guest_state state;
	int fd;
	struct links_hello hello; /* as much as `got` bytes of it */
	size_t got;
	int64_t moved_us; /* when something last came */
};

/* A connection that has just come takes a free place. */
void links_guest_begin(struct links_guest *g, int fd, int64_t now_us);

/* What poll(2) is to look for. */
short links_guest_events(const struct links_guest *g);

/* Something is there to read, or an end. True: the greeting is complete, for the caller to look at:
 * it then says links_guest_queue() or links_guest_end(). */
bool links_guest_ready(struct links_guest *g, int64_t now_us);

void links_guest_queue(struct links_guest *g);

/* Its turn has come. */
void links_guest_admit(struct links_guest *g, int64_t now_us);

/* It carries data. */
bool links_guest_is_busy(const struct links_guest *g, int64_t now_us);

/* Also where there is none. */
void links_guest_end(struct links_guest *g);

#endif
