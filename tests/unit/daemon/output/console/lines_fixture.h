/* lines_fixture.h - what tests of daemon/output/console/lines.h share: the same rules said as
 * simply as they can be, and a console's stand-in that takes bytes in pieces. No cmocka: the fuzz
 * target uses it, too. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_LINES_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_LINES_FIXTURE_H

#include <stdint.h>

#include "common/text.h"
#include "daemon/output/console/lines.h"

/* The styles' held_max in all tests: less than a buffer's room. */
enum { HELD_MAX = 64 * 1024 };

/* Adds what a console gets of a whole stream, its end included. */
void plain_lines(const char *at, size_t len, const struct lines_style *style, struct text *ret);

/* A stand-in for a console, whose buffer is as small as it may be, and lies in memory of that size.
 */
struct sink {
	struct outbuf out;
	struct text got; /* what was written of it */
};

/* Aborts when there is no memory, as the others do. */
void sink_make(struct sink *c);
void sink_done(struct sink *c);

/* Writes at most that many bytes. */
void sink_write(struct sink *c, size_t most);

/* A stream, in memory of its own size so that a look too far is seen. Each call takes a piece of at
 * most `piece` bytes, again until all is taken; when out is full, it is written whole. */
void sink_take(struct sink *c, struct lines *l, const char *at, size_t len, size_t piece,
	const struct lines_style *style);
void sink_end(struct sink *c, struct lines *l, const struct lines_style *style);

/* A text in which each 'L' has become HELD_MAX bytes 'x' and each 'M' one more: what is too
 * long for a source. The caller's. */
struct text lines_unfold(const char *folded, size_t len);

bool text_is(const struct text *got, const struct text *expected);

/* xorshift: a number below `below`, the same for the same seed. The seed is not 0. */
size_t draw_below(uint64_t *seed, size_t below);

#endif
