/* links_sim.h - a cluster whose links have faults, and what its nodes would tell of them. */
#ifndef LAUNCHD_TESTS_LINKS_SIM_H
#define LAUNCHD_TESTS_LINKS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/check/links_told.h"

enum { SIM_NODES_MAX = 64 };

enum sim_fault {
	SIM_NONE,
	SIM_SLOW_OUT,
	SIM_SLOW_IN,
	SIM_SLOW,
	SIM_LOSSY_OUT,
	SIM_LOSSY_IN,
	SIM_FAR,
	SIM_SMALL_MTU,
	SIM_BLACK_HOLE_OUT, /* large packets that it sends are lost */
	SIM_BLACK_HOLE_IN,
	SIM_ONE_WAY_OUT, /* what it sends is lost, but for what the control channel needs */
	SIM_NO_ENTRY,    /* nobody can connect to it */
	SIM_GONE,        /* it has told nothing, and nobody can connect to it */
	SIM_FROZEN,      /* it has told nothing, and its kernel accepts connections */
	SIM_FAULTS
};

struct sim {
	unsigned nnodes;
	enum sim_fault faults[SIM_NODES_MAX];
	int pair[2]; /* no packet gets from one to the other; -1: none */
	bool busy;   /* rates are anything between a third and twice the usual */
	uint64_t dice;
	struct links_told told[SIM_NODES_MAX];
	const struct links_told *known[SIM_NODES_MAX]; /* for links_judge() */
};

/* Below n. */
unsigned sim_draw(struct sim *s, unsigned n);

/* From the faults to what is told. */
void sim_run(struct sim *s);

/* A fault that a node is to be named for, as bad. */
bool sim_is_bad(const struct sim *s, unsigned node);

#endif
