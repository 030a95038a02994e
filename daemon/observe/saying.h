/* saying.h - launchd's own lines as JSON objects (--log-format json). Pure.
 *
 * {"v":1,"time":"2026-11-21T07:00:12.345678Z","level":"note","node":0,"text":"..."} */
#ifndef LAUNCHD_DAEMON_OBSERVE_SAYING_H
#define LAUNCHD_DAEMON_OBSERVE_SAYING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* What all lines that are said together share. */
struct saying {
	int64_t wall_ns; /* CLOCK_REALTIME */
	bool node_known; /* else node is null */
	unsigned node;   /* node rank */
};

/* Adds one line. level: "note", "warning", "error". */
void saying_add(struct text *out, const struct saying *s, const char *level, const char *text);

/* Adds an object for each line of a text of whole lines "launchd: level: text". One without a level
 * has that of the line before, the first one "note". */
void saying_add_lines(struct text *out, const struct saying *s, const char *lines, size_t len);

#endif
