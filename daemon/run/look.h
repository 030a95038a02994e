/* look.h - how this node's part of the job is at this moment. */
#ifndef LAUNCHD_DAEMON_RUN_LOOK_H
#define LAUNCHD_DAEMON_RUN_LOOK_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct run;
struct tails;
struct text;

/* Adds it as JSON: "status" of launchd-control(7). tails: what workers have written last; NULL: it
 * is not known; of each the first line_max bytes are shown, 0: all. Reads /proc. */
void look_add(const struct run *r, int64_t since_ns, const struct tails *tails, size_t line_max,
	struct text *out);

/* The last `lines` lines of a text. */
const char *last_lines(const char *text, unsigned lines);

#endif
