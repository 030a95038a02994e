/* store_host.c - who hosts the store in which workers meet; see decide.h */
#include "daemon/plan/decide.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/torch_version.h"
#include "daemon/plan/plan.h"

enum { AGENT }; /* the first choice of --store */

enum served {
	SERVED,
	SERVED_UNTRIED, /* torch 2.1 has a wire format of its own, for that one version */
	NOT_SERVED,
};

/* torch changed the wire format with 2.1 and with 2.2, and has only added to it since. */
static enum served served(const char *version)
{
	unsigned major, minor;

	if (torch_version_parse(version, &major, &minor) < 0)
		return NOT_SERVED;
	if (major == 2 && minor == 1)
		return SERVED_UNTRIED;
	return major >= 2 || (major == 1 && minor >= 13) ? SERVED : NOT_SERVED;
}

/* pyenv, asdf and mise put scripts before the interpreters, which find theirs when they run. */
static bool is_shim(const char *python)
{
	return strstr(python, "/shims/");
}

static void note_unknown_torch(
	const struct plan *p, const char *where, const char *python, struct notes *notes)
{
	if (!p->python)
		notes_add(notes, NOTE_INFO,
			"%s: which torch a program has is not known here: the store serves 2.2 and "
			"above",
			where);
	else
		notes_add(notes, NOTE_INFO,
			"%s: no torch was found for %s%s: the store serves 2.2 and above; for an "
			"older one give --python the path of the interpreter itself, or --store "
			"rank0",
			where, python,
			is_shim(python) ? ", a shim that hides its interpreter" : "");
}

static int check_agent(const struct settings *s, const struct facts *facts, const struct plan *p,
	struct notes *notes, struct failure *why)
{
	const char *where = settings_where(s, SET_STORE);

	if (!facts->torch_version) {
		note_unknown_torch(p, where, facts->program.path, notes);
		return 0;
	}
	switch (served(facts->torch_version)) {
	case SERVED:
		break;
	case SERVED_UNTRIED:
		notes_add(notes, NOTE_WARNING,
			"%s: launchd's store was never tried with torch %s; if workers can't meet, "
			"give --store rank0",
			where, facts->torch_version);
		break;
	case NOT_SERVED:
		return failure_set(why, -EINVAL,
			"%s: launchd's store serves torch 1.13 and above, but that of %s is %s: "
			"give --store rank0",
			where, facts->program.path, facts->torch_version);
	}
	return 0;
}

int decide_store(const struct settings *s, const struct facts *facts, struct plan *p,
	struct notes *notes, struct failure *why)
{
	bool is_known = p->python && facts->torch_version && served(facts->torch_version) == SERVED;

	p->torch_version = facts->torch_version;
	if (settings_given(s, SET_STORE)) {
		p->store = settings_number(s, SET_STORE) == AGENT ? STORE_AGENT : STORE_RANK0;
		p->store_from = settings_where(s, SET_STORE);
		return p->store == STORE_AGENT ? check_agent(s, facts, p, notes, why) : 0;
	}
	/* the others of an only rank are not this launcher's, and bring a store of their own */
	if (p->max_restarts == 0 || settings_given(s, SET_ONLY_RANK)) {
		p->store = STORE_RANK0;
		p->store_from = "preset";
		return 0;
	}
	p->store = is_known ? STORE_AGENT : STORE_RANK0;
	p->store_from = is_known     ? "restarts, and a torch that launchd can serve" :
		!p->python           ? settings_where(s, SET_NO_PYTHON) :
		facts->torch_version ? "a torch that launchd can't serve" :
				       "no torch was found";
	if (p->python && !facts->torch_version && is_shim(facts->program.path))
		notes_add(notes, NOTE_INFO,
			"%s: %s is a shim that hides its interpreter, so that worker 0 hosts the "
			"store: give --python the path of the interpreter itself for launchd to "
			"host it",
			settings_where(s, SET_MAX_RESTARTS), facts->program.path);
	return 0;
}
