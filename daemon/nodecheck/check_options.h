/* check_options.h - what launchd-nodecheck is told: its options, and its place among the job's
 * ranks, which it has from the variables that a worker gets. Pure: the caller hands both over. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CHECK_OPTIONS_H
#define LAUNCHD_DAEMON_NODECHECK_CHECK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/nodecheck/check_case.h"

struct failure;
struct text;

struct check_options {
	bool help, version, json, share_gpu;
	bool findings;    /* of the own node, by its first rank, for launchd */
	const char *keys; /* with which all keys in the store begin */
	const char *part; /* this is a child, and that is its order (part.h); NULL: it is none */
	unsigned memory_percent; /* of the free memory, to be tested */
	uint64_t message_bytes;  /* of an all-reduce, at most */
	struct check_demands demands;
};

struct check_place {
	unsigned rank, ranks, local_rank, local_ranks, node;
	const char *host; /* of the store; NULL: there is one rank, which needs none */
	unsigned port;
};

/* Wrong: a sentence, and FAILURE_USAGE. */
int check_options_read(int argc, char *const *argv, struct check_options *ret, struct failure *why);

/* RANK, WORLD_SIZE and so on; without RANK it is one rank of one. variable: as getenv(3). */
int check_place_read(
	const char *(*variable)(const char *name), struct check_place *ret, struct failure *why);

void check_options_help(struct text *out);

#endif
