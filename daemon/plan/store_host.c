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

/* pyenv, asdf and mise put scripts before the interpreters, which find theirs when they run. */
static bool is_shim(const char *python)
{
	return strstr(python, "/shims/");
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
			"%s: no torch was found for %s%s: launchd's store serves 2.2 and later; for an older one, give --python the path of the interpreter itself, or use --store rank0",
			where, python,
			is_shim(python) ? ", a shim that hides its interpreter" : "");
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
	bool is_known = p->python && d->facts->torch_version && is_served(d->facts->torch_version);

	p->torch_version = d->facts->torch_version;
	if (settings_given(d->s, SET_STORE)) {
		p->store = settings_is(d->s, SET_STORE, "agent") ? STORE_AGENT : STORE_RANK0;
		p->store_from = settings_where(d->s, SET_STORE);
		return p->store == STORE_AGENT ? check_agent(d, p) : 0;
	}
	if (p->node_env) {
		p->store = STORE_RANK0;
		p->store_from = settings_where(d->s, SET_NODE_ENV);
		return 0;
	}
	/* the others of an only rank are not this launcher's, and bring a store of their own */
	if (p->max_restarts == 0 || settings_given(d->s, SET_ONLY_RANK)) {
		p->store = STORE_RANK0;
		p->store_from = "default";
		return 0;
	}
	p->store = is_known ? STORE_AGENT : STORE_RANK0;
	p->store_from = is_known        ? "restarts, and a torch that launchd supports" :
		!p->python              ? settings_where(d->s, SET_NO_PYTHON) :
		d->facts->torch_version ? "a torch that launchd doesn't support" :
					  "no torch was found";
	if (p->python && !d->facts->torch_version && is_shim(d->facts->program.path))
		notes_add(d->notes, NOTE_INFO,
			"%s: %s is a shim that hides its interpreter, so worker 0 hosts the store: give --python the path of the interpreter itself for launchd to host it",
			settings_where(d->s, SET_MAX_RESTARTS), d->facts->program.path);
	return 0;
}
