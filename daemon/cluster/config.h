/* config.h - what a launcher needs to know to take part in the job. Pure.
 *
 * Filled in from settings, facts and the provisional plan before the nodes meet. */
#ifndef LAUNCHD_DAEMON_CLUSTER_CONFIG_H
#define LAUNCHD_DAEMON_CLUSTER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/vec.h"
#include "daemon/cluster/message.h"
#include "daemon/job/job.h"
#include "daemon/net/key.h"
#include "daemon/store/request.h"

struct arena;
struct death_notice;

/* How this node finds the others. */
enum way_to_meet {
	MEET_NOBODY,   /* one node, or --control off */
	MEET_EXCHANGE, /* node rank 0 tells its address and the key by PMIx, or PMI-1 */
	MEET_STATIC,   /* node rank 0 listens where the settings say */
};

struct member_config {
	enum way_to_meet way;
	bool verbose;
	bool merge_logs; /* lines of this node's workers go to node rank 0's console */
	unsigned nnodes, node_rank, nproc;
	bool node_rank_given;          /* by a setting or anyone's variable, so it may be wrong */
	bool node_rank_known;          /* else the owner of the address is node rank 0 */
	const char *const *node_names; /* by node rank; NULL: known only when they have joined */
	const char *nnodes_from;       /* what says how many there are */
	const char *required;  /* "--control required": no job without a channel; NULL: auto */
	const char *name;      /* this host's */
	struct peer peer;      /* what the others are told of this launcher */
	const char *run_id;    /* of the job, as the user gave it; NULL: not given */
	const char *job;       /* the same, of the launcher that gave the ranks; NULL: unknown */
	const char *hub_addr;  /* MEET_STATIC; MEET_EXCHANGE: if that is unavailable, may be NULL */
	unsigned hub_port;     /* of hub_addr; MEET_EXCHANGE: 0: any free one */
	int pmi_fd;            /* of PMI-1; 0: MEET_EXCHANGE is by PMIx */
	bool port_given;       /* by --control-port */
	const char *port_from; /* where hub_port comes from, for the user */
	bool port_by_endpoint; /* from --rdzv-endpoint */
	struct vec addresses;  /* of this node, that others may reach, best first */
	struct vec local;      /* all of this node's, including loopback */
	bool stays;            /* until the verdict, also when its workers have ended with 0 */
	bool bound;            /* listen there only: --local-addr or --interface is given */
	const char *own_addr;  /* --local-addr: what others are told; NULL: any of them */
	struct job_key key;    /* MEET_STATIC; may be missing */
	uint64_t join_timeout_ms, node_timeout_ms, grace_ms;
	uint64_t port_wait_ms; /* for a master port that is in use before a restart */
	uint64_t after_end_ms; /* that --blackbox and --post-attempt may add to an end */
	struct restart_policy policy;
	/* phases of the check before the first attempt and before each other one; 0: none */
	unsigned check_first, check_again;
	const char *master_addr; /* NULL: the hub's own */
	const char *master_port_from;
	unsigned master_port; /* 0: a free one for each attempt */
	bool agent_store;
	bool torch; /* worker 0 hosts the store otherwise: it needs the master port */
	enum store_wish store_wish;        /* the user's, for this node */
	enum store_dialect store_dialect;  /* of clients before torch 2.2 */
	char **argv;                       /* main()'s, for names of child processes */
	struct death_notice *death_notice; /* for the guard; NULL: it tells nobody of our death */
	struct arena *arena;
};

#endif
