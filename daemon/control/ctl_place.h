/* ctl_place.h - where a launcher's control socket is: launchd-control(7), "The socket". */
#ifndef LAUNCHD_DAEMON_CONTROL_CTL_PLACE_H
#define LAUNCHD_DAEMON_CONTROL_CTL_PLACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

struct failure;

/* A socket's path, which fits into its address. */
struct ctl_place {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": there is none */
	bool own_dir; /* launchd has made its directory, which goes with the last socket in it */
};

/* Listens for a launcher whose guard has that pid, in the first directory that env gives and that
 * can be had. A descriptor that doesn't block, and *ret; negative errno: nothing was left. */
int ctl_listen(const char *const *env, pid_t guard, struct ctl_place *ret, struct failure *why);

/* Removes the socket. Nothing where there is none, any more. */
void ctl_forget(struct ctl_place *place);

#endif
