/* spaces.h - the file systems that a job writes to, and what is free there: whether an attempt has
 * filled one is known only beside what was free before the first attempt. */
#ifndef LAUNCHD_DAEMON_CHECK_SPACES_H
#define LAUNCHD_DAEMON_CHECK_SPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/check/finding.h"

struct settings;
struct statvfs;
struct text;

enum { SPACES = 4 };

/* What was free once. Flat: a child writes it where its parent reads it. */
struct disk_space {
	volatile bool known; /* the rest is there */
	uint64_t file_system, bytes, inodes;
};

/* Lists the directories that are judged: /dev/shm, the log directory, TMPDIR, the working
 * directory; NULL in place of a missing one. Borrowed from the settings and the environment. */
void spaces_list(const struct settings *s, const char *const *env, const char *ret[SPACES]);

/* Reads each of them, one after the other. May block where a file system hangs. */
void spaces_read(const char *const dirs[SPACES], struct disk_space ret[SPACES]);

/* Decides whether a file system was filled since the first attempt; why describes what is free
 * then. UNKNOWN: it is full now, but it may have been before. before: NULL if not known. */
enum health space_judge(
	const struct statvfs *now, const struct disk_space *before, struct text *why);

#endif
