/* keep.h - the files of a bundle: DIR/failure-.../node-N/, with bundle.json, story.txt, and what
 * the sources leave; index.json in the failure's directory. Waits for the disk: for a child.
 *
 * What is removed again has a name of ours and the mark that we leave in each failure's directory.
 */
#ifndef LAUNCHD_DAEMON_BLACKBOX_KEEP_H
#define LAUNCHD_DAEMON_BLACKBOX_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct failure;

#define KEEP_WHOLE "flight-recorder."

enum {
	KEEP_MAX_BYTES = 20 << 20, /* of one node's part */
	KEEP_TAIL_LINES = 200,
	KEEP_TAIL_BYTES = 256 << 10,
};

/* Makes DIR/NAME with what is missing above it. Returns an open directory, or negative errno with a
 * sentence. */
int keep_open_failure(const char *dir, const char *name, struct failure *why);

/* Makes a node's directory in it, and opens that. As above. */
int keep_open_node(int failure_fd, unsigned node, struct failure *why);

/* The path of an open directory. Negative errno: the kernel does not tell. */
int keep_path(int dir_fd, char *ret, size_t room);

/* Writes a file in an open directory, whole or not at all. Negative errno with a sentence. */
int keep_write(int dir_fd, const char *name, const char *bytes, size_t len, struct failure *why);

/* Writes the last KEEP_TAIL_LINES lines of a log, at most KEEP_TAIL_BYTES of them, to a file of
 * that name. 0 where there is no such log, or nothing in it. Negative errno with a sentence. */
int keep_tail(int dir_fd, const char *name, const char *log, struct failure *why);

/* Cuts the longest files of an open directory to one length, so that all have max bytes together:
 * of each the end stays, below a line that says so. Files whose names begin with KEEP_WHOLE aren't
 * cut: a part of one can't be read, and who writes them has a limit. How many were cut; negative
 * errno: not all could be. */
int keep_within(int dir_fd, uint64_t max_bytes);

/* Removes failures in dir but for the newest `keep`, and `mine`. How many went. What can't be
 * removed stays. */
unsigned keep_newest(const char *dir, unsigned keep, const char *mine);

#endif
