/* phase.h - one phase of the check of all nodes before a job's workers start: what it measures on
 * each node, and how node rank 0 judges what all have measured.
 *
 * Both run in a child of the launcher that has nothing else to do, on all nodes at once: they may
 * block, allocate, fork and load libraries, and the child is killed with all that it has started
 * when its time is over. They must not print. They don't free what they allocate once. */
#ifndef LAUNCHD_DAEMON_CHECK_PHASE_H
#define LAUNCHD_DAEMON_CHECK_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/address.h"
#include "daemon/check/finding.h"

struct failure;
struct meet;
struct settings;
struct disk_space;
struct text;
struct xids;

/* A node's CLOCK_MONOTONIC minus node rank 0's, as their launchers have measured it. */
struct phase_clock {
	bool known;
	int64_t offset_ns;
	uint64_t error_ns; /* in either direction */
};

struct phase_input {
	/* This node's: what the user has asked for. The room knows no plan, as plans know it. */
	const struct settings *settings;
	const char *const *env; /* the launcher's */
	unsigned attempt, node, nnodes;
	/* Where the phases of all nodes may meet while they measure. NULL: this node is checked
	 * without the others, as it is the only one or there is no control channel; then nnodes is
	 * 1 and node is 0. */
	const struct meet *meet;
	/* For a phase that needs ports between nodes: this node's address on the way to node rank
	 * 0, and node rank 0's from here. Loopback: they lead to this host. */
	struct address own, hub;
	uint64_t gate_ms; /* what a strict phase may take in all */
	/* This node's: what a child has seen of its GPUs since the first attempt; NULL: none did.
	 * `measure` says whether there are GPUs to watch. */
	const struct xids *xids;
	volatile unsigned *ret_gpus;
	/* This node's file systems before the first attempt, SPACES of them; NULL: not looked at.
	 */
	const struct disk_space *spaces;
	/* This node's processes of the attempt before that could not be ended. */
	const pid_t *left;
	unsigned left_count;
	/* When `measure` must be done: ms, CLOCK_MONOTONIC. */
	int64_t until_ms;
	/* On node rank 0 only, by node rank; of itself, too. */
	const char *const *hosts;
	const struct phase_clock *clocks;
	const struct address *addresses; /* from where their launchers have come */
};

/* What is said of a node. */
struct charge {
	unsigned node;
	struct finding finding;
};

struct charges {
	struct charge *at;
	size_t count, room;
	bool failed; /* no memory: some are missing */
};

/* Adds a copy. */
void charges_add(struct charges *c, unsigned node, const struct finding *f);
void charges_done(struct charges *c);

struct phase {
	const char *name;  /* "links": for the user */
	unsigned limit_ms; /* of `measure`, on each node */
	/* What the user's settings add to that, the same on all nodes. NULL: nothing. */
	uint64_t (*more_ms)(const struct settings *s);
	/* How long node rank 0 waits for the lines of all nodes (meet.h); 0: there are none. */
	unsigned meet_ms;
	/* Node rank 0's process that measures stays until all nodes have their results.
	 */
	bool serves;
	/* All of it takes no more than gate_ms, from its beginning to the verdict. */
	bool strict;
	/* Adds what node rank 0's `judge` is to get, JSON mostly: text without a NUL, of at most
	 * some KiB. Negative errno: it could not be measured, for which why gives a sentence; the
	 * frame says that of the node, which is unknown then. */
	int (*measure)(const struct phase_input *in, struct text *ret, struct failure *why);
	/* told: of each node what it measured; NULL: nothing came in time, or it could not, which
	 * the frame says. Adds what is to be said of nodes: one that nothing bad or unknown is said
	 * of is good. Negative errno: it can't be judged, which is unknown of all nodes. */
	int (*judge)(const struct phase_input *in, const char *const *told, struct charges *ret,
		struct failure *why);
};

#endif
