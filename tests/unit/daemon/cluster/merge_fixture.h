/* merge_fixture.h - a whole job's launchers in one loop, whose nodes have lines for node rank 0:
 * what the tests of logs share. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MERGE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MERGE_FIXTURE_H

#include <uv.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"

enum { MERGING_NODES = 4 };

/* What node rank 0's console does with what it hears. */
enum console {
	CONSOLE_FAST, /* takes it at once */
	CONSOLE_SLOW, /* takes some of it now and then */
	CONSOLE_STOPPED,
};

struct merging;

struct launcher {
	struct member member;
	struct bus bus;
	struct member_config config;
	struct arena arena, memory;
	struct merging *of;
	unsigned rank;
	size_t amount;          /* bytes that its workers print, in both streams together */
	size_t sent[3];         /* by stream */
	bool endless;           /* never says that it has no more */
	bool ended;             /* its part of the attempt */
	struct outcome outcome; /* of its one worker */
	unsigned started, stopped, over, closed, attempt, rooms, lost;
	bool merged_at_start;
	uint64_t over_ns, closed_ns;
	char why[512];
	struct text said;
};

struct merging {
	uv_loop_t loop;
	uv_timer_t guard, tick;
	unsigned nodes, parties; /* of the job; of these, launchers that are here */
	unsigned open;           /* not closed yet */
	struct launcher party[MERGING_NODES];
	bool narrow;                         /* the kernel holds a few KiB of what is on its way */
	bool any_bytes;                      /* what comes is not looked at */
	bool ends_early;                     /* workers end when their lines are still to be sent */
	bool fails_first;                    /* in the first attempt node 1 has a failure */
	enum console console[MERGING_NODES]; /* for each node's lines */
	size_t heard[MERGING_NODES][3];      /* by stream */
	size_t held[MERGING_NODES];          /* not taken yet */
	size_t most[MERGING_NODES];          /* of it, ever */
	size_t whole;                        /* of a node's credit */
	uint64_t seed;                       /* of the pieces */
	void (*on_start)(struct launcher *p);                         /* NULL: as it is */
	void (*on_stop)(struct launcher *p);                          /* the same */
	void (*on_log)(struct merging *g, unsigned node, size_t len); /* after it was counted */
};

/* A job of so many nodes, with a key or without; lets the test change it before it starts. */
void merging_make(struct merging *g, unsigned nodes, bool keyed);

/* Node rank 0's launcher, and the others when it listens. */
void merging_start(struct merging *g);

/* Until all have closed, or merging_pause(); a minute is a failure. */
void merging_run(struct merging *g);
void merging_pause(struct merging *g);

void merging_done(struct merging *g);

/* All lines of a node have come. */
void assert_all_heard(const struct merging *g, unsigned node);

/* A node's workers have ended, one of them with this code. */
void launcher_end(struct launcher *p, int code);

/* A request to end the job. */
void launcher_ask(struct launcher *p);

/* Sends what it may. */
void launcher_send(struct launcher *p);

/* Node rank 0's console takes so much of a node's lines. */
void merging_take(struct merging *g, unsigned node, size_t len);

#endif
