/* store_host.c - who hosts the store in which workers meet; see decide.h */
#include "daemon/plan/decide.h"

#include <stdbool.h>
#include <string.h>

#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"
#include "daemon/store/dialect.h"

static bool is_served(const char *torch_version)
{
	enum store_dialect dialect;

	return store_dialect_of(torch_version, &dialect) == 0;
}

static void note_unknown_torch(const struct deciding *d, const struct plan *p)
{
	const char *where = settings_where(d->s, SET_STORE), *python = d->facts->program.path;

	if (!p->python)
		notes_add(d->notes, NOTE_INFO,
			"%s: launchd can't tell which torch a program uses: its store serves 2.2 and later",
			where);
	else
		notes_add(d->notes, NOTE_INFO,
			"%s: no torch was found for %s%s%s: launchd's store serves 2.2 and later; for an older one, give --python the path of the interpreter itself, or use --store rank0",
			where, python, d->facts->torch_unknown ? ": " : "",
			d->facts->torch_unknown ? d->facts->torch_unknown : "");
}

static int check_agent(const struct deciding *d, const struct plan *p)
{
	const char *where = settings_where(d->s, SET_STORE);

	if (!d->facts->torch_version) {
		note_unknown_torch(d, p);
		return 0;
	}
	if (!is_served(d->facts->torch_version))
		return failure_usage(d->why,
			"%s: launchd's store serves torch 1.13 and later, but %s has %s: use --store rank0",
			where, d->facts->program.path, d->facts->torch_version);
	return 0;
}

int decide_store(const struct deciding *d, struct plan *p)
{
	const char *torch = d->facts->torch_version;
	const char *rank0;

	p->torch_version = torch;
	if (settings_given(d->s, SET_STORE)) {
		p->store = settings_is(d->s, SET_STORE, "agent") ? STORE_AGENT : STORE_RANK0;
		p->store_from = settings_where(d->s, SET_STORE);
		return p->store == STORE_AGENT ? check_agent(d, p) : 0;
	}
	rank0 = program_needs_port(d->s, d->facts->env, &d->facts->program);
	p->store = !rank0 && torch && is_served(torch) ? STORE_AGENT : STORE_RANK0;
	p->store_from = rank0           ? rank0 :
		p->store == STORE_AGENT ? "a torch that launchd supports" :
		torch                   ? "a torch that launchd doesn't support" :
					  "no torch was found";
	if (!rank0 && d->facts->torch_unknown)
		notes_add(d->notes, NOTE_INFO,
			"worker 0 hosts the store: %s; give --python the path of the interpreter itself for launchd to host it",
			d->facts->torch_unknown);
	return 0;
}
