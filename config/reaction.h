/* reaction.h - what launchd does with each signal that it gets: the presets, and what
 * --signals-to-handle and --on-signal change of them. Pure. */
#ifndef LAUNCHD_CONFIG_REACTION_H
#define LAUNCHD_CONFIG_REACTION_H

#include <stdbool.h>
#include <stdint.h>

struct failure;
struct settings;

enum reaction_kind {
	REACTION_NONE, /* not taken: the kernel does what it does (SEGV, KILL, STOP, CHLD, TTIN) */
	REACTION_IGNORE,  /* taken, and nothing follows */
	REACTION_FORWARD, /* to every worker, and the job lives */
	REACTION_SUSPEND, /* TSTP: workers are stopped until CONT comes, and so is launchd */
	REACTION_RESUME,  /* CONT: to every worker's process group */
	REACTION_END,     /* to every worker, and the job ends: a grace begins */
	REACTION_STOP,    /* workers get SIGTERM whatever came, and the job ends */
};

struct reaction {
	enum reaction_kind kind;
	bool named;        /* by --on-signal: counts even where the signal was ignored on entry */
	uint64_t grace_ms; /* REACTION_END, REACTION_STOP */
};

enum { REACTION_SIGNALS = 65 };

struct reactions {
	struct reaction of[REACTION_SIGNALS]; /* by signal, from 1 */
};

/* Puts presets, --signals-to-handle and --on-signal together. -EINVAL with a sentence: an unknown
 * signal or action, a signal that can't be taken, one named twice. */
int reactions_make(const struct settings *s, struct reactions *ret, struct failure *why);

/* "forward", "ignore", "end the job": for --dry-run. "": REACTION_NONE. */
const char *reaction_word(enum reaction_kind kind);

#endif
