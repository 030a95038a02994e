/* links_told.h - what a node tells of its links, as it goes to node rank 0. Pure. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_TOLD_H
#define LAUNCHD_DAEMON_CHECK_LINKS_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/check/links_rounds.h"

struct failure;
struct text;

/* How far sending to a partner came. */
enum links_result {
	LINKS_UNTRIED,   /* the partner hadn't come in time, or there was none left */
	LINKS_UNREACHED, /* connecting got no answer, or the network's that there is no way */
	LINKS_REFUSED,   /* nobody listened there, says its host or a firewall */
	LINKS_SILENT,    /* connected, but the partner's process said nothing */
	LINKS_BROKEN,    /* a connection that stood was reset */
	LINKS_STALLED,   /* nothing of what was sent was acknowledged */
	LINKS_BIG_LOST,  /* the same, while small packets get through */
	LINKS_DONE,
	LINKS_RESULTS
};

/* Of one direction, told by the node that sends. All but node and state are known of a link that is
 * done, and 0 else. */
struct link_told {
	unsigned node; /* the partner */
	enum links_result state;
	unsigned tries;     /* transfers */
	unsigned rtt_us;    /* the shortest */
	uint64_t bit_s;     /* in the better try */
	uint64_t net_bit_s; /* the same without the time in which the receiver's process was waited
			       for */
	unsigned segments;  /* of data, in all tries */
	unsigned resent;    /* of these, see links_tcp.h */
	unsigned segment_max; /* bytes of data in a packet, by the MTUs of both ends and between */
};

struct links_told {
	bool met;     /* all nodes were there when it began */
	unsigned mtu; /* of its interface; 0: not known */
	unsigned count;
	struct link_told at[LINKS_ROUNDS_MAX];
};

/* Adds it as a JSON object. */
void links_told_write(const struct links_told *t, struct text *out);

/* Reads it back. -EPROTO: links_told_write() made no such text; *ret is untouched then. */
int links_told_read(const char *json, struct links_told *ret, struct failure *why);

#endif
