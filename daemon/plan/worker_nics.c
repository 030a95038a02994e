/* worker_nics.c - decide_nics(), see decide.h */
#include "daemon/plan/decide.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/machine.h"
#include "daemon/place/near_nic.h"
#include "daemon/place/placing.h"
#include "daemon/plan/plan.h"

/* A worker's own GPU has one; several may have the same. "": one of them has none. */
static const char *ports_of(
	const struct machine *m, const struct plan *p, unsigned local_rank, struct arena *arena)
{
	const int *gpus = &p->gpus_of[local_rank * p->visible.per_worker];
	const char *list = "";

	for (unsigned n = 0; n < p->visible.per_worker; n++) {
		int nic = near_nic(m, gpus[n]);
		bool listed = false;

		if (nic == MACHINE_NOWHERE)
			return "";
		for (unsigned before = 0; before < n; before++)
			listed = listed || near_nic(m, gpus[before]) == nic;
		if (!listed)
			list = arena_printf(arena, "%s%s%s", list, *list ? "," : "",
				nic_name(&m->nics[nic], arena));
	}
	return list;
}

/* NULL: all workers have one. */
static const char *why_none(const struct machine *m, const struct plan *p)
{
	bool port = false;

	for (size_t i = 0; i < m->nic_count; i++)
		port = port || (m->nics[i].device && m->nics[i].up);
	if (!port)
		return "no InfiniBand or RoCE port is up here";
	for (unsigned i = 0; i < p->nproc; i++)
		if (!*p->ucx_devices[i])
			return "it isn't known which GPU each worker has";
	return NULL;
}

int decide_nics(const struct deciding *d, struct plan *p)
{
	const struct machine *m = d->facts->machine;
	struct arena *arena = d->s->arena;
	const char **ports, *why;

	if (!m || !p->gpus_of || !settings_is(d->s, SET_NIC, "gpu") ||
		settings_flag(d->s, SET_NODE_ENV))
		return 0;
	if (env_given(d->s->env, p->env, UCX_PORTS)) {
		notes_add(d->notes, NOTE_VERBOSE, "%s: " UCX_PORTS " is set, and stays as it is",
			settings_label(d->s, SET_NIC));
		return 0;
	}
	ports = arena_alloc(arena, p->nproc * sizeof *ports);
	if (!ports)
		return failure_oom(d->why);
	for (unsigned i = 0; i < p->nproc; i++)
		ports[i] = ports_of(m, p, i, arena);
	p->ucx_devices = ports;
	why = why_none(m, p);
	if (!why)
		return 0;
	p->ucx_devices = NULL; /* all workers have the same variables */
	notes_add(d->notes, NOTE_WARNING, "%s: %s: " UCX_PORTS " is left to UCX",
		settings_label(d->s, SET_NIC), why);
	return 0;
}
