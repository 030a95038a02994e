/* spoke.h - every other node's side of the control channel: it dials the hub until it is heard,
 * tells what happens here and does what the hub says. */
#ifndef LAUNCHD_DAEMON_CLUSTER_SPOKE_H
#define LAUNCHD_DAEMON_CLUSTER_SPOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/cluster/credit.h"
#include "daemon/cluster/party.h"
#include "daemon/job/job.h"
#include "daemon/meet/dialer.h"
#include "daemon/net/beat.h"
#include "daemon/net/link.h"

struct evidence;
struct sm;

enum spoke_state {
	SPOKE_DIALING, /* until the join timeout */
	SPOKE_JOINING, /* connected: for all the others, until a moment later */
	SPOKE_READY,   /* all are there: its plan is made, the first attempt may start */
	SPOKE_RUNNING, /* an attempt */
	SPOKE_ENDED,   /* its part of the attempt: where it is to stop, for what follows */
	SPOKE_OVER,    /* nothing more is expected of the hub */
	SPOKE_LASTING, /* closing: workers' last lines still go out */
	SPOKE_CLOSED,  /* it leaves the loop */
	SPOKE_STATES,
};

extern const struct sm spoke_life;

struct spoke {
	/* the owner's, before spoke_start(); the rest is { 0 } */
	void (*on_missed)(void *owner, const char *why); /* once: there will be no channel */
	void (*on_round)(void *owner); /* all addresses were dialled in vain: are there others? */
	void *owner;

	struct party *party;
	struct dialer dialer;
	struct link *link; /* to the hub, once there was one; the dialer's */
	struct beat beat;
	uv_timer_t clock;    /* how long the state may last */
	uint64_t note_ms;    /* when to tell next that the hub can't be reached */
	struct node_end end; /* of this node's part of the attempt; outcomes are borrowed */
	struct cause told;   /* why the hub had the attempt stopped, on our clock; NONE: not yet */
	struct cause lost;   /* the hub was lost; CAUSE_NONE: it was not */
	uint64_t stop_grace_ms; /* of the first stop that the hub ordered; else our own */
	/* the longest of all nodes', and node rank 0's */
	uint32_t after_end_ms, port_wait_ms;
	uint64_t overdue_ms;  /* when the hub must have said what follows; uv_now() */
	struct credit credit; /* for this node's lines */
	enum spoke_state state;
	unsigned node; /* this one's rank, once it is in the job */
	unsigned attempt, max_restarts;
	bool linked;             /* the link is in the loop */
	bool returned;           /* its former job still runs elsewhere, and is waited for */
	bool asked;              /* this node's launcher was asked to end the job */
	unsigned asked_restarts; /* attempts that followed a request, as in job.h */
	bool overdue;            /* the hub was, and its link was closed for it */
	bool lines_ended;        /* this node has no more of them */
};

/* Begins to dial, as a part of the party, whose events tell what happens. Addresses are copied. */
void spoke_start(struct spoke *s, struct party *p, const struct addresses *hub);

/* What happens on this node; see member.h. */
void spoke_asked(struct spoke *s, const struct stop *stop);
void spoke_ended(
	struct spoke *s, const struct node_end *end, const struct evidence *list, size_t count);

/* Tells the hub, while there is a link to it. */
void spoke_tell(struct spoke *s, const struct message *m);

/* How this node is, for the hub that has asked; see member.h. Nothing is said while the hub lags
 * behind in reading: it can ask again. */
void spoke_status(struct spoke *s, const struct message_status *told);

/* How quiet its workers are, likewise. */
/* What this node has kept of a failure; before spoke_ended(). */
void spoke_bundle(struct spoke *s, const struct message_bundle *told);

bool spoke_look(struct spoke *s, const struct message_look *told);

/* Its workers have come to a new step; before spoke_ended(). */
void spoke_step(struct spoke *s, const struct message_step *told);

/* The hub's name means these now. */
void spoke_hear_addresses(struct spoke *s, const struct addresses *hub);

/* Leaves; the party hears party_part_closed() when nothing is left in the loop. */
void spoke_close(struct spoke *s);

/* After spoke_close(): waits no longer until the hub has read what it was told. */
void spoke_hurry(struct spoke *s);

/* This node's lines; see member.h. */
bool spoke_merges(const struct spoke *s);
size_t spoke_log_room(const struct spoke *s);
void spoke_log(struct spoke *s, int stream, const char *at, size_t len);
void spoke_log_end(struct spoke *s);

/* --- spoke_lines.c and spoke.c among themselves --- */

void spoke_hear_log_room(struct spoke *s, const struct message *m);
/* The link's on_idle. */
void spoke_lines_idle(struct link *l);
/* The job starts: says where this node and node rank 0 do not have the same wishes. */
void spoke_lines_start(const struct spoke *s);
/* The link has closed. */
void spoke_lines_lost(struct spoke *s);
/* What spoke_close() comes to, at once or when the last lines are sent. */
void spoke_leave(struct spoke *s);

#endif
