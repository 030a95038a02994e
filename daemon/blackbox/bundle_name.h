/* bundle_name.h - the names of failures, which are the same on all nodes and in the order of time.
 * Pure. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_BUNDLE_NAME_H
#define LAUNCHD_DAEMON_BLACKBOX_BUNDLE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_NAME_SIZE = 80 };

struct bundle_name {
	uint64_t job_ms; /* when the job started: CLOCK_REALTIME of node rank 0 */
	unsigned attempt;
	unsigned look; /* the n-th one of an attempt that goes on, from 1; 0: the attempt's end */
};

/* "failure-20261126T112233.123Z-attempt-0", "...-attempt-0-look-1" */
void bundle_name_write(const struct bundle_name *n, char ret[BUNDLE_NAME_SIZE]);

/* Whether it is such a name, whole, and which. */
bool bundle_name_read(const char *name, struct bundle_name *ret);

/* Which is older: negative, 0 or positive. */
int bundle_name_compare(const struct bundle_name *a, const struct bundle_name *b);

/* Puts the names that are to go, so that the newest `keep` stay, to the front of list, the oldest
 * first. Returns how many these are. `mine` always stays. */
size_t bundle_names_to_go(
	struct bundle_name *list, size_t count, size_t keep, const struct bundle_name *mine);

#endif
