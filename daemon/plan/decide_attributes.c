/* decide_attributes.c - --rlimit, --nice and --oom-score-adj; see decide.h */
#include "daemon/plan/attributes.h"

#include "common/arena.h"
#include "common/failure.h"
#include "config/settings.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

int decide_attributes(const struct deciding *d, struct plan *p)
{
	const struct settings *s = d->s;
	struct attributes a = {
		.has_nice = settings_given(s, SET_NICE),
		.nice = (int)settings_number(s, SET_NICE),
	};

	if (settings_given(s, SET_OOM_SCORE_ADJ))
		a.oom_score_adj =
			arena_printf(s->arena, "%d", (int)settings_number(s, SET_OOM_SCORE_ADJ));
	if (settings_given(s, SET_RLIMIT) &&
		rlimits_parse(settings_text(s, SET_RLIMIT), settings_label(s, SET_RLIMIT), s->arena,
			&a.limits, d->why) < 0)
		return d->why->code;
	p->attributes = a;
	return 0;
}
