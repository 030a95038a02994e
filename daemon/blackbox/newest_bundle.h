/* newest_bundle.h - the newest failure that --blackbox has left below a directory. Waits for the
 * disk. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_NEWEST_BUNDLE_H
#define LAUNCHD_DAEMON_BLACKBOX_NEWEST_BUNDLE_H

#include <limits.h>

struct newest_bundle {
	char path[PATH_MAX]; /* of the failure's directory; "": there is none */
	unsigned count;      /* failures that were found */
};

/* Looks in dir, in its directories, and in blackbox in each of these. Failures without any file
 * that --explain can read don't count. Negative errno: dir can't be read. */
int newest_bundle_find(const char *dir, struct newest_bundle *ret);

#endif
