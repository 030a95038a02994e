/* report_file.h - writes the report of --report. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_FILE_H
#define LAUNCHD_DAEMON_REPORT_REPORT_FILE_H

#include <stddef.h>

struct failure;

/* Puts the bytes at path: whoever reads it finds the old file or the whole new one, on the disk.
 * What isn't a regular file (a FIFO, /dev/stdout) is written to instead; one without a reader is an
 * error. 0, or negative errno with a sentence; then nothing of ours is left behind. */
int report_write(const char *path, const char *bytes, size_t len, struct failure *why);

#endif
