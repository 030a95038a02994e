/* spoke.h - every other node's side of the control channel: it dials the hub until it is heard,
 * tells what happens here and does what the hub says. */
#ifndef LAUNCHD_DAEMON_CLUSTER_SPOKE_H
#define LAUNCHD_DAEMON_CLUSTER_SPOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "daemon/cluster/merged_lines.h"
#include "daemon/cluster/message.h"
#include "daemon/job/job.h"
#include "daemon/meet/dialer.h"
#include "daemon/net/beat.h"
#include "daemon/net/link.h"

struct member;
struct stop;
struct evidence;

enum spoke_state {
	SPOKE_DIALING, /* until the join timeout */
	SPOKE_JOINING, /* connected: for all the others, until a moment later */
	SPOKE_READY,   /* all are there: its plan is made, the first attempt may start */
	SPOKE_IN,      /* the job runs; when it is to stop and has ended here: for what follows */
	SPOKE_OVER,
};

struct spoke {
	struct member *member;
	enum spoke_state state;
	struct dialer dialer;
	struct link *link; /* to the hub, once there was one; the dialer's */
	bool linked;       /* it is in the loop */
	struct beat beat;
	uv_timer_t clock; /* how long the state may last */
	uint64_t note_ms; /* when it is said next that the hub is not reached */
	unsigned node;    /* this one's rank, once it is in the job */
	unsigned attempt, max_restarts;
	bool ended;          /* this node's part of the attempt, */
	struct node_end end; /* like this; outcomes are borrowed */
	struct cause
		told; /* why the hub had this attempt stopped, on our clock; NONE: it had not */
	bool asked;   /* this node's launcher was asked to end the job */
	uint64_t stop_grace_ms; /* of the stop that the hub told first; else our own */
	uint64_t overdue_ms;    /* when the hub must have said what follows; uv_now() */
	bool overdue;           /* it had not */
	bool closing;
	struct spoke_logs logs;
	struct cause lost; /* the hub was lost; CAUSE_NONE: it was not */
	unsigned handles;
};

/* Begins to dial. The addresses are copied. Whatever happens is told by the member's events. */
void spoke_start(struct spoke *s, struct member *m, const struct sockaddr_storage *addresses,
	unsigned count);

/* What happens on this node; see member.h. */

void spoke_failed(struct spoke *s, const struct outcome *o);
void spoke_asked(struct spoke *s, const struct stop *stop);
void spoke_forward(struct spoke *s, int signal);
void spoke_ended(
	struct spoke *s, const struct node_end *end, const struct evidence *list, size_t count);
void spoke_waiting(struct spoke *s, unsigned attempt, const unsigned *ranks, size_t count);

/* The hub's name means these now. */
void spoke_hear_addresses(
	struct spoke *s, const struct sockaddr_storage *addresses, unsigned count);

/* Leaves; the member hears member_part_closed() when nothing is left in the loop. */
void spoke_close(struct spoke *s);

/* After spoke_close(): waits no longer until the hub has read what it was told. */
void spoke_hurry(struct spoke *s);

/* For spoke*.c among themselves. */

struct wire_out;

/* What spoke_close() comes to, at once or when the last lines are sent. */
void spoke_leave(struct spoke *s);
void spoke_send(struct spoke *s, enum message_type type, struct wire_out *w);
/* There is no job. */
void spoke_fail(struct spoke *s, int code, const char *text);
/* There is no channel to be had. */
void spoke_give_up(struct spoke *s, const char *why);
/* The only writer of the state; it has until then (uv_now(); 0: for ever). */
void spoke_enter(struct spoke *s, enum spoke_state state, uint64_t until_ms);
/* spoke_stop.c. The attempt is to stop, or has ended on this node: once it is both, the hub has a
 * limit for what follows. */
void spoke_await_verdict(struct spoke *s);
/* Begins to dial, and again when the link was lost. */
void spoke_dial(struct spoke *s, const struct sockaddr_storage *addresses, unsigned count);
void spoke_dial_again(struct spoke *s, const char *why);
void spoke_hear_welcome(struct spoke *s, const unsigned char *at, size_t len);
void spoke_hear_refusal(struct spoke *s, const unsigned char *at, size_t len);

#endif
