/* links_sim.c - see links_sim.h */
#include "tests/unit/daemon/check/links_sim.h"

#include <string.h>

#include "daemon/check/links_rounds.h"

enum { USUAL_MBIT_S = 9400, MSS = 1448, SMALL_MSS = 1208, RTT_US = 80 };

/* splitmix64 */
unsigned sim_draw(struct sim *s, unsigned n)
{
	uint64_t z = s->dice += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (unsigned)((z ^ (z >> 31)) % n);
}

bool sim_is_bad(const struct sim *s, unsigned node)
{
	return s->faults[node] != SIM_NONE && s->faults[node] != SIM_FROZEN;
}

static bool is_mute(enum sim_fault f)
{
	return f == SIM_GONE || f == SIM_FROZEN;
}

static enum links_result result(const struct sim *s, unsigned from, unsigned to)
{
	enum sim_fault out = s->faults[from], in = s->faults[to];

	/* of a pair that is cut one way neither connects; node 0 has the control channel */
	if ((s->pair[0] == (int)from && s->pair[1] == (int)to) ||
		(s->pair[0] == (int)to && s->pair[1] == (int)from) || in == SIM_NO_ENTRY ||
		in == SIM_GONE || (out == SIM_ONE_WAY_OUT && to != 0) ||
		(in == SIM_ONE_WAY_OUT && from != 0))
		return LINKS_UNREACHED;
	if (in == SIM_FROZEN)
		return LINKS_SILENT;
	if (out == SIM_BLACK_HOLE_OUT || in == SIM_BLACK_HOLE_IN)
		return LINKS_BIG_LOST;
	return LINKS_DONE;
}

/* From low to high percent of the usual rate. */
static uint64_t rate(struct sim *s, unsigned low, unsigned high)
{
	return USUAL_MBIT_S * 10000ULL * (low + sim_draw(s, high - low));
}

static void measure(struct sim *s, unsigned from, struct link_told *l)
{
	enum sim_fault out = s->faults[from], in = s->faults[l->node];
	bool slow = out == SIM_SLOW || out == SIM_SLOW_OUT || in == SIM_SLOW || in == SIM_SLOW_IN;
	bool lossy = out == SIM_LOSSY_OUT || in == SIM_LOSSY_IN;
	bool far = out == SIM_FAR || in == SIM_FAR;

	l->tries = 2;
	l->rtt_us = RTT_US + sim_draw(s, RTT_US) + (far ? 20000 : 0);
	l->segments = 2900 * l->tries;
	/* some are lost wherever a receiver is overrun */
	l->resent = lossy ? l->segments / 100 + sim_draw(s, l->segments / 50) : sim_draw(s, 4);
	l->segment_max = out == SIM_SMALL_MTU || in == SIM_SMALL_MTU ? SMALL_MSS : MSS;
	if (slow)
		l->bit_s = rate(s, 1, 8);
	else if (far || lossy)
		l->bit_s = rate(s, 5, 60);
	else
		l->bit_s = s->busy ? rate(s, 30, 200) : rate(s, 70, 110);
	l->net_bit_s = l->bit_s;
}

/* Of each link that works, the better of two tries counts. */
static void try_again(struct sim *s, struct links_told *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		struct link_told *l = &t->at[i], again = *l;

		if (l->state != LINKS_DONE)
			continue;
		measure(s, (unsigned)(t - s->told), &again);
		if (again.bit_s > l->bit_s)
			l->bit_s = l->net_bit_s = again.bit_s;
	}
}

void sim_run(struct sim *s)
{
	memset(s->told, 0, sizeof s->told);
	for (unsigned node = 0; node < s->nnodes; node++) {
		struct links_told *t = &s->told[node];

		t->met = true;
		t->mtu = s->faults[node] == SIM_SMALL_MTU ? 1260 : 1500;
		for (unsigned round = 0; round < links_rounds(s->nnodes); round++) {
			int other = links_partner(s->nnodes, round, node);
			struct link_told *l = &t->at[t->count];

			if (other < 0)
				continue;
			t->count++;
			l->node = (unsigned)other;
			l->state = result(s, node, l->node);
			if (l->state == LINKS_DONE)
				measure(s, node, l);
		}
		try_again(s, t);
		s->known[node] = is_mute(s->faults[node]) ? NULL : t;
	}
}
