/* config.h - what a launcher needs to know to take its part in the job. Pure.
 *
 * Filled in from settings, facts and the provisional plan before anything is met. */
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
	MEET_NOBODY, /* one node, or --control off */
	MEET_PMIX,   /* node rank 0 tells its address and the key by PMIx */
	MEET_STATIC, /* node rank 0 listens where the settings say */
};

struct member_config {
	enum way_to_meet way;
	bool verbose;
	bool merge_logs; /* lines of this node's workers go to node rank 0's console */
	unsigned nnodes, node_rank, nproc;
	bool node_rank_known;  /* else: who owns the address is 0 */
	const char *required;  /* no job without a channel: "--control required"; NULL: auto */
	const char *name;      /* this host's */
	const char *run_id;    /* of the job, as the user gave it; NULL: nobody did */
	const char *hub_addr;  /* MEET_STATIC; MEET_PMIX: where PMIx is not to be had, or NULL */
	unsigned hub_port;     /* of hub_addr; MEET_PMIX: 0 is a free one */
	bool port_given;       /* by --control-port */
	const char *port_from; /* where hub_port comes from, for the user */
	bool port_by_endpoint; /* from --rdzv-endpoint */
	struct vec addresses;  /* of this node, best first, where others may reach it */
	struct vec local;      /* all of this node's, loopback too */
	bool bound;            /* listen there only: --local-addr or --interface is given */
	const char *own_addr;  /* --local-addr: what others are told; NULL: any of them */
	struct job_key key;    /* MEET_STATIC; may be none */
	uint64_t join_timeout_ms, node_timeout_ms, grace_ms;
	struct restart_policy policy;
	const char *master_addr; /* NULL: the hub's own */
	unsigned master_port;    /* 0: a free one for each attempt */
	bool agent_store;
	enum store_wish store_wish;        /* the user's, for this node */
	enum store_dialect store_dialect;  /* of clients before torch 2.2 */
	char **argv;                       /* main()'s, for names of child processes */
	struct death_notice *death_notice; /* for the guard; NULL: it tells nobody of our death */
	struct arena *arena;
};

#endif
