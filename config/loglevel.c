/* loglevel.c - see loglevel.h */
#include "config/loglevel.h"

#include <errno.h>
#include <strings.h>

#include "common/num.h"
#include "config/settings.h"

/* Python's levels: a logger says what is at its level or above. */
enum { DEBUG = 10, INFO = 20, WARNING = 30, ERROR = 40, CRITICAL = 50 };

/* -EINVAL: text names no level. */
static int parse(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		unsigned number;
	} levels[] = {
		{ "NOTSET", 0 },
		{ "DEBUG", DEBUG },
		{ "INFO", INFO },
		{ "WARN", WARNING },
		{ "WARNING", WARNING },
		{ "ERROR", ERROR },
		{ "FATAL", CRITICAL },
		{ "CRITICAL", CRITICAL },
	};

	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (strcasecmp(levels[i].name, text) == 0) {
			*ret = levels[i].number;
			return 0;
		}
	return num_parse(text, 0, UINT32_MAX, ret);
}

static enum note_level least_of(uint64_t number)
{
	return number <= DEBUG    ? NOTE_VERBOSE :
		number <= INFO    ? NOTE_INFO :
		number <= WARNING ? NOTE_WARNING :
				    NOTE_NONE;
}

int loglevel_read(struct settings *s, const char *text, struct notes *notes, struct failure *why)
{
	const struct origin from = { LEVEL_ENVIRONMENT, LOGLEVEL_VARIABLE };
	enum note_level least;
	uint64_t number;
	int rc;

	if (parse(text, &number) < 0) {
		notes_add(notes, NOTE_WARNING,
			LOGLEVEL_VARIABLE
			"=%s has no effect: it is not a level of Python's logging (DEBUG, INFO, WARNING, ERROR, CRITICAL, or a number)",
			text);
		return 0;
	}
	least = least_of(number);
	s->warnings_only = least == NOTE_WARNING;
	rc = settings_put(s, SET_VERBOSE, least == NOTE_VERBOSE ? "1" : "0", from, why);
	if (rc == 0)
		rc = settings_put(s, SET_QUIET, least == NOTE_NONE ? "1" : "0", from, why);
	return rc;
}

enum note_level loglevel_least(const struct settings *s)
{
	const struct value *quiet = &s->value[SET_QUIET], *verbose = &s->value[SET_VERBOSE];

	if (quiet->number && (!verbose->number || quiet->from.level > verbose->from.level))
		return NOTE_NONE;
	if (verbose->number)
		return NOTE_VERBOSE;
	/* LAUNCHD_QUIET=0 asks for notes */
	return s->warnings_only && quiet->from.level == LEVEL_ENVIRONMENT ? NOTE_WARNING :
									    NOTE_INFO;
}
