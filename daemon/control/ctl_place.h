/* ctl_place.h - where a launcher's control socket is: launchd-control(7), "The socket". */
#ifndef LAUNCHD_DAEMON_CONTROL_CTL_PLACE_H
#define LAUNCHD_DAEMON_CONTROL_CTL_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct failure;

/* A socket's path, which fits into its address. */
struct ctl_place {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": there is none */
	bool own_dir; /* launchd has made its directory, which goes with the last socket in it */
	dev_t dev;    /* of the socket's file */
	ino_t ino;
};

/* Listens for a launcher whose guard has that pid, in the first directory that env gives and that
 * can be had. A descriptor that doesn't block, and *ret; negative errno: nothing was left. */
int ctl_listen(const char *const *env, pid_t guard, struct ctl_place *ret, struct failure *why);

/* A directory that may have launchers' sockets. */
struct ctl_dir {
	const char *path;
	bool has_uid; /* its name says whose it must be: */
	uid_t uid;
	const char *service; /* the service that it was made for; NULL: none */
};

/* Names all of them that are there: of this user, who may have set env, or for root of all users.
 * Whose they are is yet to be looked at: anybody can make one. */
void ctl_dirs(const char *const *env, bool of_all,
	void (*on_dir)(void *owner, const struct ctl_dir *dir), void *owner);

/* The guard's pid, after which a socket is named; 0: it isn't one's name. */
pid_t ctl_place_guard(const char *name);

/* Whether the socket is where it was made, and clients may look there. */
bool ctl_is_there(const struct ctl_place *place);

/* Removes the socket. Nothing where there is none, any more. */
void ctl_forget(struct ctl_place *place, uint64_t limit_ms);

#endif
