/* topology.h - where this node stands in the job, and where worker 0 listens. Pure.
 *
 * Settings and facts go in; ranks, numbers and the master address come out, each with the place
 * that decided it. */
#ifndef LAUNCHD_DAEMON_PLAN_TOPOLOGY_H
#define LAUNCHD_DAEMON_PLAN_TOPOLOGY_H

#include <stdbool.h>

#include "daemon/plan/introduction.h"
#include "daemon/plan/plan.h"

struct arena;
struct facts;
struct failure;
struct hosts;
struct launcher; /* daemon/launchers/launchers.h */
struct listed_nodes;
struct notes;
struct settings;

/* What ranks, addresses and the plan are decided from, and where it is told why. Whatever has to be
 * rendered is the settings' arena's. */
struct deciding {
	const struct settings *s;
	const struct facts *facts;
	struct notes *notes;
	struct failure *why;
};

/* Where a number of nodes is from: nothing says one. */
#define ONE_NODE "one node"

struct identity {
	unsigned nnodes, node_rank;
	const char *nnodes_from, *node_rank_from;
	bool node_rank_known; /* false: the nodes decide it when they meet; node_rank is 0 so far */
	bool by_launcher;     /* the launcher's own numbers, of several: its job is this one */
};

struct master {
	const char *addr; /* NULL: the nodes learn it when they meet */
	unsigned port;    /* 0: on one node a free one, chosen anew for each attempt; on several
			     nodes chosen when they meet */
	const char *addr_from, *port_from;
	bool by_list;          /* addr is of a list of hosts that a launcher or platform made */
	unsigned meet_port;    /* where launchers meet, known by itself; 0: at the port above */
	const char *meet_from; /* the c10d endpoint, or mpirun's job; NULL where meet_port is 0 */
};

enum control_how {
	CONTROL_NONE,     /* every launcher stands alone */
	CONTROL_STATIC,   /* all know the address */
	CONTROL_EXCHANGE, /* node rank 0 tells it by PMIx or PMI-1 */
};

/* What the launcher offers to its processes to find one another. */
enum exchange { EXCHANGE_NONE, EXCHANGE_PMIX, EXCHANGE_PMI };

/* Where node rank 0's launcher listens for the others. */
struct control {
	enum control_how how;
	bool required; /* the job fails where nodes can't meet */
	enum exchange exchange;
	const char *addr;       /* CONTROL_EXCHANGE: where to try without it; NULL: nobody knows */
	unsigned port;          /* CONTROL_EXCHANGE: 0 where addr is NULL, unless it is given */
	bool port_given;        /* by --control-port: node rank 0 listens there in any case */
	bool takes_master_port; /* the master port is this one: worker 0 needs another */
	const char *from;
};

struct topology {
	const struct launcher *launcher; /* who started this process */
	const char *job; /* which job this is, by what gave the ranks: "srun's job 17.0"; NULL:
			    unknown */
	struct identity identity;
	struct master master;
	unsigned nproc; /* workers on this node */
	const char *nproc_from;
	const struct hosts *hosts; /* whose slots are each node's workers; NULL: none has any */
	struct control control;
	bool met;                 /* the nodes have: what follows from all of them is for good */
	const struct peer *peers; /* what each has told of itself; NULL: they have not met */
	struct one_process process;
};

/* What the nodes have learned when they met. */
struct meeting_facts {
	unsigned node_rank; /* this node's; counts only where it was not known */
	const char *addr;   /* of worker 0, goes above the settings; NULL: not known */
	unsigned port;      /* for worker 0, free at node rank 0; 0: not known */
};

/* All that they agreed on: one node's settings count for the whole job. */
struct agreement {
	struct meeting_facts met;
	const unsigned *nproc_of_node;
	const struct peer *peers; /* by node rank; NULL: alone */
	bool alone;               /* the others could not be met */
	unsigned max_restarts;
	bool agent_store;
};

/* What [cluster] lists, if that counts; NULL: nothing, or a list of the system's file beside an MPI
 * or another number of nodes. *ret_given, where there is one: it is given, and so goes above what
 * the environment says; else it fills gaps. */
