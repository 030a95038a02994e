/* rehearsal.h - files that a file system which hangs must not keep the launcher from naming: a
 * child touches them first. Even SIGKILL doesn't end a process that hangs there, and this one has
 * an exit code to return. */
#ifndef LAUNCHD_DAEMON_OS_REHEARSAL_H
#define LAUNCHD_DAEMON_OS_REHEARSAL_H

#include <stdbool.h>

struct failure;

/* Whether touching a path may hang: it leaves the mount of the root directory, without which no
 * process runs at all, or, below /tmp, /run and their like, the mount of that. Doesn't touch
 * anything beyond, and costs one or two system calls. Also true where the kernel doesn't tell
 * (before Linux 5.6); NULL and "" are never far. */
bool path_is_far(const char *path);

/* The same for an open file: its path, of at most PATH_MAX bytes, or false. Devices are never far.
 */
bool file_is_far(int fd, char *ret_path);

/* Lets a child do what the caller will do next, for rehearsal_path() to name each path there before
 * it is touched. Blocks for PATIENCE_MOST_MS at most. -ETIMEDOUT, and "WHERE: PATH: its file system
 * does not respond": it hangs. Whatever else becomes of it is ignored: the caller finds out. */
int rehearse(void (*work)(const void *how), const void *how, struct failure *why);

/* In the child: where ("--report", "TMPDIR", "") asks for this path, which is touched next.
 * Elsewhere it does nothing. */
void rehearsal_path(const char *where, const char *path);

/* The same for a single file, if it is far, which is read: a FIFO and a device are only looked at.
 */
int path_answers(const char *where, const char *path, struct failure *why);

enum { PATH_SOON_MS = 1500 };

/* The same for the event loop, which may not wait so long: within PATH_SOON_MS. */
int path_answers_soon(const char *path, struct failure *why);

#endif
