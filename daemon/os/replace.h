/* replace.h - a file gets new contents at once: who reads it sees the old ones or the new. */
#ifndef LAUNCHD_DAEMON_OS_REPLACE_H
#define LAUNCHD_DAEMON_OS_REPLACE_H

#include <stddef.h>
#include <stdint.h>

enum {
	REPLACE_DURABLY = 1, /* the bytes are on the disk when it returns, where that can be */
	REPLACE_FOR_ALL = 2, /* anybody may read it, whatever the umask is */
};

/* Writes a file beside it, whose name begins with path and ends with a number, and renames that. A
 * link stays a link; into what is no regular file, or a mount point, the bytes are written. Waits
 * for the disk, and for no reader.
 * Negative errno: the file is as it was, and none is left beside it. */
int file_replace(const char *path, const char *bytes, size_t len, unsigned how);

/* The same at the end of this process, by a child: a file system that hangs is given up. Blocks for
 * last_files_left_ms() at most, or for less as patience.h has it. -ETIMEDOUT: it was given up;
 * -EIO: the child has died. Only the main thread may call it. */
int file_replace_last(const char *path, const char *bytes, size_t len, unsigned how);

/* Does something else with a path by a child, such as its removal, and returns what work(what)
 * returns. limit_ms 0: at the end of this process, as file_replace_last(). Where the path can't
 * hang, there is no child. */
int path_touch(
	const char *path, uint64_t limit_ms, int (*work)(const void *what), const void *what);

/* A child writes to a far file (rehearsal.h), whose file system may hang: -EAGAIN, after ms. */
int far_write(int fd, const char *bytes, size_t len, int64_t ms);

/* How long the next one of these files may take: PATIENCE_MOST_MS for all of them together, and at
 * least PATIENCE_ASKED_MS for each. */
int last_files_left_ms(void);

/* A file system hangs already: each of them has PATIENCE_ASKED_MS. */
void last_files_hurry(void);

/* What a negative errno of these means. */
const char *file_error(int rc);

#endif
