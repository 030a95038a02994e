/* trial.c - see trial.h */
#include "daemon/nodecheck/trial.h"

#include <stdlib.h>

#include "common/text.h"

/* Ranks that were left alone by one that could not even run only waited for it. */
static unsigned weight(enum gpu_sight_kind s)
{
	static const unsigned char by_sight[SIGHTS] = {
		[SIGHT_RIGHT] = 0,
		[SIGHT_HUNG] = 1,
		[SIGHT_NONE] = 2,
		[SIGHT_FAILED] = 3,
		[SIGHT_NO_GPU] = 4,
		[SIGHT_BROKEN] = 5,
		[SIGHT_WRONG] = 6,
	};

	return by_sight[s];
}

void trial_add(struct trial *t, const struct gpu_sight *by_rank)
{
	unsigned size = rank_group_size(&t->group);
	uint64_t slowest[RATES] = { 0 };
	bool first = t->times++ == 0;

	for (unsigned i = 0; i < size; i++) {
		unsigned rank = rank_group_at(&t->group, i);
		const struct gpu_sight *s = &by_rank[rank];

		if (first || weight(s->what) > weight(t->seen.what)) {
			uint64_t best[RATES];

			for (size_t r = 0; r < RATES; r++)
				best[r] = t->seen.rates[r];
			t->seen = *s;
			t->said_by = rank;
			for (size_t r = 0; r < RATES; r++)
				t->seen.rates[r] = best[r];
		}
		first = false;
		for (size_t r = 0; r < RATES; r++)
			if (i == 0 || s->rates[r] < slowest[r])
				slowest[r] = s->rates[r];
	}
	for (size_t r = 0; r < RATES; r++)
		if (slowest[r] > t->seen.rates[r])
			t->seen.rates[r] = slowest[r];
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void trials_changed(struct trials *all)
{
	for (size_t r = 0; r < RATES; r++)
		all->median[r].known = false;
}

static uint64_t median(struct trials *all, unsigned kind, enum rate rate)
{
	size_t count = 0;

	for (size_t m = 0; m < all->members; m++)
		all->scratch[m] = 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct trial *t = &all->at[i];
		uint64_t value =
			t->kind == kind && t->seen.what == SIGHT_RIGHT ? t->seen.rates[rate] : 0;

		if (value > all->scratch[t->a])
			all->scratch[t->a] = value;
		if (value > all->scratch[t->b])
			all->scratch[t->b] = value;
	}
	for (size_t m = 0; m < all->members; m++)
		if (all->scratch[m])
			all->scratch[count++] = all->scratch[m];
	if (count < 3)
		return 0;
	qsort(all->scratch, count, sizeof *all->scratch, by_value);
	return all->scratch[count / 2];
}

uint64_t trials_median(struct trials *all, unsigned kind, enum rate rate)
{
	if (!all->median[rate].known || all->median[rate].kind != kind) {
		all->median[rate].value = median(all, kind, rate);
		all->median[rate].kind = kind;
		all->median[rate].known = true;
	}
	return all->median[rate].value;
}

static bool below_peers(uint64_t value, uint64_t median, unsigned percent)
{
	return value * 100 < median * percent;
}

bool trial_is_slow(struct trials *all, const struct trial *t, enum rate rate)
{
	uint64_t value = t->seen.rates[rate];

	if (t->seen.what != SIGHT_RIGHT || value == 0)
		return false;
	return value < t->least[rate] ||
		below_peers(value, trials_median(all, t->kind, rate), all->percent);
}

bool trial_is_slow_at_all(struct trials *all, const struct trial *t)
{
	for (unsigned rate = 0; rate < RATES; rate++)
		if (trial_is_slow(all, t, (enum rate)rate))
			return true;
	return false;
}

/* Three digits. */
void rate_add(enum rate rate, uint64_t value, struct text *out)
{
	static const char *const units[RATES] = {
		[RATE_MEMORY] = "GB/s",
		[RATE_COMPUTE] = "TFLOP/s",
		[RATE_BUS] = "GB/s",
	};
	double shown = (double)value / (rate == RATE_COMPUTE ? 1e6 : 1e3);

	text_printf(out, "%.*f %s", shown < 10 ? 2 : shown < 100 ? 1 : 0, shown, units[rate]);
}

void trial_add_rate(struct trials *all, const struct trial *t, enum rate rate, struct text *out)
{
	uint64_t value = t->seen.rates[rate], peers = trials_median(all, t->kind, rate);

	rate_add(rate, value, out);
	if (value < t->least[rate]) {
		text_add(out, ", where ");
		rate_add(rate, t->least[rate], out);
		text_add(out, " are demanded");
	}
	if (below_peers(value, peers, all->percent)) {
		text_add(out,
			value < t->least[rate] ? " and its peers have " :
						 ", where its peers have ");
		rate_add(rate, peers, out);
	}
}
