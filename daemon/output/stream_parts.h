/* stream_parts.h - what stream.c, where a stream is read and filed, and stream_show.c, where it
 * goes to the console, share, and nobody else. */
#ifndef LAUNCHD_DAEMON_OUTPUT_STREAM_PARTS_H
#define LAUNCHD_DAEMON_OUTPUT_STREAM_PARTS_H

#include "daemon/output/stream.h"

/* Watches the pipe, or leaves it alone. */
void stream_watch(struct stream *s, bool on);

/* All of it is where it goes to. */
void stream_finish(struct stream *s);

/* How its lines look. */
struct lines_style stream_style(const struct stream *s);

/* Shows what was just read, and what of it is in the file; or keeps it, see stream.h. */
void stream_show(struct stream *s, const char *at, size_t len);

/* Fills in what the console calls. */
void stream_be_source(struct stream *s);

#endif
