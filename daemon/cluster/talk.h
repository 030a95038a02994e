/* talk.h - what is said over a link, below the owner's messages: the handshake, pings, beats.
 * For link.c and link_send.c only, and what talk.c needs of them. */
#ifndef LAUNCHD_DAEMON_CLUSTER_TALK_H
#define LAUNCHD_DAEMON_CLUSTER_TALK_H

#include <stddef.h>

#include "daemon/cluster/link.h"

/* The connection is there: state LINK_HELLO. The dialer speaks first. */
void talk_begin(struct link *l);

/* A frame has come. It may end the link. */
void talk_hear(struct link *l, const struct frame *f);

/* What came is no frame: rc of frame_stream_next(). Ends the link. */
void talk_garbled(struct link *l, int rc);

/* By link.c: */

/* Sends a frame of any type. As link_send(). */
int link_put(struct link *l, unsigned type, const void *payload, size_t len);

/* Ends the link at once, for the first reason that is given. */
__attribute__((format(printf, 3, 4))) void link_fail(
	struct link *l, enum link_end end, const char *fmt, ...);

/* The handshake is over: no time limit any more. */
void link_opened(struct link *l);

#endif
