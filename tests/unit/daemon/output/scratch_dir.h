/* scratch_dir.h - a directory that the tests of log files work in; it is gone when they are done.
 */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_SCRATCH_DIR_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_SCRATCH_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

/* Makes it, the working directory from now on. 0 or -1. */
int scratch_make(void);

/* Removes what is in it. */
void scratch_clear(void);

/* Removes it. 0 or -1. */
int scratch_done(void);

/* Removes another directory, with all in it. 0 or -1. */
int scratch_remove(const char *root);

/* A file's bytes; the caller's. It must be there. */
struct text scratch_read(const char *path);

/* That is what a file holds; NULL: there is none. */
void assert_file(const char *path, const char *expected);

/* The same bytes; otherwise says where they begin to differ. */
void assert_bytes(const char *at, size_t len, const char *expected, size_t expected_len);

/* The number of descriptors that this process has. */
size_t count_descriptors(void);

/* Lets the process have n more descriptors, until free_descriptors(). */
void limit_descriptors(unsigned n);
void free_descriptors(void);

/* No file may grow beyond this, as if the disk was full; 0: it has room again. */
void limit_file_size(uint64_t bytes);

#endif
