/* notify.h - the observer that tells systemd, by the socket that NOTIFY_SOCKET names: ready, what
 * goes on, stopping, and a sign of life from the event loop (sd_notify(3)).
 *
 * The protocol is a datagram, documented and stable, so no library is loaded for it. Only the end
 * waits: what systemd has no room for is sent when the next thing happens, or 100 ms later. */
#ifndef LAUNCHD_DAEMON_SERVICE_NOTIFY_H
#define LAUNCHD_DAEMON_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/service/bulletin.h"

struct arena;
struct bus;

struct notify {
	struct bulletin bulletin;
	const struct bus *bus;
	struct text unsent; /* lines that have found no room, in their order */
	struct sockaddr_un to;
	socklen_t to_size;
	int fd;               /* -1: nobody is told */
	uint64_t watchdog_ms; /* between two signs of life; 0: none are awaited */
	uv_loop_t *loop;      /* NULL: it does not run */
	uv_timer_t watchdog, again;
};

/* What it begins with. */
struct notify_input {
	const struct plan *plan;
	bool meets, node_rank_known; /* as bulletin_begin() has them */
	long guard;                  /* the pid that systemd knows */
	struct arena *arena;
};

/* Begins to observe, where the plan says that launchd runs as a service. A socket that can't be
 * written to is warned of, once: systemd then thinks that nothing has started. */
void notify_start(struct notify *n, const struct notify_input *in, struct bus *b);

/* The loop runs: signs of life begin, and don't keep it alive; they end. */
void notify_enter(struct notify *n, uv_loop_t *loop);
void notify_leave(struct notify *n);

/* Nothing more will be told. Waits until systemd has read all, for 2 s at most. */
void notify_done(struct notify *n);

#endif
