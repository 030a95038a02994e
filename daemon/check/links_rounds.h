/* links_rounds.h - who tries its link to whom: pairs of nodes in rounds, with other partners in
 * each. Pure. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_ROUNDS_H
#define LAUNCHD_DAEMON_CHECK_LINKS_ROUNDS_H

/* Enough to tell three bad nodes from all that they meet, as three partners are still good then;
 * and as all pairs of a round work at once, what this costs doesn't grow with the job. */
enum { LINKS_ROUNDS_MAX = 6 };

/* How many rounds there are; with up to 7 nodes everybody meets everybody. */
unsigned links_rounds(unsigned nnodes);

/* The node that this one meets in a round, which meets it, too; -1: none, as their number is odd.
 * Partners of one node are never the same, and lie far apart in the order of ranks, which is mostly
 * that of racks. */
int links_partner(unsigned nnodes, unsigned round, unsigned node);

#endif
