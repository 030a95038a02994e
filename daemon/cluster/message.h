/* message.h - the messages of launchers over a link, as bytes. Pure.
 *
 * Every message is one frame's payload. Decoding never trusts a length: -EPROTO is a message that
 * no launcher of this version writes, -ENOMEM one that the arena has no room for; then *ret is
 * untouched. Texts are cut to their room and end with NUL; control characters become '?'. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MESSAGE_H
#define LAUNCHD_DAEMON_CLUSTER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/job.h"
#include "daemon/job/verdict.h"

struct arena;
struct wire_out; /* wire.h */

/* Types below 16 are the link's own. */
enum message_type {
	MESSAGE_JOIN = 16, /* node to hub: I am here */
	MESSAGE_WAITING,   /* hub to nodes: a note for the user, mostly who is missing */
	MESSAGE_WELCOME,   /* hub to nodes: all have joined, make your plan */
	MESSAGE_READY,     /* node to hub: it has a plan */
	MESSAGE_REFUSED,   /* either way, to one or to all: there is no job */
	MESSAGE_FAILED,    /* node to hub: a worker failed without having been asked to end */
	MESSAGE_STOP,      /* either way: end all workers */
	MESSAGE_SIGNAL,    /* either way: a signal to forward */
	MESSAGE_OUTCOMES,  /* node to hub: some of its workers' ends; before ENDED */
	MESSAGE_RECORD,    /* node to hub: a failed worker's evidence; before ENDED */
	MESSAGE_ENDED,     /* node to hub: all workers of the attempt have ended */
	MESSAGE_LEAVE,     /* node to hub: its workers exited with 0, it leaves */
	MESSAGE_START,     /* hub to nodes: an attempt; the first one when all are ready */
	MESSAGE_VERDICT,   /* hub to nodes: the job is over */
	MESSAGE_JOINED,    /* node to hub: which of its ranks have not joined the store */
	MESSAGE_LOG,       /* node to hub: what its workers print; see credit.h */
	MESSAGE_LOG_ROOM,  /* hub to node: credit for more of it, first the whole */
	MESSAGE_END,
};

#define NODE_RANK_UNKNOWN UINT32_MAX /* no enumerator holds it */

enum { ADDRESS_SIZE = 72, RUN_ID_SIZE = 64, MESSAGE_TEXT_SIZE = 400 };

/* Who is to host the store, according to a node's settings. */
enum store_wish { STORE_WISH_NONE, STORE_WISH_AGENT, STORE_WISH_RANK0 };

struct message_join {
	unsigned node_rank; /* or NODE_RANK_UNKNOWN */
	unsigned nnodes, nproc, max_restarts;
	enum store_wish store;
	uint64_t run_hash;        /* of the whole --rdzv-id; 0: not given */
	char run_id[RUN_ID_SIZE]; /* its first characters, to be shown */
	char name[NODE_NAME_SIZE], version[32];
	char reached[ADDRESS_SIZE]; /* the hub's address that was dialed, as text */
};

struct message_welcome {
	unsigned node_rank; /* of the node that it is sent to */
	unsigned nnodes;
	char master_addr[ADDRESS_SIZE];
	unsigned master_port;
	unsigned max_restarts; /* the hub's apply */
	bool agent_store;      /* the hub's launcher hosts the store at that address */
	unsigned *nproc;       /* of each node */
};

enum refusal {
	REFUSED_JOB,     /* there is no job, for the same error on all nodes */
	REFUSED_RUNNING, /* it is already running without this node, or over */
	REFUSED_UNABLE,  /* the node came too late: --control auto goes on alone */
};

struct message_refused {
	enum refusal why;
	int code; /* negative errno, from which the refused launcher's exit code follows */
	char text[MESSAGE_TEXT_SIZE];
};

struct message_start {
	unsigned attempt, master_port;
};

/* A failed worker's evidence. */
struct message_record {
	unsigned attempt, rank;
	const struct error_record *record; /* NULL: none */
	const char *command;               /* the worker's, quoted for a shell */
	struct last_words words;
};

/* A hash to compare ids of runs by, however long they are; 0: NULL. */
uint64_t message_run_hash(const char *run_id);

/* Encoders add to out (out->failed: too long, or out of memory). */
void message_put_join(struct wire_out *out, const struct message_join *m);
void message_put_welcome(struct wire_out *out, const struct message_welcome *m);
void message_put_refused(struct wire_out *out, const struct message_refused *m);
void message_put_text(struct wire_out *out, const char *text); /* WAITING */
void message_put_failed(struct wire_out *out, const struct outcome *m);
void message_put_stop(struct wire_out *out, const struct stop *m);
void message_put_signal(struct wire_out *out, int signal);
/* Up to OUTCOMES_MAX of them. */
enum { OUTCOMES_MAX = 4096, OUTCOME_BYTES = 68 };
void message_put_outcomes(
	struct wire_out *out, unsigned attempt, const struct outcome *list, size_t count);
void message_put_record(struct wire_out *out, const struct message_record *m);
void message_put_ended(struct wire_out *out, const struct node_end *m); /* without the outcomes */
void message_put_start(struct wire_out *out, const struct message_start *m);
void message_put_verdict(struct wire_out *out, const struct verdict *m);
/* JOINED: ranks of this node that have not connected to the store. */
void message_put_ranks(struct wire_out *out, unsigned attempt, const unsigned *ranks, size_t count);

/* LOG: 1 to MESSAGE_LOG_MAX bytes of stream 1 (stdout) or 2 (stderr). LOG_ROOM: 1 to
 * MESSAGE_LOG_ROOM_MAX. */
enum { MESSAGE_LOG_MAX = 16 << 10, MESSAGE_LOG_ROOM_MAX = 4 * MESSAGE_LOG_MAX };
void message_put_log(struct wire_out *out, int stream, const char *at, size_t len);
void message_put_log_room(struct wire_out *out, size_t bytes);

/* Decoders. What they return by pointer is the arena's. */
int message_get_join(const unsigned char *at, size_t len, struct message_join *ret);
int message_get_welcome(
	const unsigned char *at, size_t len, struct arena *arena, struct message_welcome *ret);
int message_get_refused(const unsigned char *at, size_t len, struct message_refused *ret);
int message_get_text(const unsigned char *at, size_t len, char ret[MESSAGE_TEXT_SIZE]);
int message_get_failed(const unsigned char *at, size_t len, struct outcome *ret);
int message_get_stop(const unsigned char *at, size_t len, struct stop *ret);
int message_get_signal(const unsigned char *at, size_t len, int *ret);
int message_get_outcomes(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, struct outcome **ret, size_t *ret_count);
int message_get_record(
	const unsigned char *at, size_t len, struct arena *arena, struct message_record *ret);
int message_get_ended(const unsigned char *at, size_t len, struct node_end *ret);
int message_get_start(const unsigned char *at, size_t len, struct message_start *ret);
int message_get_verdict(const unsigned char *at, size_t len, struct verdict *ret);
int message_get_ranks(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, unsigned **ret, size_t *ret_count);
/* The bytes lie in the message. They are a worker's, and may be any. */
int message_get_log(
	const unsigned char *at, size_t len, int *ret_stream, const char **ret, size_t *ret_len);
int message_get_log_room(const unsigned char *at, size_t len, size_t *ret);

#endif
