/* merge.h - several nodes' lines on one console (--merge-logs).
 *
 * A node that is not node rank 0 has two consoles more, whose bytes the event loop takes and sends;
 * when nobody takes them any more they go to the node's own. On node rank 0 each stream of each
 * other node is a source of the console's. The flows between the two threads are under a lock. */
#ifndef LAUNCHD_DAEMON_OUTPUT_MERGE_MERGE_H
#define LAUNCHD_DAEMON_OUTPUT_MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct console;
struct merge;
struct sm;

/* Where this node's workers' lines go: to its own console; to node rank 0, once the output thread
 * has opened consoles for that; or, as nobody takes them any more, to its own again. */
enum merge_state {
	MERGE_LOCAL,
	MERGE_OPENING,
	MERGE_SENDING,
	MERGE_KEEPING, /* the output thread has yet to hear of it */
	MERGE_KEPT,
	MERGE_STATES
};

extern const struct sm merge_life;

struct merge_host {
	uv_loop_t *loop;                 /* the output thread's */
	struct console *const *consoles; /* this node's own: stdout, stderr */
	/* From either thread, perhaps with the lock held: merge_serve() is to be called, from the
	 * output thread; the event loop is to look whether it can take anything. */
	void (*wake)(void *owner);
	void (*tell)(void *owner);
	/* From the output thread. */
	void (*say)(void *owner, bool warning, const char *text);
	void *owner;
};

/* -ENOMEM. */
int merge_new(const struct merge_host *host, struct merge **ret);

/* The event loop's on a node whose workers' lines go to node rank 0: they do, from the next attempt
 * on. Twice is once. Where a reader there is slow, they wait in their files, or are dropped. */
void merge_send(struct merge *m);

/* Takes up to room bytes of them, 0: there are none now; *ret_stream is 1 or 2. The pieces of a
 * line come one after the other, and no other stream's between them; wait: also if it takes
 * long. */
size_t merge_next(struct merge *m, bool wait, char *ret, size_t room, int *ret_stream);

/* Whether merge_next() waits for the end of a line, and with it the other stream's. */
bool merge_waits(struct merge *m);

/* No more attempts follow; merge_is_over(): all lines were taken. */
void merge_last(struct merge *m);
bool merge_is_over(struct merge *m);

/* Nobody takes them any more: what is left, and what comes, stays on this node's console. */
void merge_keep(struct merge *m);

/* The event loop's on node rank 0: lines of so many nodes will come, of each `share` bytes at a
 * time at most. Twice is once. -ENOMEM. */
int merge_expect(struct merge *m, unsigned nodes, size_t share);

/* Lines of one of them, or pieces: how many bytes are kept for the console. The rest has no room,
 * or no memory, and is lost. */
size_t merge_hear(struct merge *m, unsigned node, int stream, const char *at, size_t len);

/* It is lost: a line that has not ended ends. */
void merge_lost(struct merge *m, unsigned node);

/* What the console has taken of a node's lines since it was asked last; false: nothing of any. */
bool merge_taken(struct merge *m, unsigned *ret_node, size_t *ret_len);

/* The output thread's, from here on: does what the event loop has asked for, and looks at what has
 * come. */
void merge_serve(struct merge *m);

/* The consoles of workers that start now; NULL: this node's own. */
struct console *const *merge_consoles(struct merge *m);

/* After a turn of the loop: see console_flush(). written: no stream has more to show. */
bool merge_flush(struct merge *m);
void merge_turn(struct merge *m, bool written);

/* No more is sent, and none comes: what is there goes to this node's console. */
void merge_end(struct merge *m);

/* Nothing waits in what merge_flush() writes. */
bool merge_is_idle(const struct merge *m);

/* When the loop's owner has closed all that the loop has. NULL is allowed. */
void merge_free(struct merge *m);

#endif
