/* goodput.h - what became of a job's time: how long all of its ranks ran, and what the rest was
 * lost to. Pure. Times are on the clock of node rank 0, in ns.
 *
 * From the first start to the last end each moment counts once:
 *
 *   start-up    until all ranks ran for the first time
 *   running     from the start of an attempt's last rank to the end of its first one, without what
 *               is known to be lost of it
 *   lost        by the cause of the attempt's end: from there until all ranks ran again; of the
 *               next attempt what it takes to come beyond the steps that were done (--progress);
 *               and of the time before, where that cause is a failure, what passed since the last
 *               new step, or since anything moved (--on-hang)
 *   ending      the rest of an attempt that went well */
#ifndef LAUNCHD_DAEMON_JOB_GOODPUT_H
#define LAUNCHD_DAEMON_JOB_GOODPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/ending.h"

struct text;

/* Begins as { 0 }: nothing was started. */
struct goodput {
	unsigned attempts; /* that have ended */
	uint64_t total_ns, running_ns, startup_ns, ending_ns;
	struct goodput_loss {
		unsigned attempts;
		uint64_t ns;
		uint64_t work_ns; /* of it: when all ranks ran, for nothing */
	} lost[CAUSE_KINDS];
	/* There was a step in an attempt: one without any is all for nothing. Else what is done
	 * again isn't known. */
	bool knows_steps;

	/* private */
	uint64_t at_ns; /* up to where all is counted; 0: nothing is */
	enum cause_kind last;
};

/* What the end of an attempt doesn't tell. */
struct goodput_attempt {
	uint64_t started_ns; /* when it was ordered */
	bool has_step;
	uint64_t step_ns;   /* has_step: when it last came to a new one */
	uint64_t beyond_ns; /* when it came to one beyond all attempts before; 0: it did not */
};

/* An attempt has ended, as its result says. */
void goodput_add(struct goodput *g, const struct goodput_attempt *a, const struct result *r);

/* The job is over, between two attempts. */
void goodput_stop(struct goodput *g, uint64_t now_ns);

/* The part of the time in which all ranks ran, in thousandths; 0 where there was no time. */
unsigned goodput_per_mille(const struct goodput *g);

/* Adds all of it in words, but no newline: "goodput 93.1 % of 2 h 03 min: ..." */
void goodput_text(const struct goodput *g, struct text *out);

#endif
