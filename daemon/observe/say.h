/* say.h - launchd's own words on stderr: "launchd: level: text", or a JSON object a line. */
#ifndef LAUNCHD_DAEMON_OBSERVE_SAY_H
#define LAUNCHD_DAEMON_OBSERVE_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* Says one line; level: "note", "warning", "error". That it can't be said must not end the job. */
void say(const char *level, const char *line);

/* Says a text of whole lines "launchd: level: text" and empties it. */
void say_text(struct text *lines);

/* From now on a stderr that takes nothing for so long gets nothing more; before that it is
 * PATIENCE_MOST_MS. It is tried anew. 0: stderr gets nothing. */
void say_patience(int64_t ms);

/* Writes bytes to stderr, in the same way, whatever say_through() says. */
void say_raw(const char *at, size_t len);

/* The last line on stderr has no end: it gets one, should anything more be said. */
void say_mid_line(void);

/* From now on lines are JSON objects; see saying.h. */
void say_json(void);

/* The node rank that JSON lines carry from now on; before it is known that is null. */
void say_node(unsigned node_rank);

/* From now on whole lines go there, one or more a call, and not to stderr, where they would block
 * as long as nobody reads it. write NULL: to stderr again. It must not say anything itself. */
void say_through(void (*write)(void *owner, const char *bytes, size_t len), void *owner);

/* From now on whole lines go there first, and then, unless it returns true, the way they go without
 * it. first NULL: nowhere. As above. */
void say_first_to(bool (*first)(void *owner, const char *bytes, size_t len), void *owner);

/* Writes a text to stdout and empties it; returns main's exit code. */
int print_text(struct text *out);

#endif
