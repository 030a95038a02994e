/* bus.h - everything that happens in a run is told once, to all who want to know.
 *
 * An observer lives in a file of its own and is added by one bus_add(). All functions are the main
 * thread's: the output thread tells of its failures by struct output_host. */
#ifndef LAUNCHD_DAEMON_OBSERVE_BUS_H
#define LAUNCHD_DAEMON_OBSERVE_BUS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/observe/event.h"

enum { BUS_OBSERVERS = 12 };

/* What one does on an event of each kind; NULL: it does not want to know. */
struct observer {
	void (*on[EVENT_KINDS])(void *owner, const struct event *e);
};

/* Initializers of what `--events` and those who follow the control socket hear of, but for the
 * job's start and end. */
#define OBSERVE_EVENTS(f) \
	[EVENT_ATTEMPT_STARTED] = (f), [EVENT_WORKER_STARTED] = (f), [EVENT_WORKER_ENDED] = (f), \
	[EVENT_SIGNAL_RECEIVED] = (f), [EVENT_SIGNAL_FORWARDED] = (f), [EVENT_STOP] = (f), \
	[EVENT_NODE_JOINED] = (f), [EVENT_NODE_LOST] = (f), [EVENT_RESTART] = (f), \
	[EVENT_CHECK_STARTED] = (f), [EVENT_CHECK_ENDED] = (f), [EVENT_HANG] = (f), \
	[EVENT_BLACKBOX] = (f), [EVENT_PREEMPTION] = (f), [EVENT_STEP] = (f), \
	[EVENT_VERDICT] = (f)

struct bus {
	struct {
		const struct observer *observer;
		void *owner;
	} at[BUS_OBSERVERS];
	size_t count;
};

/* Observers are told in the order in which they were added. Both pointers are borrowed. */
void bus_add(struct bus *b, const struct observer *o, void *owner);

/* Takes the observer away that was added last. */
void bus_remove(struct bus *b);

/* Whether anybody wants to know of a kind: for what has to be looked up first. */
bool bus_wants(const struct bus *b, enum event_kind kind);

/* Tells what has happened. at_ns 0 is now. */
void bus_emit(const struct bus *b, const struct event *e);

/* The same of a sentence for the user. */
void bus_note(const struct bus *b, enum note_level level, const char *text);

#endif
