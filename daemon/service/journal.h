/* journal.h - launchd's own messages, and what happens in a run, on their way to systemd's journal
 * (--journal): by the output thread while it is there, at the end by a socket of its own. */
#ifndef LAUNCHD_DAEMON_SERVICE_JOURNAL_H
#define LAUNCHD_DAEMON_SERVICE_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct bus;
struct output;
struct plan;

struct journal {
	const struct plan *plan;
	struct output *output; /* NULL: its thread is there no more */
	bool alone;            /* stderr is the journal, and gets only what can't be sent */
	atomic_int node;       /* node rank; -1: not known yet */
	atomic_int attempt;    /* -1: none has started */
	const char *path;      /* of journald's socket */
	int socket;            /* without the thread; -1: not open yet, or given up */
	bool given_up;
};

/* Begins to observe, where the plan has a journal; both are borrowed. node -1: not known yet. From
 * now on say() speaks there, too; see journal_close(). */
void journal_start(struct journal *j, const struct plan *plan, int node, struct bus *b);

/* Whole lines of launchd's own. True: they needn't go to stderr. Also for the output thread. */
bool journal_say(void *owner, const char *lines, size_t len);

/* Nothing more is said there. */
void journal_close(struct journal *j);

#endif
