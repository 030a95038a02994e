/* progress.h - how far the workers of an attempt are, as it shows from outside: a status line while
 * they start and join the store; who has not joined it after 30 s, which the job is told; who still
 * runs long after others have ended with 0, which the user is told; and, where systemd waits for
 * it, that all have joined the store. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_PROGRESS_H
#define LAUNCHD_DAEMON_RUN_WATCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct bus;
struct member;
struct outcome;
struct output;
struct plan;
struct pool;

struct progress {
	/* the owner's, set before the first attempt; all are borrowed */
	const struct plan *plan;
	const struct pool *pool;
	const struct bus *bus;
	struct output *output;
	struct member *member;
	bool status; /* there is a status line, or may be one */

	uv_timer_t tick, joining, ready, unfinished;
	bool told_joined;    /* systemd hears of it once */
	uint64_t joining_ms; /* between two looks at who has joined the store */
	uint64_t started_ns;
	unsigned attempt, store_port;
};

void progress_init(struct progress *p, uv_loop_t *loop);
void progress_close(struct progress *p);

/* The first worker may write soon: whoever writes to the terminal ends the status line. */
void progress_expect(struct progress *p);

/* The workers of an attempt were started. */
void progress_start(struct progress *p, unsigned attempt, unsigned store_port);

/* One of them has ended. */
void progress_ended(struct progress *p, const struct outcome *o);

/* Which workers live and have no connection to the store: a flag each, untouched where that can't
 * be seen. */
void progress_note_unjoined(const struct progress *p, bool *ret_unjoined);

/* No status line any more. */
void progress_hide(struct progress *p);

/* All workers have ended. */
void progress_stop(struct progress *p);

#endif
