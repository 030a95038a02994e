/* supervise.h - the supervisor's whole life, from the fork to its exit code. */
#ifndef LAUNCHD_DAEMON_SUPERVISE_H
#define LAUNCHD_DAEMON_SUPERVISE_H

#include "common/notes.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/event_file.h"
#include "daemon/observe/reporter.h"
#include "daemon/run/input.h"
#include "daemon/service/journal.h"
#include "daemon/service/meter.h"
#include "daemon/service/notify.h"

struct failure;

struct supervision {
	struct run_input run; /* supervise() opens its output, and sets all below that */
	const char *hostname;
	enum note_level least; /* of launchd's notes these and what is above them are said */

	/* supervise()'s own */
	struct bus bus;
	struct reporter reporter;
	struct events events;
	struct meter meter;
	struct notify notify;
	struct journal journal;
	struct text shown; /* what stood last on stderr when the output was closed */
	bool trace_failed; /* of --hang-trace: nothing more is written */
};

/* Meets the other nodes, runs the plan, says what became of it, and removes the run's directory.
 * Returns the exit code; negative errno: no worker was started, why says what failed. */
int supervise(struct supervision *s, struct failure *why);

#endif
