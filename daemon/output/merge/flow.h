/* flow.h - bytes of lines that are held until they are taken: those of another node for this
 * console, or ours for another node's. Pure.
 *
 * Lines go out whole. Only where a line is too long to be held, the owner presses for it: it
 * "opens", as in lines.h, and goes on as it comes. */
#ifndef LAUNCHD_DAEMON_OUTPUT_MERGE_FLOW_H
#define LAUNCHD_DAEMON_OUTPUT_MERGE_FLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/output/console/lines.h"

/* { .max = n } is an empty one. */
struct flow {
	size_t max; /* bytes that may be held */
	char *at;
	size_t done, len, room; /* what is held begins at done */
	bool open;              /* the start of a line was put, without its end */
	bool cut;   /* that line was given an end: what it says further is another, if anything */
	bool ended; /* no more comes: a last line needs no end of its own */
};

/* What is held. */
size_t flow_left(const struct flow *f);

/* Holds what fits: how many bytes. Fewer than fit where there is no memory. */
size_t flow_add(struct flow *f, const char *at, size_t len);

/* Something can be put. press: also of a line that has not come to its end. */
bool flow_is_ready(const struct flow *f, bool press);

/* Puts what fits, up to the end of a line; how many of the bytes held are gone. One byte of room
 * stays while a line is open. An empty out always lets a flow go on that is ready. */
size_t flow_put(struct flow *f, struct outbuf *out, bool press);

/* Ends the line that is open. False: out is full. */
bool flow_cut(struct flow *f, struct outbuf *out);

/* Takes 1 to room bytes out of those that are held, up to the end of a line where there is one;
 * *ret_mid: there is none. */
size_t flow_take(struct flow *f, char *ret, size_t room, bool *ret_mid);

/* Frees what is held; no line is open. */
void flow_done(struct flow *f);

#endif
