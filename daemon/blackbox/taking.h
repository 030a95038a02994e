/* taking.h - all sources are asked, side by side, and what they find is left in memory that the
 * child shares, as soon as each has found it: that child may be killed at any time. For a helper's
 * child: it waits, forks and writes files. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_TAKING_H
#define LAUNCHD_DAEMON_BLACKBOX_TAKING_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/blackbox/quick_look.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/finding.h"

enum { TAKING_SOURCES = 32 };

/* Shared; all zeros at first. */
struct source_finds {
	struct findings findings;
	struct {
		volatile unsigned asked, answered;
	} of[TAKING_SOURCES]; /* by row of the table */
	volatile bool looked; /* what taken_later() returns is whole */
};

/* With what is behind it: for so many workers that lived. */
size_t taken_size(size_t workers);

/* What they were doing after all had been asked. */
struct quick_look *taken_later(const struct source_finds *t);

struct taking {
	const char *dir, *name; /* of the failure */
	unsigned node;
	struct source_input input;      /* its dir is made here */
	const struct quick_look *looks; /* of input.workers, before anything was ended */
};

/* Asks. What can't be is among the findings. */
void taking_do(const struct taking *t, struct source_finds *ret);

/* Adds a finding for each source that had not answered: `because` ends the sentence. */
void taken_unanswered(const struct source_finds *t, const char *because, struct findings *ret);

#endif
