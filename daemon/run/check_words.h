/* check_words.h - what a check of nodes prints for the user. */
#ifndef LAUNCHD_DAEMON_RUN_CHECK_WORDS_H
#define LAUNCHD_DAEMON_RUN_CHECK_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/ending.h"

struct arena;
struct bus;
struct checkup_verdict;
struct phase_input;

/* The first node that is bad, its host, and what is bad of it. */
struct check_bad {
	unsigned node;
	char host[NODE_NAME_SIZE];
	char reason[CAUSE_DETAIL_SIZE];
	const char *exclude; /* the hosts of all bad nodes, "gpu07,gpu12"; NULL: no node is bad */
};

/* The check that is reported on. */
struct check_words {
	const struct bus *bus;
	struct arena *arena; /* for `exclude` */
	const struct phase_input *input;
	unsigned phases, node_rank, nnodes; /* nnodes: of the job */
	const char *hostname;
	uint64_t began_ns;
	bool together;
	struct check_bad *bad;
};

/* Reports the verdict of a check. Returns how many nodes are bad. */
unsigned check_words_verdict(const struct check_words *w, const struct checkup_verdict *v);

/* Reports that a child could not run the check, or did not finish it. */
void check_words_unable(const struct bus *bus, const char *what, const char *why);

#endif
