/* gpu_power.c - see gpu_power.h */
#include "daemon/witness/gpu_power.h"

#include <string.h>

enum { PERCENT = 100 };

void gpu_power_see(struct gpu_power *p, unsigned mw, bool busy)
{
	unsigned step = mw / POWER_STEP_MW;

	p->latest_mw[p->looks++ % POWER_LOOKS] = busy ? mw : 0;
	p->used |= busy;
	if (busy)
		p->doubtful[step < POWER_STEPS ? step : POWER_STEPS - 1]++;
}

void gpu_power_moved(struct gpu_power *p)
{
	for (unsigned i = 0; i < POWER_STEPS; i++) {
		p->counted[i] += p->doubtful[i];
		p->count += p->doubtful[i];
	}
	memset(p->doubtful, 0, sizeof p->doubtful);
}

static unsigned median_mw(const struct gpu_power *p)
{
	unsigned below = 0, step = 0;

	while (step < POWER_STEPS - 1 && (below += p->counted[step]) * 2 <= p->count)
		step++;
	return step * POWER_STEP_MW + POWER_STEP_MW / 2;
}

enum gpu_activity gpu_power_tells(const struct gpu_power *p)
{
	unsigned most = 0;
	unsigned long long now, usual;

	if (!p->used)
		return GPU_NONE;
	if (p->looks < POWER_LOOKS)
		return GPU_UNKNOWN;
	for (unsigned i = 0; i < POWER_LOOKS; i++)
		most = p->latest_mw[i] > most ? p->latest_mw[i] : most;
	if (most == 0)
		return GPU_IDLE;
	if (p->count < POWER_ENOUGH)
		return GPU_UNKNOWN;
	now = (unsigned long long)most * PERCENT;
	usual = median_mw(p);
	return now <= usual * POWER_WAITS_PCT  ? GPU_WAITS :
		now >= usual * POWER_WORKS_PCT ? GPU_BUSY :
						 GPU_UNKNOWN;
}

enum gpu_activity gpu_activity_of_both(enum gpu_activity a, enum gpu_activity b)
{
	static const enum gpu_activity first[] = { GPU_BUSY, GPU_UNKNOWN, GPU_WAITS, GPU_IDLE };

	for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
		if (a == first[i] || b == first[i])
			return first[i];
	return GPU_NONE;
}
