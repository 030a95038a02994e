/* outfile.h - whether a file can be written at the end of a run, found out before its begin. */
#ifndef LAUNCHD_DAEMON_FACTS_OUTFILE_H
#define LAUNCHD_DAEMON_FACTS_OUTFILE_H

struct failure;

/* Looks whether path's directory is there and both may be written to; makes nothing. where is the
 * setting that asks for the file. -EINVAL: it can't be, and why. */
int outfile_check(const char *path, const char *where, struct failure *why);

#endif
