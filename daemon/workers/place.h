/* place.h - what an attempt needs of the machine: a port that nobody else takes, and a directory.
 */
#ifndef LAUNCHD_DAEMON_WORKERS_PLACE_H
#define LAUNCHD_DAEMON_WORKERS_PLACE_H

struct arena;
struct failure;

/* Binds a free TCP port of all addresses, IPv6 and IPv4, with SO_REUSEADDR and without listening:
 * then another socket with SO_REUSEADDR may bind and listen there (torch's store does), while the
 * kernel gives the number to nobody who asks for a free one. The caller closes *ret_fd. */
int port_reserve(int *ret_fd, unsigned *ret_port, struct failure *why);

/* Makes the directory of a run, mode 700, in $TMPDIR of env; where that is not set or can't be used
 * (a batch system's that is gone) in /tmp or /var/tmp, as Python's tempfile does. *ret is its
 * absolute path, the arena's. */
int run_dir_make(
	const char *const *env, struct arena *arena, const char **ret, struct failure *why);

/* Removes it with all that is in it; links are not followed, other file systems not entered.
 * 0 or negative errno. */
int run_dir_remove(const char *path);

#endif
