/* mount_check.h - whether file servers answer. */
#ifndef LAUNCHD_DAEMON_CHECK_MOUNT_CHECK_H
#define LAUNCHD_DAEMON_CHECK_MOUNT_CHECK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct tasks;

enum { MOUNT_PATH_MAX = PATH_MAX };

/* What a line of /proc/self/mountinfo mounts, if it is a file system of a network or of a process,
 * which may not answer. Pure. */
bool mount_of_line(const char *line, char ret_path[MOUNT_PATH_MAX]);

/* Adds a task for each of them. */
void mount_check_add(struct tasks *all);

#endif
