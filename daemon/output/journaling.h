/* journaling.h - the way to systemd's journal: launchd's own entries and, where that is asked for,
 * workers' lines. The output thread's.
 *
 * It is a console like the others: whoever has a line to show waits for journald as for any reader,
 * or drops (--console-overflow). Where journald is not there, or has taken nothing for a while, all
 * goes to launchd's own stdout and stderr, and the journal is tried again now and then. */
#ifndef LAUNCHD_DAEMON_OUTPUT_JOURNALING_H
#define LAUNCHD_DAEMON_OUTPUT_JOURNALING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/journal_entry.h"
#include "daemon/output/console/console.h"

struct plan;

struct journaling {
	struct console console;         /* takes records, see common/journal_entry.h */
	struct console *const *instead; /* of stdout and stderr */
	struct records records;
	struct text entry; /* that is being sent */
	const char *path;
	int fd;              /* -1: the journal is away */
	bool is_open, waits; /* waits: for those consoles, which have much to write already */
	bool left;           /* for good */
	uint64_t away_ns;    /* since when, or when it was tried last; 0: it was not */
	uv_timer_t patience; /* runs while journald takes nothing */
	void (*say)(void *owner, bool warning, const char *text);
	void *owner;
};

/* drops: see struct console. Negative errno: as console_open(). The journal is looked for when
 * there is something for it; that it is away is said, and no failure. */
int journaling_open(struct journaling *j, uv_loop_t *loop, bool drops);

/* In every turn of the loop, before the consoles are flushed. True: there is more to do at once. */
bool journaling_turn(struct journaling *j);

/* All is where it goes to. */
bool journaling_is_idle(const struct journaling *j);

/* From now on all goes to the consoles, as the end must not wait for journald. False: it was so
 * already. */
bool journaling_leave(struct journaling *j);

/* Renders what stands before each line of a stream into `prefix`, which is emptied first. pid 0:
 * not known. False: there is no memory. */
bool journaling_header(const struct plan *plan, unsigned local_rank, unsigned attempt, int fd,
	pid_t pid, struct text *prefix);

/* When the loop has closed its handles. */
void journaling_done(struct journaling *j);

#endif
