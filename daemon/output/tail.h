/* tail.h - the last words of one worker: the last bytes of its stdout and stderr, in the order in
 * which they came, and the lines that they are. Pure. */
#ifndef LAUNCHD_DAEMON_OUTPUT_TAIL_H
#define LAUNCHD_DAEMON_OUTPUT_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

enum {
	TAIL_BYTES = 16 * 1024,
	/* Bytes of one stream that came without one of the other between them are a run; with more
	 * runs than this, fewer bytes are kept. */
	TAIL_RUNS = 1024,
	TAIL_TEXT_MAX = 8 * 1024,
};

struct tail_kept; /* the memory; there is none before the first byte */

/* { 0 } is a worker that has said nothing. */
struct tail {
	struct tail_kept *kept;
	uint64_t bytes[2]; /* that came at all: stdout, stderr */
};

/* Bytes of stream fd (1 or 2). Where there is no memory, none are kept. */
void tail_add(struct tail *t, int fd, const char *at, size_t len);

struct tail_line {
	int fd;
	const char *at; /* what the line shows: behind its last '\r', without '\n'; any bytes */
	size_t len;
	bool cut; /* what it shows began before what is kept */
};

/* The last lines, max of them or fewer, in the order in which they ended; a line that has not ended
 * ends with its last byte. Each is of one stream, whole, however its pieces came. Empty lines
 * behind all others are left out. How many; *ret and the lines are the arena's. */
size_t tail_lines(const struct tail *t, unsigned max, struct arena *arena, struct tail_line **ret);

/* The same as one text, lines divided by '\n', without one at its end; "" where there are none. It
 * has at most TAIL_TEXT_MAX bytes: as many of the last lines as fit whole; of a last line that is
 * longer, its end. What was cut at its start starts with "...". NUL bytes are '?'. The arena's. */
const char *tail_text(const struct tail *t, unsigned max, struct arena *arena);

/* What each of several workers has said last, as tail_text() has it. */
struct tails {
	struct arena memory;
	unsigned count, max; /* of lines: so many were asked for */
	const char **of;     /* in the order of their local ranks; "": nothing that is known */
	uint64_t *bytes;     /* that came of each at all */
};

/* Memory for so many workers; NULL: there is none. */
struct tails *tails_new(unsigned count, unsigned max);

/* NULL is allowed. */
void tails_free(struct tails *t);

/* Frees; nothing was said. */
void tail_done(struct tail *t);

#endif
