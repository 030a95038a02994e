/* logfile.h - one log file: written, rotated at ends of lines, opened again, and read back by a
 * console that is behind. Waits as long as the disk does: for the output thread alone.
 *
 * A position counts the bytes that were put into the file and into those that it followed, so that
 * a reader which is behind finds its place over rotations. */
#ifndef LAUNCHD_DAEMON_OUTPUT_LOGFILE_H
#define LAUNCHD_DAEMON_OUTPUT_LOGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/output/tally.h"

struct failure;

struct logfile_style {
	uint64_t max_size_bytes; /* a file that would grow beyond is rotated; 0: never */
	unsigned keep;           /* rotated files that stay: path.1, the youngest, to path.N */
	bool stamped;            /* every line begins with its time and a blank */
};

/* A piece of the bytes that has a file of its own. */
struct segment {
	int fd;
	uint64_t begin, end; /* positions */
	off_t at;            /* the offset of `begin` in the file */
	bool mid_line;       /* its line has begun in the one before */
};

struct logfile {
	char *path;
	struct logfile_style style;
	struct segment now;  /* the file at path, but after a rename; end: what is in it */
	struct segment *old; /* those before it that a reader still needs, oldest first */
	size_t old_count;
	uint64_t size_bytes; /* of the present file, for the rotation */
	bool mid_line;       /* what was written last has not ended its line */
	bool at_return;      /* its last byte was a '\r' */
	bool told;           /* for its owner: a warning of missing bytes was given */
	uint64_t missing;    /* bytes that could not be written since the last one that could */
	int error;           /* why not, errno; 0: all is well */
	bool reads_back;     /* segments are kept for a reader */
	_Atomic uint64_t
		*written; /* counts the bytes that were, without stamps; NULL: nobody does */
};

/* Where a reader is. */
struct logplace {
	uint64_t position;
	unsigned skip;    /* bytes of a stamp that follow */
	bool line_begins; /* the next byte begins a line: a stamp follows in a stamped file */
};

/* What of a write is in the file. */
struct logged {
	size_t len;            /* this many of the bytes, from the first */
	struct logplace place; /* of the first */
};

/* Opens a new file, or goes on at the end of one that is there. On failure *f can be given to
 * logfile_close() all the same. */
int logfile_open(struct logfile *f, const char *path, const struct logfile_style *style,
	struct failure *why);

/* Appends. The wall clock's time, in ns, is for stamps. What can't be written is counted in
 * `missing`, and where the file has room again a line of it says how much is missing. */
struct logged logfile_write(struct logfile *f, const char *at, size_t len, int64_t wall_ns);

/* The place of the byte behind the first `taken` ones of such a write. */
struct logplace logfile_place(
	const struct logfile *f, const struct logged *w, const char *at, size_t taken);

/* Reads from a place, which moves on; stamps are left out. 0: nothing is there, or what was there
 * is gone (truncated, deleted) and the place has moved behind it, which *ret_gone tells in bytes;
 * else the number of bytes. Negative errno: the place has moved to the end. */
ssize_t logfile_read(const struct logfile *f, struct logplace *place, char *ret, size_t room,
	uint64_t *ret_gone);

/* Nobody reads anything before this position any more. */
void logfile_forget(struct logfile *f, uint64_t position);

/* Opens the path again, as the file was moved away. On failure the old one stays in use. */
int logfile_reopen(struct logfile *f, struct failure *why);

/* The last bytes of the present file, at most `room`. Negative errno. */
ssize_t logfile_last(const char *path, char *ret, size_t room);

/* Closes. Idempotent, also for { 0 }. */
void logfile_close(struct logfile *f);

#endif
