/* error_file.h - what a worker says of its own failure: the error file that torch's @record writes.
 *
 * The worker may have been killed while it wrote, and may have written anything. What can't be read
 * is shown as it is, with the reason: it is the only word of a dead process. */
#ifndef LAUNCHD_DAEMON_REPORT_ERROR_FILE_H
#define LAUNCHD_DAEMON_REPORT_ERROR_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/failure.h"

struct arena;
struct cjson;
struct error_record;

enum { RECORD_MAX_BYTES = 256 * 1024 }; /* of a longer file only the start is read */

/* The bytes of a file, or why there are none. */
struct record_text {
	const char *at; /* NULL: there is no file, or why says why it can't be read */
	size_t len;
	struct failure why;
};

/* Reads the file at path, and waits for nothing but the disk, whatever lies there. */
void record_read(const char *path, struct arena *arena, struct record_text *ret);

/* Understands it. 1: *ret says what is in it; 0: there is none, *ret is untouched; else negative
 * errno with a sentence. Strings are the arena's. */
int record_load(const struct record_text *text, struct arena *arena, struct error_record *ret,
	struct failure *why);

/* Understands the file's text; text[len] must be NUL. c NULL: there is no library, for the reason
 * `missing`. Changes nothing but the arena. */
void record_parse(const struct cjson *c, const char *missing, const char *text, size_t len,
	struct arena *arena, struct error_record *ret);

#endif
