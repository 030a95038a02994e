/* survey.h - how all nodes of the job are, for those who ask node rank 0's launcher: "nodes":"all"
 * of launchd-control(7). It asks the others by the control channel, once for all clients that wait.
 */
#ifndef LAUNCHD_DAEMON_RUN_SURVEY_H
#define LAUNCHD_DAEMON_RUN_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/arena.h"
#include "daemon/control/ctl_server.h"

struct message_status;
struct node_sight;
struct run;
struct text;

/* A last line of a worker has at most so many bytes there: some thousand workers are one answer. */
enum { SURVEY_LINE_MAX = 200 };

struct survey {
	/* the owner's, before survey_enter() */

	/* How this node is, under that number: survey_told() is due, now or later. */
	void (*ask_self)(void *owner, unsigned query);
	void *owner;
	struct run *run;
	struct ctl_server *server;

	/* private */
	uv_timer_t limit;
	unsigned query;   /* the number of the one that goes on, or that was the last */
	unsigned awaited; /* nodes */
	struct arena memory;
	unsigned nodes; /* of the job; by node rank: */
	bool *asked;    /* it has not answered yet */
	struct text *said;
	struct node_sight *seen;
	struct ctl_client *clients[CONTROL_ALL];
	unsigned count; /* of clients: with none no survey goes on */
};

/* Into the run's loop, and out of it: who waits then is answered by the server's end. */
void survey_enter(struct survey *s);
void survey_leave(struct survey *s);

/* Answers the client when all nodes have told, or time is over for the others; or refuses. A client
 * that comes while others wait hears what they hear. */
void survey_join(struct survey *s, struct ctl_client *c);

/* What a node says; nothing where it was not asked for. */
void survey_told(struct survey *s, unsigned node, const struct message_status *told);

#endif
