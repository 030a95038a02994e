/* merge.h - several nodes' lines on one console (--merge-logs): the output thread's side.
 *
 * A node that is not node rank 0 has two consoles more, whose bytes the main thread takes and
 * sends; when nobody takes them any more they go to the node's own. On node rank 0 each stream of
 * each other node is a source of the console's. The flows between are under output's lock. */
#ifndef LAUNCHD_DAEMON_OUTPUT_MERGE_H
#define LAUNCHD_DAEMON_OUTPUT_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/output/console.h"
#include "daemon/output/flow.h"

struct output;

enum { MERGE_FLOW = 1 << 20 }; /* of a stream of ours that is to be sent */

/* Lines that come to one of our consoles from without. */
struct inflow {
	struct source source; /* first, so that one is the other; the thread's */
	struct flow flow;     /* under the lock */
	struct output *output;
	struct merge_node *node; /* NULL: ours */
	struct console *console;
};

/* One of the others. */
struct merge_node {
	struct inflow in[2]; /* stdout, stderr */
	unsigned number;
	size_t taken; /* under the lock, like what follows: bytes that node rank 0 has yet to hear
			 of */
	bool is_taken, has_come; /* it is in that list */
	struct merge_node *next_taken, *next_come;
};

struct merge {
	/* under the lock */
	struct inflow out[2];
	unsigned turn;   /* the stream that was taken from last */
	bool mid;        /* in the middle of a line */
	bool full;       /* a console waits for room in its flow */
	bool late[2];    /* it did, and the flow was not empty since */
	bool caught[2];  /* now it was: the console has yet to hear of it */
	bool keeps;      /* nobody takes lines any more */
	bool last, over; /* the last attempt is over; all its lines are in the flows */
	struct merge_node *nodes, *taken, *come;
	unsigned count;
	size_t share;

	/* the thread's */
	struct console remote[2];
	unsigned opened; /* of them */
	bool sends;      /* workers' lines go there; true: both are open */
	bool kept;       /* the flows are the local consoles' */
};

/* Orders: lines are to be sent; lines have come, there is room again, or they are to be kept. */
void merge_send(struct output *o);
void merge_hear(struct output *o);

/* The consoles of workers that start now. */
struct console *const *merge_consoles(struct output *o);

/* After a turn of the loop: see console_flush(). written: no stream has more to show. */
bool merge_flush(struct output *o);
void merge_turn(struct output *o, bool written);

/* No more is sent, and none comes: what is there goes to the local console. */
void merge_end(struct output *o);

/* Nothing waits in what merge_flush() writes. */
bool merge_is_idle(const struct output *o);

/* Closes the handles; memory is merge_done()'s when the loop has closed them. */
void merge_close(struct merge *m);
void merge_done(struct merge *m);

#endif
