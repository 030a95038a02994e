/* pairing.c - see pairing.h */
#include "daemon/nodecheck/pairing.h"

#include "daemon/check/links_rounds.h"

/* Where one bad member is in most pairs of two rounds, all of them are needed to know what is
 * usual. */
enum { FEW = 6 };

/* Whether this pair stood before in the list. */
static bool again(const struct pair *done, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if ((done[i].a == done[at].a && done[i].b == done[at].b) ||
			(done[i].a == done[at].b && done[i].b == done[at].a))
			return true;
	return false;
}

void pairing_judge(const struct pair *done, size_t count, unsigned members, enum member_state *ret)
{
	for (unsigned i = 0; i < members; i++)
		ret[i] = MEMBER_OPEN;
	for (size_t i = 0; i < count; i++)
		if (done[i].result == PAIR_GOOD)
			ret[done[i].a] = ret[done[i].b] = MEMBER_GOOD;
	for (unsigned m = 0; m < members; m++) {
		unsigned bad = 0;

		for (size_t i = 0; ret[m] == MEMBER_OPEN && i < count; i++) {
			const struct pair *p = &done[i];
			unsigned other = p->a == m ? p->b : p->a;

			bad += (p->a == m || p->b == m) && p->result == PAIR_BAD &&
				ret[other] == MEMBER_GOOD && !again(done, i);
		}
		if (bad >= 2)
			ret[m] = MEMBER_BAD;
	}
}

static bool met(const struct pair *done, size_t count, unsigned a, unsigned b)
{
	for (size_t i = 0; i < count; i++)
		if ((done[i].a == a && done[i].b == b) || (done[i].a == b && done[i].b == a))
			return true;
	return false;
}

/* All with all others. */
static size_t whole_round(unsigned members, unsigned round, struct pair *ret)
{
	size_t n = 0;

	for (unsigned m = 0; m < members; m++) {
		int other = links_partner(members, round, m);

		if (other > (int)m)
			ret[n++] = (struct pair){ .a = m, .b = (unsigned)other };
	}
	return n;
}

size_t pairing_next(const struct pair *done, size_t count, unsigned members, unsigned round,
	enum member_state *state, bool *busy, struct pair *ret)
{
	unsigned good = 0, open = 0, rounds = links_rounds(members);
	unsigned at_least = members <= FEW ? rounds : 2;
	size_t n = 0;

	if (members < 2 || round >= PAIRING_ROUNDS_MAX)
		return 0;
	if (round < at_least)
		return whole_round(members, round, ret);
	pairing_judge(done, count, members, state);
	for (unsigned m = 0; m < members; m++) {
		good += state[m] == MEMBER_GOOD;
		open += state[m] == MEMBER_OPEN;
		busy[m] = false;
	}
	if (open == 0)
		return 0;
	if (good == 0) /* nobody yet to be measured against */
		return round < rounds ? whole_round(members, round, ret) : 0;
	for (unsigned m = 0; m < members; m++)
		for (unsigned g = 0; state[m] == MEMBER_OPEN && !busy[m] && g < members; g++)
			if (state[g] == MEMBER_GOOD && !busy[g] && !met(done, count, m, g)) {
				busy[m] = busy[g] = true;
				ret[n++] = (struct pair){ .a = m, .b = g };
			}
	return n;
}