const struct listed_nodes *listed_nodes(
	const struct deciding *d, const struct launcher *launcher, bool *ret_given);

/* This node's rank in it, and where that is from. -EINVAL: it isn't there, or more than once;
 * -EAGAIN: nor may it be said that it isn't, as names have no answer yet. */
int listed_rank(const struct deciding *d, const struct listed_nodes *l, unsigned *ret,
	const char **ret_from);

/* The listed hosts, if their slots decide the number of workers; NULL: they don't. */
const struct hosts *listed_slots(const struct deciding *d, const struct topology *t);

/* The names of all nodes by their ranks, as the list has them, the settings' arena's; NULL: nothing
 * lists them, or out of memory. */
const char *const *listed_names(const struct deciding *d, const struct topology *t);

/* Whether the workers of this node, which are decided, are as many as its max_slots allow. */
int listed_check(const struct deciding *d, const struct topology *t);

/* What becomes of the launcher's MPI identity: --mpi-env, and with --per-process it is the
 * worker's. */
enum mpi_env mpi_env_of(const struct settings *s);

/* --per-process: local rank and size. Of the topology launcher and identity are there. -EINVAL: no
 * launcher has started this process, or it doesn't say. */
int process_find(const struct deciding *d, const struct topology *t, struct one_process *ret);

/* The hosts: from what the launchers have told, or where they don't meet, from the order in which
 * ranks were dealt out to hosts. -EINVAL: they contradict one another, or that order is none of the
 * usual. */
int process_find_host(const struct deciding *d, struct topology *t);

/* Node rank and number of nodes. What is given must not contradict MPI's or Slurm's.
 * -EINVAL: a contradiction, a rank outside the job, a rank without a size, no number. */
int identity_find(const struct deciding *d, const struct launcher *launcher, struct identity *ret);

/* Master address and port, of a topology that has been begun; see master.c for the order of places.
 * will_meet: what no place says, the nodes will learn when they meet. -EINVAL: no way to know, or
 * what was found is malformed. */
int master_find(
	const struct deciding *d, const struct topology *t, bool will_meet, struct master *ret);

/* Whether a PMIx server started this process; without one PMIx must not be touched. */
bool pmix_is_offered(const char *const *env);

/* By what the launchers can meet: the one that started them offers it, and this process's MPI
 * identity isn't kept for the worker, as a client uses it up. Of the topology launcher and identity
 * are there. */
enum exchange exchange_of(
	const struct settings *s, const struct facts *facts, const struct topology *t);

/* Where the launchers meet; the rest of the topology is there. -EINVAL: a port that can't be. */
int control_find(const struct deciding *d, const struct topology *t, struct control *ret);

/* The launcher, node rank, number of nodes and workers on this one. Of the rest, *ret has nothing
 * yet. */
int topology_begin(const struct deciding *d, struct topology *ret);

/* Master and control, from all that can be known before the nodes meet. */
int topology_finish(const struct deciding *d, bool will_meet, struct topology *t);

/* Fills in what only the meeting could tell; what was known stays. -EINVAL: something is missing
 * still. met's texts are borrowed. */
int topology_met(struct topology *t, const struct meeting_facts *met, struct failure *why);

/* HOST, HOST:PORT, [V6], [V6]:PORT, V6, and V6:PORT where that isn't an address by itself: torch
 * reads "::1:29400" so. *ret_port is NULL where there is none. -EINVAL: no host, or an open
 * bracket. */
int endpoint_split(
	struct arena *arena, const char *text, const char **ret_host, const char **ret_port);

/* Whether text can be an endpoint, or the address of a host without any port (*ret: without the
 * brackets of an IPv6 address). -EINVAL, with a sentence that begins with where: it is a URL, has a
 * port, or is several words. */
int endpoint_check(const char *where, const char *text, struct failure *why);
int address_check(const char *where, const char *text, struct arena *arena, const char **ret,
	struct failure *why);

/* The first host of a Slurm host list ("gpu[01-04,07],x" is gpu01), the arena's. "": none. */
const char *hostlist_first(struct arena *arena, const char *list);

#endif
