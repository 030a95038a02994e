/* check_round.h - node rank 0's: what the nodes say and tell in a phase of their check. */
#ifndef LAUNCHD_DAEMON_RUN_CHECK_ROUND_H
#define LAUNCHD_DAEMON_RUN_CHECK_ROUND_H

#include <stdbool.h>
#include <stddef.h>

struct text;

/* Begins as { 0 }; private. */
struct check_round {
	unsigned nnodes;
	const bool *absent;
	struct text *said, *told; /* by node */
	bool answered;
};

/* Begins a phase; what came in the one before is forgotten. absent: by node, not waited for;
 * borrowed. -ENOMEM: there is no round. */
int check_round_begin(struct check_round *r, unsigned nnodes, const bool *absent);

/* A node's line to all others, or its result: the first one counts, and
 * what is no line, or nothing told, is dropped. */
void check_round_say(struct check_round *r, unsigned node, const char *at, size_t len);
void check_round_tell(struct check_round *r, unsigned node, const char *at, size_t len);

/* Whether all that are awaited have said a line, or have told already. */
bool check_round_is_said(const struct check_round *r);
bool check_round_is_told(const struct check_round *r);

/* Adds all lines, each with a newline. */
void check_round_lines(const struct check_round *r, struct text *out);

/* What a node has told; NULL: nothing. */
const char *check_round_told(const struct check_round *r, unsigned node);

void check_round_done(struct check_round *r);

#endif
