/* reporter.h - the observer that tells the user, on stderr and in --report's file, what happens. */
#ifndef LAUNCHD_DAEMON_OBSERVE_REPORTER_H
#define LAUNCHD_DAEMON_OBSERVE_REPORTER_H

#include <stdbool.h>

#include "common/notes.h"
#include "daemon/job/ending.h"

struct arena;
struct bus;
struct plan;

struct reporter {
	const struct plan *plan; /* the final one, once the nodes have met */
	const char *hostname;
	struct arena *arena; /* for what reports need in between */
	const char *shown; /* what stands last on stderr, where the report goes; NULL: not known */
	_Atomic enum note_level least; /* of notes these and what is above them are said */
	struct cause told; /* reported already, when the guard was killed; NONE: there was none */
};

/* Begins to observe. The reporter is filled in, and outlives the bus. */
void reporter_start(struct reporter *r, struct bus *b);

/* From now on notes of this level and above are said; the first says which. */
enum note_level reporter_least(const struct reporter *r);
void reporter_set_least(struct reporter *r, enum note_level least);

/* Says a note at once, also on another thread than the bus': for struct output_host. */
void reporter_say(const struct reporter *r, bool warning, const char *text);

#endif
