/* links_rounds.c - see links_rounds.h */
#include "daemon/check/links_rounds.h"

/* The tournament's table: all nodes but the last one sit in a circle of an odd number of places, in
 * round s those are a pair whose places add up to s, and the one place that would meet itself meets
 * the last node. Where the number of nodes is odd, that one isn't there. */
static unsigned circle_of(unsigned nnodes)
{
	return nnodes % 2 ? nnodes : nnodes - 1;
}

unsigned links_rounds(unsigned nnodes)
{
	unsigned all = nnodes < 2 ? 0 : circle_of(nnodes);

	return all < LINKS_ROUNDS_MAX ? all : LINKS_ROUNDS_MAX;
}

int links_partner(unsigned nnodes, unsigned round, unsigned node)
{
	unsigned places = circle_of(nnodes), rounds = links_rounds(nnodes), other;
	unsigned long long sum;

	if (rounds == 0)
		return -1;
	sum = (unsigned long long)round * places / rounds;
	if (node == places) /* half of the sum, which is a place, too, as 2 has an inverse */
		return (int)(sum * ((places + 1ULL) / 2) % places);
	other = (unsigned)((sum + places - node) % places);
	if (other != node)
		return (int)other;
	return nnodes % 2 ? -1 : (int)places;
}
