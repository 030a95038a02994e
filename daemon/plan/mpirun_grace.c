/* mpirun_grace.c - how long mpirun lets its processes live once it ends the job; see decide.h
 */
#include "daemon/plan/decide.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/plan.h"

/* What the parameter says; false: nothing is known (a -1 waits for ever, and what mpirun makes of a
 * word is its own matter). */
static bool find_grace(const struct launcher *l, const char *const *env, struct plan *p)
{
	const char *given = l->grace_variable ? env_get(env, l->grace_variable) : NULL;
	uint64_t seconds = 0;

	if (given && num_parse(given, 0, INT_MAX, &seconds) < 0)
		return false;
	p->mpirun_grace_ms = given ? seconds * 1000 : l->grace_ms;
	p->mpirun_grace_from = given ? l->grace_variable : l->grace_from;
	return true;
}

/* launchd's last acts need a moment, too: so one second more than the grace. A variable works also
 * for those who can't change mpirun's command line. */
static const char *way_out(struct arena *a, const struct launcher *l, uint64_t grace_ms)
{
	unsigned long long needed = (grace_ms + 999) / 1000 + 1;

	if (!l->grace_variable)
		return arena_printf(a, "%s has no setting for that", l->grace_from);
	return arena_printf(a,
		"to change that, set %s=%llu where mpirun is started (its SIGTERM then comes %llu s later, too)",
		l->grace_variable, needed, needed);
}

void decide_mpirun_grace(const struct deciding *d, const struct launcher *launcher, struct plan *p)
{
	const struct reaction *term = &p->reactions.of[SIGTERM];
	bool ends = reaction_ends(term);
	bool of_signal = term->grace_ms != settings_number(d->s, SET_SHUTDOWN_TIMEOUT);
	bool asked = of_signal || settings_given(d->s, SET_SHUTDOWN_TIMEOUT);

	if (!launcher->grace_ms || !find_grace(launcher, d->facts->env, p) || !ends ||
		p->start_count == 0 || term->grace_ms <= p->mpirun_grace_ms)
		return;
	p->mpirun_cuts = arena_printf(d->s->arena,
		"%s sends SIGKILL %s s after its SIGTERM, before the %s s of %s are over; %s",
		launcher->name, num_seconds(p->mpirun_grace_ms).text,
		num_seconds(term->grace_ms).text,
		!asked            ? "--shutdown-timeout" :
			of_signal ? settings_where(d->s, SET_ON_SIGNAL) :
				    settings_where(d->s, SET_SHUTDOWN_TIMEOUT),
		way_out(d->s->arena, launcher, term->grace_ms));
	/* who did not ask for a time is told when it counts: as mpirun ends the job */
	notes_add(d->notes, asked ? NOTE_WARNING : NOTE_VERBOSE, "%s", p->mpirun_cuts);
}
