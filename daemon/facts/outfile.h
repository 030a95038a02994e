/* outfile.h - whether files can be written during a run and at its end, checked before it starts.
 */
#ifndef LAUNCHD_DAEMON_FACTS_OUTFILE_H
#define LAUNCHD_DAEMON_FACTS_OUTFILE_H

struct failure;

/* Looks whether path's directory is there and both may be written to; makes nothing. where is the
 * setting that asks for the file. -EINVAL: it can't be, and why. */
int outfile_check(const char *path, const char *where, struct failure *why);

/* The same for a file that others write: only its directory must be there. */
int outfile_directory_check(const char *path, const char *where, struct failure *why);

/* The same for a directory that will be made, with those above it, where it is not there. */
int outdir_check(const char *path, const char *where, struct failure *why);

/* The same for a descriptor that is open already. */
int outfd_check(int fd, const char *where, struct failure *why);

#endif
