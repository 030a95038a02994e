/* pairing.h - who is tested with whom, in rounds, until it is clear whose fault a bad pair is.
 * Pure.
 *
 * One bad pair blames two. So everybody is paired twice, each time with another partner (few
 * members: each with all), and who is still in doubt once more with somebody who is cleared by a
 * good pair:
 *   - a member with a good pair is good; a bad pair of two good members is a bad link;
 *   - a member without one is bad, if it is in bad pairs with two good members.
 * So a partner is never blamed for its bad neighbour, and two bad ones that meet by chance are both
 * found. */
#ifndef LAUNCHD_DAEMON_NODECHECK_PAIRING_H
#define LAUNCHD_DAEMON_NODECHECK_PAIRING_H

#include <stdbool.h>
#include <stddef.h>

enum pair_result { PAIR_UNKNOWN, PAIR_GOOD, PAIR_BAD };

/* One that was tested. Members are numbered from 0. */
struct pair {
	unsigned a, b;
	enum pair_result result;
};

enum { PAIRING_ROUNDS_MAX = 8 };

enum member_state {
	MEMBER_OPEN, /* nothing is clear */
	MEMBER_GOOD,
	MEMBER_BAD,
};

/* ret: members elements. */
void pairing_judge(const struct pair *done, size_t count, unsigned members, enum member_state *ret);

/* The next round, of at most members / 2 pairs in *ret; results unset. state and busy are rooms for
 * the members. Returns how many; 0: no more would make anything clearer. */
size_t pairing_next(const struct pair *done, size_t count, unsigned members, unsigned round,
	enum member_state *state, bool *busy, struct pair *ret);

#endif
