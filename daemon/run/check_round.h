/* check_round.h - on node rank 0: the lines and results that nodes send in a phase of a check. */
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

/* Takes a node's line for all others, or its result. The first one counts; malformed ones are
 * dropped. */
void check_round_say(struct check_round *r, unsigned node, const char *at, size_t len);
void check_round_tell(struct check_round *r, unsigned node, const char *at, size_t len);

/* Returns whether every awaited node has sent its line (or its result), or its result. */
bool check_round_is_said(const struct check_round *r);
bool check_round_is_told(const struct check_round *r);

/* Adds all lines, each with a newline. */
void check_round_lines(const struct check_round *r, struct text *out);

/* Returns a node's result; NULL: it sent none. */
const char *check_round_told(const struct check_round *r, unsigned node);

void check_round_done(struct check_round *r);

#endif
