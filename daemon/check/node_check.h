/* node_check.h - what the kernel says of this node: memory, disks and clock. */
#ifndef LAUNCHD_DAEMON_CHECK_NODE_CHECK_H
#define LAUNCHD_DAEMON_CHECK_NODE_CHECK_H

#include <stdint.h>

struct quick_input;
struct statvfs;
struct tasks;

/* Adds a task for each but /dev/shm. */
void node_check_add(const struct quick_input *in, struct tasks *all);

/* /dev/shm, of which several GPUs need more. */
void shm_check_add(const struct quick_input *in, struct tasks *all, unsigned gpus);

/* The file system of a path, or of where it would be made: of the nearest directory above it that
 * is there. May hang with it. Errors of statvfs(3). */
int statvfs_above(const char *path, struct statvfs *ret);

/* For those who are not root. */
uint64_t bytes_free(const struct statvfs *fs);

#endif
