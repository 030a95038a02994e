/* replace.h - a file gets new contents at once: who reads it sees the old ones or the new. */
#ifndef LAUNCHD_DAEMON_OS_REPLACE_H
#define LAUNCHD_DAEMON_OS_REPLACE_H

#include <stddef.h>

enum {
	REPLACE_DURABLY = 1, /* the bytes are on the disk when it returns, where that can be */
	REPLACE_FOR_ALL = 2, /* anybody may read it, whatever the umask is */
};

/* Writes a file beside it, whose name begins with path and ends with a number, and renames that. A
 * link stays a link; into what is no regular file, or a mount point, the bytes are written. Waits
 * for the disk.
 * Negative errno: the file is as it was, and none is left beside it. */
int file_replace(const char *path, const char *bytes, size_t len, unsigned how);

#endif
