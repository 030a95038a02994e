/* roll_call.h - which nodes there are, by what the ranks that have come say of themselves. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_ROLL_CALL_H
#define LAUNCHD_DAEMON_NODECHECK_ROLL_CALL_H

#include <stdbool.h>

struct arena;
struct case_node;
struct text;

struct roll_entry {
	bool came;
	unsigned node, first, count; /* its node's rank, and that one's ranks */
	char host[64];
};

/* What a rank says, and back. -EPROTO: it can't be that of this rank of so many. */
void roll_entry_write(const struct roll_entry *e, struct text *out);
int roll_entry_read(const char *said, unsigned rank, unsigned ranks, struct roll_entry *ret);

/* The nodes in the order of their ranks, at most as many as there are ranks. A node of which a rank
 * has not come says so in `missing`; ranks of which nobody has come are one node that has no name.
 * Texts are the arena's. Returns how many there are. */
unsigned roll_call(const struct roll_entry *by_rank, unsigned ranks, struct arena *arena,
	struct case_node *ret);

#endif
