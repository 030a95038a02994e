/* ras_counts.h - what an answer of NCCL's RAS says of each rank: whether it has started fewer
 * collectives than the other ranks of a communicator have, or more. Pure.
 *
 * Both forms of an answer to VERBOSE STATUS are read: JSON (NCCL 2.28.7 and later), which has all
 * counts of all ranks, and the text of 2.24 and later, which only has those that differ. A count is
 * of collectives that were launched, not of those that are done: where all are equal, all ranks
 * have asked for the same. Collectives of captured CUDA graphs, send and receive aren't counted. */
#ifndef LAUNCHD_DAEMON_WITNESS_RAS_COUNTS_H
#define LAUNCHD_DAEMON_WITNESS_RAS_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* For an older NCCL the first line is an unknown command, which it says and forgets. */
#define RAS_QUESTION "SET FORMAT json\nTIMEOUT 3\nVERBOSE STATUS\n"

/* What the counts say of a rank, in all communicators that it is in. */
struct rank_ops {
	bool known;             /* these are, and nothing has started since the answer before */
	bool behind;            /* others have started what it has not */
	bool ahead;             /* it has started what others have not */
	bool odd;               /* as many as the others, but others than they */
	bool gone;              /* its process does not answer RAS, or counts as dead */
	uint64_t started, most; /* where it is farthest behind */
	uint32_t still_ms;      /* for how long these counts are known to have stood */
	uint32_t ras_bytes; /* of an answer, which its processes tell each other before; 0: none */
};

/* One rank of a communicator; private. */
struct ras_entry {
	uint64_t comm;    /* in a text: and the kind of collective */
	uint64_t process; /* its host and pid; 0: not known */
	uint64_t started, kinds;
	int64_t pid;
	int rank; /* in the communicator; -1: several that are not named */
	unsigned size;
	bool gone, closing;
};

enum { RAS_ENTRIES_MAX = 1 << 18 };

/* An answer. { 0 } at first. */
struct ras_counts {
	struct ras_entry *entries; /* sorted by communicator and rank */
	size_t count, room;
	size_t bytes;
	bool partial; /* a text: ranks that are alike are not named */
	bool several; /* a text of several communicators in which ranks differ */
};

/* Of this node. */
struct ras_worker {
	int64_t pid; /* 0: none */
	unsigned rank;
};

/* Reads an answer. -EPROTO: it is none, or not whole; -ENOMEM. *ret is empty then. */
int ras_counts_read(const char *answer, size_t len, struct ras_counts *ret);

void ras_counts_done(struct ras_counts *c);

/* Whether a rank that is in both has started something meanwhile; or none is, so that there are
 * other communicators now. */
bool ras_counts_moved(const struct ras_counts *before, const struct ras_counts *now);

/* What it says of the ranks of the job, ret[0] to ret[ranks - 1]; all but the last two. Whose rank
 * it is follows from the pids of this node's workers, and from communicators of all ranks. False:
 * one that differs is of nobody knows which rank, so that nothing follows. -ENOMEM is that too. */
bool ras_counts_judge(const struct ras_counts *c, const struct ras_worker *own, size_t own_count,
	unsigned ranks, struct rank_ops *ret);

/* The line of text of a rank, as launchers tell it: "ops 3 b 41 42 8000". */
void rank_ops_add(struct text *out, unsigned rank, const struct rank_ops *ops);

/* -EINVAL: it is none. */
int rank_ops_read(const char *line, unsigned *ret_rank, struct rank_ops *ret);

#endif
