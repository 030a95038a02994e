/* stream.h - one stream of one worker, on its way from a pipe to a log file and the console.
 *
 * Bytes go to the file first, as they are; then, as whole lines, to the console. A console that is
 * slow falls behind and reads the file again. Where there is no file, or it is full, what the
 * console has not taken is kept here, no more than one read of it, and the pipe is left alone,
 * which makes the worker wait; or lines are dropped and counted. */
#ifndef LAUNCHD_DAEMON_OUTPUT_STREAM_H
#define LAUNCHD_DAEMON_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/text.h"
#include "common/vec.h"
#include "daemon/output/console/console.h"
#include "daemon/output/filer.h"
#include "daemon/output/console/lines.h"
#include "daemon/output/logfile.h"
#include "daemon/output/tally.h"

struct followed_lines;
struct sm;
struct step_line;
struct step_lines;
struct tail;

enum {
	STREAM_READ = FILER_PIECE,
	STREAM_BAR_MS = 500, /* between two states of a bar that are shown */
};

/* Lines with one of these texts go to a file of their own, whichever worker's they are. */
struct filter {
	struct vec texts;
	struct logfile file;
	bool open; /* there is one */
};

/* Streams that are read in every turn of the loop; see streams_read(). */
struct busy {
	struct stream *first;
	size_t most; /* that was read of a stream in this turn */
};

/* What all streams of the output thread share. */
struct stream_host {
	uv_loop_t *loop;
	struct filer *filer; /* has the buffers to read into */
	struct outbuf
		again; /* for what is read again, and for filters; never less room than that */
	struct busy *busy;
	struct tally *tally;
	/* for warnings, such as that a disk is full; from this thread */
	void (*say)(void *owner, bool warning, const char *text);
	void (*stir)(void *owner); /* the consoles are to be flushed, though no pipe has anything */
	void (*await_bars)(void *owner); /* calls stream_show_bar() for each, in a moment */
	struct step_lines *steps;        /* NULL: nobody wants to know */
	bool is_followed;                /* somebody wants to hear lines: */
	/* False: there is no room for them, and nobody waits for it. */
	bool (*follow)(void *owner, const struct followed_lines *f);
	void *owner;
};

enum stream_state {
	STREAM_NEW,      /* there is no pipe; perhaps never */
	STREAM_POLLED,   /* read when the pipe has something */
	STREAM_BUSY,     /* read in every turn of the loop: see on_readable() */
	STREAM_PAUSED,   /* left alone, which makes the worker wait */
	STREAM_CLOSING,  /* nothing more comes; the loop has the handle still */
	STREAM_ENDED,    /* the console has yet to show the last of it */
	STREAM_FINISHED, /* all of it is where it goes to */
	STREAM_STATES
};

extern const struct sm stream_life;

struct stream {
	struct source source; /* for the console; first, so that one is the other */
	enum stream_state state;
	const struct stream_host *host;
	unsigned rank, local_rank;
	int fd; /* the worker's: 1 or 2 */
	int pipe;
	uv_poll_t poll;
	struct stream *next_busy;
	uint64_t read_ns; /* when something came last */
	bool draining;    /* the worker has ended: all that is in the pipe is read, come what may */

	struct logfile file;  /* see filer_wait() */
	struct logged logged; /* what of the last bytes is in it; likewise */
	bool has_file;
	struct console *console; /* NULL: none */
	struct filter *filter;   /* NULL: none */
	struct tail *tail;

	struct lines lines, filter_lines, followed_lines;
	struct step_line *step_line; /* NULL: none yet */
	uint64_t followed_lost;      /* lines that nobody who follows has heard of */
	const char *prefix_template;
	struct text prefix; /* rendered; at the time of the last read, where it has one */
	void (*render)(struct stream *s, int64_t wall_ns); /* the prefix; NULL: it never changes */

	char late_first, late_last; /* dropped while it was behind: '\n' or not; '\0': none */
	bool behind;                /* the console has yet to read the file from this place on */
	struct logplace place;
	struct text backlog; /* and then these, which are not in the file */
	size_t backlog_done;
	uint64_t dropped, dropped_said_ns; /* lines; when that was said last */
	uint64_t gone;                     /* bytes that a console found deleted */
	bool torn;                         /* and the rest of a line was among them */
	uint64_t bar_ns;                   /* when a bar was shown last, in a journal */

	void (*on_ended)(struct stream *s);
	void (*on_finished)(struct stream *s); /* after on_ended; its handle may be closing */
	void *owner;
};

/* Begins to read; the fields above `file` but pipe and what is said of it are set. Negative errno:
 * it can't be watched, and the pipe is closed. */
int stream_start(struct stream *s, int pipe);

/* Reads those that are busy; false: none is any more. */
bool streams_read(const struct stream_host *h);

/* Shows what a bar shows now, if that is new, to all who have yet to see it. */
void stream_show_bar(struct stream *s);

/* Its worker, and all that it left, have ended: reads what is there, and ends when the pipe does.
 */
void stream_drain(struct stream *s);

/* Ends it, though another process may still have the pipe's other end. */
void stream_end(struct stream *s);

/* Nobody follows its lines any more. */
void stream_unfollow(struct stream *s);

/* Frees; the loop has closed the handle. */
void stream_done(struct stream *s);

#endif
