/* step_socket.h - --progress notify: the socket to which workers send how far they are. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_STEP_SOCKET_H
#define LAUNCHD_DAEMON_RUN_WATCH_STEP_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/plan/step_source.h"

struct failure;

/* Begins as { 0 }. */
struct step_socket {
	/* the owner's */
	void (*on_news)(void *owner, enum progress_news news, uint64_t step);
	void *owner;

	/* private */
	uv_poll_t poll;
	int fd;
	dev_t dev; /* of the socket's file */
	ino_t ino;
	bool open;
};

/* Into the loop, for an attempt: nothing where it is there still, and else anew, also at another
 * path. On failure, -ENAMETOOLONG and the like, why is set. */
int step_socket_open(struct step_socket *s, uv_loop_t *loop, const char *path, struct failure *why);

/* What has come, but for what a flood of it leaves for the next turn. */
void step_socket_read(struct step_socket *s);

/* Out of the loop; also where it never was in it. The file goes with its directory. */
void step_socket_close(struct step_socket *s);

#endif
