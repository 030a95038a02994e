/* report_file.h - writes the files that tell others of a job's end: that of --report, and that of
 * TORCHELASTIC_ERROR_FILE. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_FILE_H
#define LAUNCHD_DAEMON_REPORT_REPORT_FILE_H

#include <stddef.h>

struct failure;
struct text;

/* Puts the bytes at path: whoever reads it finds the old file or the whole new one, on the disk.
 * What isn't a regular file (a FIFO, /dev/stdout) is written to instead; one without a reader is an
 * error, and so is a file system that hangs: see file_replace_last(). 0, or negative errno with a
 * sentence that begins with asked_by; then nothing of ours is left behind, unless that hangs. */
int report_write(
	const char *asked_by, const char *path, const char *bytes, size_t len, struct failure *why);

/* The same of a text, which it frees; -ENOMEM: the text is not whole. */
int report_write_text(
	const char *asked_by, const char *path, struct text *text, struct failure *why);

#endif
