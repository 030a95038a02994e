/* phases.c - see phases.h */
#include "daemon/check/phases.h"

#include "common/text.h"
#include "daemon/check/gate_phase.h"
#include "daemon/check/gpu_phase.h"
#include "daemon/check/links.h"
#include "daemon/check/phase.h"
#include "daemon/check/quick_phase.h"

const struct phase *const phases[PHASE_IDS] = {
	[PHASE_QUICK] = &quick_phase,
	[PHASE_LINKS] = &links_phase,
	[PHASE_GPU] = &gpu_phase,
	[PHASE_GATE] = &gate_phase,
};

unsigned phases_first(enum preflight_mode mode)
{
	static const unsigned wanted[PREFLIGHT_MODES] = {
		[PREFLIGHT_NONE] = 0,
		[PREFLIGHT_QUICK] = 1U << PHASE_QUICK,
		[PREFLIGHT_LINKS] = 1U << PHASE_QUICK | 1U << PHASE_LINKS,
		[PREFLIGHT_GPU] = 1U << PHASE_QUICK | 1U << PHASE_GPU,
		[PREFLIGHT_FULL] = 1U << PHASE_QUICK | 1U << PHASE_LINKS | 1U << PHASE_GPU,
	};

	return wanted[mode];
}

unsigned phases_again(enum preflight_mode mode, bool gate)
{
	return (phases_first(mode) & 1U << PHASE_QUICK) | (gate ? 1U << PHASE_GATE : 0);
}

unsigned phases_lowest(unsigned wanted)
{
	unsigned phase = 0;

	while (phase + 1 < PHASE_IDS && !(wanted & 1U << phase))
		phase++;
	return wanted ? phase : 0;
}

void phases_add(struct text *out, unsigned wanted)
{
	const char *between = "";

	for (unsigned i = 0; i < PHASE_IDS; i++) {
		if (!(wanted & 1U << i))
			continue;
		text_printf(out, "%s%s", between, phases[i]->name);
		between = ", ";
	}
}
