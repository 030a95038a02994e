/* links_talk.h - tries the links of one node: sends to each of its partners, and takes what they
 * send, all at once in one loop that blocks until it is done or out of time.
 *
 * Everybody dials each of its partners, so that each direction of a pair is a connection of its
 * own, and told by its sender. Nodes need not be in step: whoever is dialled answers whenever it
 * comes, and goes only when its partners have said that they are done. But of the connections to a
 * node only one carries data at a time, and of those from it one, as they would share the link. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_TALK_H
#define LAUNCHD_DAEMON_CHECK_LINKS_TALK_H

#include <stdint.h>

#include "daemon/check/links_dial.h"
#include "daemon/check/links_told.h"

struct failure;

struct links_talk {
	int listener;
	unsigned node;  /* this one */
	uint64_t token; /* its own */
	unsigned count; /* of partners */
	struct links_partner partners[LINKS_ROUNDS_MAX];
	int64_t until_ms; /* CLOCK_MONOTONIC, at the latest; it ends LINKS_TALK_MS after its start
			   */
};

enum { LINKS_TALK_MS = 4500 };

/* Fills ret's links. What poll(2) says. */
int links_talk(const struct links_talk *how, struct links_told *ret, struct failure *why);

#endif
