/* mpirun_grace.c - how long mpirun lets its processes live once it ends the job; see decide.h
 *
 * Open MPI 4 sends SIGCONT, T seconds later SIGTERM, and T seconds after that SIGKILL; T is its
 * parameter odls_base_sigkill_timeout, 1 by default, which it hands down in the environment. Open
 * MPI 5 (PRRTE 3) has lost the parameter: a quarter of a second each, whatever is asked for. */
#include "daemon/plan/decide.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

#define PARAMETER "odls_base_sigkill_timeout"

enum { DEFAULT_OF_OPEN_MPI_4_MS = 1000, FIXED_BY_OPEN_MPI_5_MS = 250 };

/* Whether it can be lengthened; false also where nothing is known (a -1 waits for ever, and what
 * mpirun makes of a word is its own matter). */
static bool find_grace(const char *const *env, struct plan *p)
{
	const char *given = env_get(env, "OMPI_MCA_" PARAMETER);
	uint64_t seconds;

	if (env_get(env, "PRTE_LAUNCHED")) {
		p->mpirun_grace_ms = FIXED_BY_OPEN_MPI_5_MS;
		p->mpirun_grace_from = "Open MPI 5";
		return false;
	}
	if (!given) {
		p->mpirun_grace_ms = DEFAULT_OF_OPEN_MPI_4_MS;
		p->mpirun_grace_from = "mpirun's default";
		return true;
	}
	if (num_parse(given, 0, INT_MAX, &seconds) < 0)
		return false;
	p->mpirun_grace_ms = seconds * 1000;
	p->mpirun_grace_from = "OMPI_MCA_" PARAMETER;
	return true;
}

/* launchd's last acts need a moment, too: so one second more than the grace. A variable works also
 * for those who can't change mpirun's command line. */
static const char *way_out(struct arena *a, bool can_be_longer, uint64_t grace_ms)
{
	unsigned long long needed = (grace_ms + 999) / 1000 + 1;

	if (!can_be_longer)
		return "Open MPI 5 has no setting for that";
	return arena_printf(a,
		"to change that, set OMPI_MCA_" PARAMETER "=%llu where mpirun is started (its "
		"SIGTERM then comes %llu s later, too)",
		needed, needed);
}

void decide_mpirun_grace(const struct deciding *d, enum launcher launcher, struct plan *p)
{
	const struct reaction *term = &p->reactions.of[SIGTERM];
	bool ends = reaction_ends(term);
	bool of_signal = term->grace_ms != settings_number(d->s, SET_SHUTDOWN_TIMEOUT);
	bool asked = of_signal || settings_given(d->s, SET_SHUTDOWN_TIMEOUT);
	bool can_be_longer;

	if (launcher != LAUNCHER_OPEN_MPI)
		return;
	can_be_longer = find_grace(d->facts->env, p);
	if (!p->mpirun_grace_from || !ends || p->start_count == 0 ||
		term->grace_ms <= p->mpirun_grace_ms)
		return;
	p->mpirun_cuts = arena_printf(d->s->arena,
		"mpirun sends SIGKILL %s s after its SIGTERM, before the %s s of %s are over; %s",
		num_seconds(p->mpirun_grace_ms).text, num_seconds(term->grace_ms).text,
		!asked            ? "--shutdown-timeout" :
			of_signal ? settings_where(d->s, SET_ON_SIGNAL) :
				    settings_where(d->s, SET_SHUTDOWN_TIMEOUT),
		way_out(d->s->arena, can_be_longer, term->grace_ms));
	/* who did not ask for a time is told when it counts: as mpirun ends the job */
	notes_add(d->notes, asked ? NOTE_WARNING : NOTE_VERBOSE, "%s", p->mpirun_cuts);
}
