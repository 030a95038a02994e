/* message.h - the messages of launchers over a link, as bytes. Pure.
 *
 * Every message is one frame's payload. Decoding never trusts a length. Texts are cut to their room
 * and end with NUL; control characters become '?'. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MESSAGE_H
#define LAUNCHD_DAEMON_CLUSTER_MESSAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/job.h"
#include "daemon/job/verdict.h"
#include "daemon/plan/introduction.h"

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
	MESSAGE_QUERY,     /* hub to nodes: how are you? */
	MESSAGE_STATUS,    /* node to hub: the answer */
	MESSAGE_CHECKED,   /* hub to nodes: the check of START is over, and workers may start */
	MESSAGE_LOOK,   /* node to hub: how quiet its workers are, and what a look at them shows */
	MESSAGE_HANG,   /* hub to nodes: look at your workers, or what is thought of the job's quiet
			 */
	MESSAGE_BUNDLE, /* node to hub: what it has kept of a failure; before ENDED */
	MESSAGE_CHECK,  /* either way: a word of the check of nodes */
	MESSAGE_STEP,   /* node to hub: its workers have come to a new step (--progress) */
	MESSAGE_END,
};

#define NODE_RANK_UNKNOWN UINT32_MAX /* no enumerator holds it */

/* Bytes of the names of bad nodes: some thousand of them. */
enum { EXCLUDE_MAX = 64 << 10 };

enum { ADDRESS_SIZE = 72, RUN_ID_SIZE = 64, JOB_SIZE = 96, MESSAGE_TEXT_SIZE = 400 };

/* Who is to host the store, according to a node's settings. */
enum store_wish { STORE_WISH_NONE, STORE_WISH_AGENT, STORE_WISH_RANK0 };

struct message_join {
	unsigned node_rank; /* or NODE_RANK_UNKNOWN */
	unsigned nnodes, nproc, max_restarts;
	enum store_wish store;
	uint64_t run_hash;        /* of the whole --rdzv-id; 0: not given */
	char run_id[RUN_ID_SIZE]; /* its first characters, to be shown */
	uint64_t job_hash;        /* of the launcher's job; 0: none is known */
	char job[JOB_SIZE];       /* its first characters */
	char name[NODE_NAME_SIZE], version[32];
	char reached[ADDRESS_SIZE]; /* the hub's address that was dialed, as text */
	uint32_t after_end_ms;      /* how long after its workers' end it may report that end */
	struct peer peer;
};

struct message_welcome {
	unsigned node_rank; /* of the node that it is sent to */
	unsigned nnodes;
	char master_addr[ADDRESS_SIZE];
	unsigned master_port;
	unsigned max_restarts;    /* the hub's apply */
	uint32_t after_end_ms;    /* the longest of all nodes' */
	uint32_t port_wait_ms;    /* the hub's, before a restart */
	bool agent_store;         /* the hub's launcher hosts the store at that address */
	const unsigned *nproc;    /* of each node */
	const struct peer *peers; /* of each node */
};

enum refusal {
	REFUSED_JOB,     /* there is no job, for the same error on all nodes */
	REFUSED_RUNNING, /* it is already running without this node, or over */
	REFUSED_UNABLE,  /* the node came too late: --control auto goes on alone */
	REFUSED_YET,     /* its former job still ends elsewhere: it is to come again */
};

struct message_refused {
	enum refusal why;
	int code; /* negative errno, from which the refused launcher's exit code follows */
	char text[MESSAGE_TEXT_SIZE];
};

struct message_start {
	unsigned attempt, master_port;
	/* The phases by which all nodes are checked before their workers start, as daemon/check
	 * numbers them; 0: none. */
	unsigned checks;
	uint32_t gate_ms; /* how long the gate among them may take */
	uint64_t job_ms;  /* when the job has started, by the hub's CLOCK_REALTIME */
};

/* A failed worker's evidence. */
struct message_record {
	unsigned attempt, rank;
	const struct error_record *record; /* NULL: none */
	const char *command;               /* the worker's, quoted for a shell */
	struct last_words words;
};

/* Some of a node's workers' ends. */
struct message_outcomes {
	unsigned attempt;
	const struct outcome *list;
	size_t count; /* up to OUTCOMES_MAX */
};
enum { OUTCOMES_MAX = 4096, OUTCOME_BYTES = 114 };

/* Ranks of a node that have not connected to the store. */
struct message_ranks {
	unsigned attempt;
	const unsigned *list;
	size_t count;
};

