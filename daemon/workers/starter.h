/* starter.h - renders a worker's command and environment, and starts it. What one worker needs is
 * given back before the next, so that many workers take no more memory than one. */
#ifndef LAUNCHD_DAEMON_WORKERS_STARTER_H
#define LAUNCHD_DAEMON_WORKERS_STARTER_H

#include "common/arena.h"
#include "common/vec.h"

struct attempt;
struct failure;
struct inherited;
struct output;
struct plan;
struct worker;

struct starter {
	const struct plan *plan;
	const struct attempt *attempt;
	const struct inherited *inherited;
	struct output *output; /* NULL: workers inherit stdout and stderr */
	struct arena scratch;
	struct vec unchanged; /* what every worker has of the launcher's environment */
};

/* All are borrowed; output NULL: workers inherit stdout and stderr. Out of memory shows at the
 * first start. */
void starter_init(struct starter *s, const struct plan *plan, const struct attempt *attempt,
	const struct inherited *inherited, struct output *output);

/* Starts an unstarted worker; see worker_start(). -ENOMEM. */
int starter_start(struct starter *s, struct worker *w, int epoll_fd, struct failure *why);

void starter_done(struct starter *s);

#endif
