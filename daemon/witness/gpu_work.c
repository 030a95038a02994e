/* gpu_work.c - see gpu_work.h */
#include "daemon/witness/gpu_work.h"

#include <string.h>

enum { PERCENT = 100 };

/* --- what is usual --- */

static void see(struct gpu_usual *u, unsigned look, unsigned value, unsigned per_step, bool busy)
{
	unsigned step = value / per_step;

	u->latest[look % WORK_LOOKS] = busy ? value : 0;
	if (busy)
		u->doubtful[step < WORK_STEPS ? step : WORK_STEPS - 1]++;
}

static void count_doubtful(struct gpu_usual *u)
{
	for (unsigned i = 0; i < WORK_STEPS; i++) {
		u->counted[i] += u->doubtful[i];
		u->count += u->doubtful[i];
	}
	memset(u->doubtful, 0, sizeof u->doubtful);
}

static unsigned median(const struct gpu_usual *u, unsigned per_step)
{
	unsigned below = 0, step = 0;

	while (step < WORK_STEPS - 1 && (below += u->counted[step]) * 2 <= u->count)
		step++;
	return step * per_step + per_step / 2;
}

static unsigned most_of_latest(const struct gpu_usual *u)
{
	unsigned most = 0;

	for (unsigned i = 0; i < WORK_LOOKS; i++)
		most = u->latest[i] > most ? u->latest[i] : most;
	return most;
}

static enum gpu_activity against(
	unsigned most, unsigned usual, unsigned waits_pct, unsigned works_pct)
{
	unsigned long long now = (unsigned long long)most * PERCENT;

	return now <= (unsigned long long)usual * waits_pct  ? GPU_WAITS :
		now >= (unsigned long long)usual * works_pct ? GPU_BUSY :
							       GPU_UNKNOWN;
}

/* --- one GPU --- */

void gpu_work_see(struct gpu_work *w, unsigned mw, bool busy, int tensor_permille)
{
	bool known = tensor_permille != TENSOR_UNKNOWN;

	see(&w->power, w->looks, mw, POWER_STEP_MW, busy);
	see(&w->tensor, w->looks, known ? (unsigned)tensor_permille : 0, TENSOR_STEP_PERMILLE,
		busy && known);
	w->tensor_looks = known ? w->tensor_looks + 1 : 0;
	w->used |= busy;
	w->looks++;
}

void gpu_work_moved(struct gpu_work *w)
{
	count_doubtful(&w->power);
	count_doubtful(&w->tensor);
}

static enum gpu_activity power_tells(const struct gpu_work *w)
{
	if (w->power.count < WORK_ENOUGH)
		return GPU_UNKNOWN;
	return against(most_of_latest(&w->power), median(&w->power, POWER_STEP_MW), POWER_WAITS_PCT,
		POWER_WORKS_PCT);
}

static enum gpu_activity tensor_tells(const struct gpu_work *w)
{
	unsigned usual = median(&w->tensor, TENSOR_STEP_PERMILLE);

	if (w->tensor.count < WORK_ENOUGH || w->tensor_looks < WORK_LOOKS ||
		usual < TENSOR_LEAST_PERMILLE)
		return GPU_UNKNOWN;
	return against(most_of_latest(&w->tensor), usual, TENSOR_WAITS_PCT, TENSOR_WORKS_PCT);
}

enum gpu_activity gpu_work_tells(const struct gpu_work *w)
{
	enum gpu_activity power, tensor;

	if (!w->used)
		return GPU_NONE;
	if (w->looks < WORK_LOOKS)
		return GPU_UNKNOWN;
	if (most_of_latest(&w->power) == 0)
		return GPU_IDLE;
	power = power_tells(w);
	tensor = tensor_tells(w);
	if (power == GPU_BUSY || tensor == GPU_BUSY)
		return GPU_BUSY; /* whoever says that it works is believed first */
	return power == GPU_WAITS || tensor == GPU_WAITS ? GPU_WAITS : GPU_UNKNOWN;
}

enum gpu_activity gpu_activity_of_both(enum gpu_activity a, enum gpu_activity b)
{
	static const enum gpu_activity first[] = { GPU_BUSY, GPU_UNKNOWN, GPU_WAITS, GPU_IDLE };

	for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
		if (a == first[i] || b == first[i])
			return first[i];
	return GPU_NONE;
}
