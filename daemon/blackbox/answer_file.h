/* answer_file.h - what a source leaves in the bundle besides its line. Waits for the disk: for a
 * task. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ANSWER_FILE_H
#define LAUNCHD_DAEMON_BLACKBOX_ANSWER_FILE_H

#include <stddef.h>
#include <sys/types.h>

struct source_input;
struct text;

enum { ANSWER_MAX = 1 << 20 }; /* of one file */

/* Writes t to a file of that name in in->dir, cut to ANSWER_MAX; "threads.rank-3.txt". The mode is
 * 0600. 0 or negative errno. */
int answer_file_write(const struct source_input *in, const char *name, const struct text *t);

/* Copies the last max bytes of a file. -ENOENT, -ELOOP: there is no such plain file. Negative
 * errno. */
int answer_file_copy(const struct source_input *in, const char *name, const char *path, size_t max);

#endif
