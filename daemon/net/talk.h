/* talk.h - the link's own frames, below its owner's messages: handshake, pings, resumption. Only
 * for link.c, with what talk.c needs of it. */
#ifndef LAUNCHD_DAEMON_NET_TALK_H
#define LAUNCHD_DAEMON_NET_TALK_H

#include <stddef.h>

#include "daemon/net/link.h"

/* The connection is there: state LINK_HELLO. The dialer speaks first. */
void talk_begin(struct link *l);

/* A frame has come. It may end the link. */
void talk_hear(struct link *l, const struct frame *f);

/* What came is not a frame: rc of frame_stream_next(). Ends the link. */
void talk_garbled(struct link *l, int rc);

/* By link.c: */

/* Sends a frame of any type. As link_send(). */
int link_put(struct link *l, unsigned type, const void *payload, size_t len);

/* Ends the link at once. The first reason that was given counts. */
__attribute__((format(printf, 3, 4))) void link_fail(
	struct link *l, enum link_end end, const char *fmt, ...);

/* The only writer of a link's state. */
void link_goto(struct link *l, enum link_state next);

/* One handle less is open; if it was the last one, the link is closed. */
void link_handle_closed(struct link *l);

/* Makes this descriptor, which it takes, the link's connection instead of the one it has or had;
 * nothing is read yet. -ENOMEM: nothing was done. */
int link_put_under(struct link *l, int fd);
void link_start_reading(struct link *l);

/* Sends the stream over the connection from this offset on, with zeros for what isn't kept any
 * more, as the peer has it already. Negative errno: the link was ended. */
int link_resend(struct link *l, uint64_t from);

#endif
