/* classify.h - what kind of hang looks at all workers show, if they show one. Pure.
 *
 * What tells most is who talks to whom: rank_sight.h. Where all have entered a collective and still
 * wait, they have entered different ones (desync), or their packets are not acknowledged (the
 * network). */
#ifndef LAUNCHD_DAEMON_WITNESS_CLASSIFY_H
#define LAUNCHD_DAEMON_WITNESS_CLASSIFY_H

#include "daemon/witness/rank_sight.h"

enum hang_class {
	HANG_NONE,
	HANG_STOPPED, /* a worker, or what it has started, is stopped or stuck in the kernel */
	HANG_OUTSIDE, /* some are not in what all others wait in */
	HANG_ALL_WAIT,
	HANG_DESYNC, /* all wait, but not in the same */
	HANG_SPINNING,
	HANG_CLASSES,
};

/* "all_wait" */
const char *hang_class_word(enum hang_class c);

enum { FINDING_RANKS = 16 };

struct hang_finding {
	enum hang_class class;
	unsigned ranks[FINDING_RANKS]; /* that it is about; none: all are alike */
	unsigned count;                /* may be larger than FINDING_RANKS */
	char why[160];                 /* "it sleeps, and has sent nothing for 12 s" */
	bool third_party;              /* STOPPED: by SIGSTOP, of neither launchd nor a terminal */
	bool may_return;               /* STOPPED: in the kernel; a file server may answer again */
};

/* Of a job in which nobody works; after ranks_connect(), as the one before. HANG_NONE: that looks
 * like no hang, or nobody can tell. */
void hang_classify(const struct rank_sight *all, unsigned count, struct hang_finding *ret);

/* Adds "rank 3 is outside what all others wait in: it sleeps". */
void finding_describe(const struct hang_finding *f, struct text *out);

bool finding_is_same(const struct hang_finding *a, const struct hang_finding *b);

#endif
