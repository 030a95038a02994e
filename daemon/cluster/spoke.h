/* spoke.h - every other node's side of the control channel: it dials the hub until it is heard,
 * tells what happens here and does what the hub says. */
#ifndef LAUNCHD_DAEMON_CLUSTER_SPOKE_H
#define LAUNCHD_DAEMON_CLUSTER_SPOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "daemon/cluster/beat.h"
#include "daemon/cluster/job.h"
#include "daemon/cluster/link.h"
#include "daemon/cluster/logs.h"
#include "daemon/cluster/message.h"

struct member;
struct stop;
struct testimony;

enum spoke_state {
	SPOKE_DIALING, /* or waiting to dial again */
	SPOKE_JOINING, /* connected: for all the others */
	SPOKE_READY,   /* all are there: its plan is made, the first attempt may start */
	SPOKE_IN,      /* the job runs */
	SPOKE_OVER,
};

struct spoke {
	struct member *member;
	enum spoke_state state;
	struct link link;
	bool linked; /* the link is in the loop */
	struct beat beat;
	uv_timer_t clock;                         /* the next dialing, the join timeout */
	const struct sockaddr_storage *addresses; /* of the hub, in the order in which to try */
	unsigned count, next, tries;
	uint64_t deadline_ms; /* of the joining */
	uint64_t note_ms;     /* when it is said next that the hub is not reached */
	char last[256];       /* why the last dialing failed */
	unsigned attempt, max_restarts;
	bool ended; /* this node's part of the attempt */
	bool closing;
	struct spoke_logs logs;
	struct cause lost; /* the hub was lost; CAUSE_NONE: it was not */
	unsigned handles;
};

/* Begins to dial. The addresses are borrowed. Whatever happens is told by the member's events. */
void spoke_start(struct spoke *s, struct member *m, const struct sockaddr_storage *addresses,
	unsigned count);

/* What happens on this node; see member.h. */

void spoke_failed(struct spoke *s, const struct outcome *o);
void spoke_asked(struct spoke *s, const struct stop *stop);
void spoke_forward(struct spoke *s, int signal);
void spoke_ended(
	struct spoke *s, const struct node_end *end, const struct testimony *list, size_t count);
void spoke_waiting(struct spoke *s, unsigned attempt, const unsigned *ranks, size_t count);

/* Leaves; the member hears member_part_closed() when nothing is left in the loop. */
void spoke_close(struct spoke *s);

/* After spoke_close(): waits no longer until the hub has read what it was told. */
void spoke_hurry(struct spoke *s);

/* For spoke*.c among themselves. */

struct wire_out;

enum { SPOKE_FIRST_NOTE_MS = 10000 }; /* until it is said that the hub is not reached */

/* What spoke_close() comes to, at once or when the last lines are sent. */
void spoke_leave(struct spoke *s);
void spoke_send(struct spoke *s, enum message_type type, struct wire_out *w);
/* There is no job. */
void spoke_fail(struct spoke *s, int code, const char *text);
/* There is no channel to be had. */
void spoke_give_up(struct spoke *s, const char *why);
/* Dials the next address, at once or after the last one later. */
void spoke_dial(struct spoke *s);
void spoke_dial_later(struct spoke *s, const char *why);
/* The link's on_ready. */
void spoke_introduce(struct link *l);
void spoke_hear_welcome(struct spoke *s, const unsigned char *at, size_t len);
void spoke_hear_refusal(struct spoke *s, const unsigned char *at, size_t len);

#endif
