/* links_judge.h - from what all nodes tell of their links to the nodes that are bad. Pure.
 *
 * Each link has two ends in each direction: what one node sends and what another receives. A bad
 * link says that one of its ends is bad, or what lies between; which one it is, the other links of
 * both say. An end is bad whose links are, while those whom it meets are fine with others; so the
 * partners of a bad node are cleared, and two bad nodes may meet. Where that can't be told apart
 * (two nodes, or a network in two halves), and where both ends are fine with all others, no node is
 * bad: the link is named, as unknown. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_JUDGE_H
#define LAUNCHD_DAEMON_CHECK_LINKS_JUDGE_H

struct charges;
struct links_told;

/* told: of each node; NULL: it told nothing. -ENOMEM. */
int links_judge(unsigned nnodes, const struct links_told *const *told, struct charges *ret);

#endif