/* What a node's workers have printed: a worker's bytes, which may be any. */
struct message_log {
	int stream;     /* 1 (stdout) or 2 (stderr) */
	const char *at; /* where it was decoded: in the message */
	size_t len;     /* 1 to MESSAGE_LOG_MAX */
};
enum { MESSAGE_LOG_MAX = 16 << 10, MESSAGE_LOG_ROOM_MAX = 4 * MESSAGE_LOG_MAX };

/* How a node is: "status" of launchd-control(7). Whoever shows it looks at it first: what it is
 * made of is not looked at here. */
struct message_status {
	unsigned query; /* its number */
	const char *at; /* where it was decoded: in the message */
	size_t len;     /* 0 to MESSAGE_STATUS_MAX; 0: there was no memory for it, or no room */
};
enum { MESSAGE_STATUS_MAX = 512 << 10 };

/* What a node knows of its workers' quiet, as daemon/witness writes and reads it: on the way here
 * nobody looks into it. */
struct message_look {
	unsigned attempt;
	const char *at; /* where it was decoded: in the message */
	size_t len;     /* 0 to MESSAGE_LOOK_MAX */
};
enum { MESSAGE_LOOK_MAX = 512 << 10 };

/* What node rank 0 wants of the nodes, or thinks. */
enum hang_order {
	HANG_ORDER_REST,    /* the job moves: look now and then */
	HANG_ORDER_LOOK,    /* it is quiet: look once a second */
	HANG_ORDER_SUSPECT, /* text says what of */
	HANG_ORDER_CLEARED,
	HANG_ORDER_CERTAIN,
};

struct message_hang {
	unsigned attempt;
	enum hang_order order;
	char text[MESSAGE_TEXT_SIZE]; /* "": none */
};

/* What a node has kept of a failure: --blackbox. */
struct message_bundle {
	unsigned attempt;
	char path[PATH_MAX];          /* of its directory, as that node sees it; "": nothing */
	char text[MESSAGE_TEXT_SIZE]; /* what it has found, or why there is nothing */
};

/* What nodes and node rank 0 tell each other while all are checked. */
enum check_word {
	CHECK_SAYS, /* node: what the others want to know while they measure */
	CHECK_ALL,  /* node rank 0: what all have said */
	CHECK_TOLD, /* node: what it has measured, or why it could not */
	CHECK_NEXT, /* node rank 0: measure this phase now */
	CHECK_WORDS,
};

struct message_check {
	unsigned attempt;
	unsigned phase; /* as daemon/check numbers them */
	enum check_word word;
	const char *at; /* bytes; where it was decoded: in the message */
	size_t len;     /* 0 to MESSAGE_CHECK_MAX */
};
enum { MESSAGE_CHECK_MAX = 512 << 10, CHECK_PHASE_MAX = 31 };

struct message_step {
	unsigned attempt;
	uint64_t step;
	uint64_t at_ns; /* when they did, on the node's clock */
};

/* A message of any type, and what it says. READY and LEAVE say nothing more. */
struct message {
	enum message_type type;
	union {
		struct message_join join;
		struct message_welcome welcome;
		struct message_refused refused;
		struct outcome failed;
		struct stop stop;
		int signal;
		struct message_outcomes outcomes;
		struct message_record record;
		struct node_end ended; /* without the outcomes */
		struct message_start start;
		struct verdict verdict;
		struct message_ranks joined;
		struct message_log log;
		size_t log_room; /* 1 to MESSAGE_LOG_ROOM_MAX */
		unsigned query;  /* a number, which the answer has */
		struct message_status status;
		unsigned checked; /* the attempt */
		char waiting[MESSAGE_TEXT_SIZE];
		struct message_look look;
		struct message_hang hang;
		struct message_bundle bundle;
		struct message_check check;
		struct message_step step;
	};
};

/* One of type WAITING; a text that is too long is cut. */
struct message message_waiting(const char *text);

/* A hash to compare ids of runs and the like by, however long they are; 0: NULL. */
uint64_t message_hash(const char *text);

/* Adds what it says to out (out->failed: too long, or out of memory). */
void message_put(struct wire_out *out, const struct message *m);

/* The other way. What is returned by pointer is the arena's. -EPROTO: no launcher of this version
 * writes that; -ENOMEM: the arena has no room. Then *ret is untouched. */
int message_get(unsigned type, const unsigned char *at, size_t len, struct arena *arena,
	struct message *ret);

#endif
