/* reaction.h - what launchd does with each signal that it gets: the defaults, and what
 * --signals-to-handle and --on-signal change of them. Pure. */
#ifndef LAUNCHD_CONFIG_REACTION_H
#define LAUNCHD_CONFIG_REACTION_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct failure;
struct settings;

enum reaction_kind {
	REACTION_NONE, /* not taken: the kernel does what it does (SEGV, KILL, STOP, CHLD, TTIN) */
	REACTION_IGNORE,  /* taken, and nothing follows */
	REACTION_REOPEN,  /* log files are opened anew under their names, and the job lives */
	REACTION_FORWARD, /* to every worker, and the job lives */
	REACTION_SUSPEND, /* TSTP: workers are stopped until CONT comes, and so is launchd */
	REACTION_RESUME,  /* CONT: to every worker's process group */
	REACTION_END,     /* to every worker, and the job ends: a grace begins */
	REACTION_STOP,    /* workers get SIGTERM whatever came, and the job ends */
	REACTION_RESTART, /* likewise, and another attempt follows */
	REACTION_PREEMPT, /* to every worker what tells of a preemption, and the job ends */
};

struct reaction {
	enum reaction_kind kind;
	bool named;        /* by --on-signal: counts even where the signal was ignored on entry */
	uint64_t grace_ms; /* REACTION_END, REACTION_STOP, REACTION_RESTART, REACTION_PREEMPT */
	const char *from;  /* who says so; NULL: REACTION_NONE */
};

/* By signal; there are 64 of them wherever Linux has the usual numbers. */
enum { REACTION_SIGNALS = 65 };

struct reactions {
	struct reaction of[REACTION_SIGNALS]; /* by signal, from 1 */
	int preempt; /* the signal that tells workers of a preemption: --preempt-signal */
};

/* Whether it ends the job. */
bool reaction_ends(const struct reaction *r);

/* Puts the defaults, --signals-to-handle, --on-signal and --preempt-signal together. Where
 * --requeue-exit-code is given TERM means preemption: so batch systems announce it. -EINVAL with a
 * sentence: an unknown signal or action, a signal that can't be taken, one named twice, another use
 * of CONT. */
int reactions_make(const struct settings *s, struct reactions *ret, struct failure *why);

/* What follows the signal, for people: "forward, and end the job". "": REACTION_NONE. */
const char *reaction_word(enum reaction_kind kind);

/* The same as --on-signal spells it, "forward:30", "stop:5", "ignore", or for what it has no word
 * for "suspend", "resume". The arena's or constant. */
const char *reaction_action(struct arena *arena, const struct reaction *r);

#endif
