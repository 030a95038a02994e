/* phases.c - see phases.h */
#include "daemon/check/phases.h"

#include "common/text.h"
#include "daemon/check/gpu_phase.h"
#include "daemon/check/links.h"
#include "daemon/check/phase.h"
#include "daemon/check/quick_phase.h"

const struct phase *const phases[PHASE_IDS] = {
	[PHASE_QUICK] = &quick_phase,
	[PHASE_LINKS] = &links_phase,
	[PHASE_GPU] = &gpu_phase,
};

unsigned phases_of(enum preflight_mode mode, bool restart)
{
	static const unsigned wanted[PREFLIGHT_MODES] = {
		[PREFLIGHT_NONE] = 0,
		[PREFLIGHT_QUICK] = 1U << PHASE_QUICK,
		[PREFLIGHT_LINKS] = 1U << PHASE_QUICK | 1U << PHASE_LINKS,
		[PREFLIGHT_GPU] = 1U << PHASE_QUICK | 1U << PHASE_GPU,
		[PREFLIGHT_FULL] = 1U << PHASE_QUICK | 1U << PHASE_LINKS | 1U << PHASE_GPU,
	};

	return restart ? wanted[mode] & 1U << PHASE_QUICK : wanted[mode];
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
