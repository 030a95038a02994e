/* bulletin.h - what systemd is told of a run, as lines of sd_notify(3), made of what happens. Pure.
 */
#ifndef LAUNCHD_DAEMON_SERVICE_BULLETIN_H
#define LAUNCHD_DAEMON_SERVICE_BULLETIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct event;
struct plan;
struct text;

enum {
	BULLETIN_STATUS_MAX = 256, /* bytes of a status text */
	/* beyond a grace: what SIGKILL does not end at once, the other nodes, all output */
	BULLETIN_REST_MS = 60000,
};

struct bulletin {
	const struct plan *plan; /* the final one, once the nodes have met */
	bool meets;              /* the nodes have yet to */
	bool *joined;            /* by node rank, while they meet; NULL: there was no memory */
	unsigned *awaited;       /* room for the ranks of the others; there as `joined` is */
	unsigned attempt;
	unsigned started, ended, failed; /* of this node's workers, in the attempt */
	bool ready, stopping;            /* once said, they stay said */
};

/* Adds the first lines. node_rank_known: the plan's is right before the nodes meet. The plan is
 * borrowed, the arena's memory, too. */
void bulletin_begin(struct bulletin *n, const struct plan *plan, bool meets, bool node_rank_known,
	struct arena *arena, struct text *out);

/* Adds the lines that an event calls for; none: nothing changes for who reads them. */
void bulletin_take(struct bulletin *n, const struct event *e, struct text *out);

/* Half of WATCHDOG_USEC in ms, where it is for this process; 0: nobody waits for a sign of life.
 * usec, pid: as the variables have them; NULL: unset. */
uint64_t bulletin_watchdog_ms(const char *usec, const char *pid, long own_pid);

#endif
