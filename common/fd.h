/* fd.h - descriptors that close by scope, and whole writes. */
#ifndef LAUNCHD_COMMON_FD_H
#define LAUNCHD_COMMON_FD_H

#include <stddef.h>

/* Closes a descriptor and makes it -1; -1 stays. */
void fd_closep(int *fd);

/* A descriptor that is closed at the end of its scope unless fd_take() took it. -1: none. */
#define autoclose __attribute__((cleanup(fd_closep))) int

/* Hands a descriptor on: the variable is -1 afterwards. */
int fd_take(int *fd);

/* Makes sure that 0, 1 and 2 are open, so that no file of ours gets one of these numbers and is
 * mistaken for a standard stream. 0 or negative errno. */
int fd_open_standard(void);

/* Writes all of it, over interruptions and short writes. Blocks as long as the file does.
 * 0 or negative errno. */
int fd_write_all(int fd, const char *bytes, size_t len);

/* The same to a pipe, a socket or a terminal that may be full: stops when nothing more is taken for
 * so long. How much was written is in *ret_done, also after a failure. Bytes go in pieces that such
 * a file takes without blocking once poll(2) says that it is writable: PIPE_BUF, pipe(7); lines
 * that are shorter than that are not divided. */
int fd_write_within(int fd, const char *bytes, size_t len, int patience_ms, size_t *ret_done);

/* Reads max bytes, or less where the file ends, over interruptions and short reads. Returns how
 * many these are, or negative errno. */
long fd_read_up_to(int fd, char *ret, size_t max);

/* Reads a file of at most max - 1 bytes and ends it with a NUL. Returns its length, -EFBIG where
 * it is longer, or negative errno. */
long fd_read_file(const char *path, char *ret, size_t max);

#endif
