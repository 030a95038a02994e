/* lines.h - a stream's bytes cut into whole lines for a console. Pure.
 *
 * A line goes out whole, as prefix + text + '\n', and as a terminal would show it in the end: of
 * "a\rb\rc\n" that is "c", of "100%\r\n" it is "100%". No other byte is changed. While a line has
 * not ended, only what it shows now is kept: a progress bar of megabytes costs nothing. A line that
 * shows more than LINES_HELD_MAX bytes "opens": its prefix and text go out as they come, each '\r'
 * too, and until its '\n' nothing else may be put into that console. It also opens where there
 * is no memory for what must be held; so nothing here fails.
 *
 * What comes out doesn't depend on how the bytes were cut into calls (but for lines_break(),
 * lines_drop() and lines_show_bar(), which belong to a moment). { 0 } is the state of a new stream.
 */
#ifndef LAUNCHD_DAEMON_OUTPUT_CONSOLE_LINES_H
#define LAUNCHD_DAEMON_OUTPUT_CONSOLE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/plan/prefix.h"

enum {
	LINES_HELD_MAX = 8 * 1024 * 1024,
	/* the least room of a buffer: most lines fit while it is empty; longer ones go out in
	 * pieces, and are open as long */
	LINES_ROOM_MIN = 64 * 1024 + PREFIX_MAX + 64,
};

/* A console's bytes that are not written yet; the owner writes them and moves the rest down. */
struct outbuf {
	char *at;
	size_t len, room; /* room >= LINES_ROOM_MIN */
};

struct lines_style {
	const char *prefix; /* rendered; may hold any byte; NULL where prefix_len is 0 */
	size_t prefix_len;  /* <= PREFIX_MAX */
	/* Whether a line is put at all, by its text without prefix and '\n'; NULL: all are. Of a
	 * line that opens it sees what was held. It may be asked twice about a line. */
	bool (*keep)(const char *text, size_t len, void *data);
	void *data;
	size_t held_max; /* 0: LINES_HELD_MAX */
};

struct lines {
	char *held; /* what the line that has not ended shows: no '\r', no '\n'; see lines_done() */
	size_t len, room;
	bool cr;      /* a '\r' came behind it: any other byte but '\n' begins anew */
	bool bar;     /* this line had a '\r': it is a progress bar */
	bool pouring; /* what is held goes out piece by piece: what it was taken from comes again */
	size_t poured; /* of it */
	bool said;     /* what is held is out already as a line: an end alone puts nothing */
	bool open;     /* its start is out, without '\n': nothing but this line may follow there */
	bool dropping; /* the rest of this line is dropped, too */
};

/* Puts every whole line into out and keeps the start of the one that has not ended. How many bytes
 * were taken: fewer than len only when out is full. Then write some of out and come again with the
 * rest, in this style or another (a new time), or give the rest to lines_drop(). An out that is
 * empty always lets it go on. */
size_t lines_take(struct lines *l, const char *at, size_t len, const struct lines_style *style,
	struct outbuf *out);

/* The stream has ended: so has its last line. The state is that of a new stream.
 * -ENOBUFS: out is full, nothing has changed; come again. */
int lines_end(struct lines *l, const struct lines_style *style, struct outbuf *out);

/* Breaks an open line off with '\n'; what it says further goes on as a line of its own, with its
 * prefix. Nothing is done where none is open. Room for the '\n' is there as long as only this line
 * was put since it opened; otherwise -ENOBUFS. */
int lines_break(struct lines *l, struct outbuf *out);

/* How many lines end in these bytes. */
size_t lines_count(const char *at, size_t len);

/* Drops bytes that lines_take() would have got, and all of the line that they start in and of the
 * one that they end in; an open line is broken off first (see there). How many lines are lost by
 * it, at least in part; a line counts once, however many calls it takes. -ENOBUFS as above. */
ssize_t lines_drop(struct lines *l, const char *at, size_t len, struct outbuf *out);

/* Puts what a progress bar shows now as a line of its own: 1. The bar goes on; where nothing but
 * its end follows it is not said twice. 0: there is no bar, or nothing new. -ENOBUFS: out is full.
 */
int lines_show_bar(struct lines *l, const struct lines_style *style, struct outbuf *out);

/* What a line shows, its '\n' not counted: what stands behind its last '\r' that has something
 * behind it. In *len its length. */
const char *lines_shown(const char *text, size_t *len);

/* Frees what is held; the state is that of a new stream. */
void lines_done(struct lines *l);

#endif
