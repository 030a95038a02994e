/* event_file.h - where the lines of --events go: a file, or a descriptor that launchd was started
 * with. Writing blocks as long as a disk does, but waits for nobody who reads a pipe. */
#ifndef LAUNCHD_DAEMON_OBSERVE_EVENT_FILE_H
#define LAUNCHD_DAEMON_OBSERVE_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

struct bus;
struct failure;
struct output;
struct output_plan;

struct events {
	struct output *output; /* whose thread writes while it runs; NULL: it doesn't */
	bool node_known;
	unsigned node;    /* the launcher's rank */
	int fd;           /* -1: none */
	bool is_file;     /* on a disk, or a file server */
	const char *path; /* as the plan has it; NULL: a descriptor */
	bool open;        /* as far as it can be */
	struct text kept; /* lines that came before, or that its reader has not taken */
};

bool events_wanted(const struct output_plan *o);

/* Lines are kept until they have a place. */
void events_init(struct events *ev);

/* Opens the plan's place, to append, and writes what was kept; no place: all lines are dropped. On
 * failure, too; why says it. */
int events_open(struct events *ev, const struct output_plan *o, struct failure *why);

/* Writes whole lines. What a reader does not take at once is kept for the next time, up to 1 MiB;
 * more is a failure. On failure why is set, and no other line is written. */
int events_write(struct events *ev, const char *lines, size_t len, struct failure *why);

/* Lines wait for a reader: events_write() is to be called again, with none. */
bool events_wait(const struct events *ev);

/* Gives the reader a second to take what is kept, and closes. A failure: it has not. */
int events_end(struct events *ev, struct failure *why);

/* Begins to observe, and opens the plan's place as soon as the node's rank is known, if it is
 * wanted at all: a file's name may have the rank in it, and without it node rank 0 alone writes
 * one. The plan is borrowed. */
void events_start(struct events *ev, const struct output_plan *o, struct bus *b);

/* For the output thread: writes whole lines, also none. `owner` is a struct events. Returns
 * events_wait(). */
bool events_write_lines(void *owner, const char *lines, size_t len);

/* Closes; what is kept still is dropped. */
void events_done(struct events *ev);

#endif
