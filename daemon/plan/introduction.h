/* introduction.h - what the launchers of a job tell one another of themselves when they meet,
 * besides their numbers of workers, and what follows from all of it. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_INTRODUCTION_H
#define LAUNCHD_DAEMON_PLAN_INTRODUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;

struct peer {
	uint64_t role;     /* hash of --role: what counts is whether two are the same */
	uint64_t host;     /* hash of the host's identity; 0: the launcher is the only one there */
	bool leads;        /* the launcher of local rank 0, or the only one on its host */
	const char *addr;  /* where the others reach its workers, as text; NULL: not told */
	size_t port_count; /* ports that it keeps for its workers: one for each, or none */
	const unsigned *ports;
	unsigned jax_port; /* that it keeps for JAX, should its worker be rank 0; 0: none */
};

/* --per-process: the launcher is one of several on its host, each with one worker. */
struct one_process {
	bool is;
	unsigned local_rank, local_world_size;
	unsigned host, hosts; /* hosts 0: not known before the launchers have met */
	const char *from;     /* the variable of the local rank */
};

/* One launcher's place among some: those with its role, or the hosts. */
struct among {
	unsigned first; /* how many come before it */
	unsigned count; /* of all */
};

/* Workers of its role. peers and nproc have an entry for each of nnodes launchers. */
struct among peers_role(
	const struct peer *peers, const unsigned *nproc, unsigned nnodes, unsigned self);

/* Its host among the hosts, which are numbered in the order of the launchers that lead them. here:
 * how many launchers the one that started them all says are on this host. -EINVAL: the launchers
 * contradict that, or none of them leads. */
int peers_host(const struct peer *peers, unsigned nnodes, unsigned self, unsigned here,
	struct among *ret, struct failure *why);

#endif
