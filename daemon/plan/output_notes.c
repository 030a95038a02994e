/* output_notes.c - settings of the output that can have no effect; see decide.h */
#include "daemon/plan/decide.h"

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/notes.h"
#include "common/template.h"
#include "config/ranks.h"
#include "config/settings.h"
#include "config/streams.h"
#include "config/value.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/prefix.h"

/* What the workers that start here have. */
struct used {
	bool file, console, waits; /* waits: for the console, as there is no file */
	bool filtered[3];          /* by descriptor */
};

static struct used look(const struct plan *p)
{
	struct used u = { 0 };

	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		for (int fd = 1; fd < 3; fd++) {
			struct stream_plan of = plan_stream(p, i, fd);

			u.file |= of.file;
			u.console |= of.console;
			u.waits |= of.console && !of.file && of.way == STREAM_PIPE;
			u.filtered[fd] |= of.filtered;
		}
	return u;
}

/* A local rank that no node has. */
static void note_rank(const struct settings *s, enum setting_id id, uint64_t named,
	const unsigned *nproc_of_node, unsigned nnodes, struct notes *notes)
{
	unsigned most = 0;

	for (unsigned i = 0; i < nnodes; i++)
		most = nproc_of_node[i] > most ? nproc_of_node[i] : most;
	if (named >= most)
		notes_add(notes, NOTE_WARNING, "%s: \"%s\" has local rank %llu, and the last is %u",
			settings_label(s, id), settings_text(s, id), (unsigned long long)named,
			most - 1);
}

/* A name that is misspelt would stand in every line. */
static void note_template(const struct settings *s, const struct plan *p, struct notes *notes)
{
	size_t len;
	const char *name =
		p->output.prefix ? template_unknown(p->output.prefix, PREFIX_NAMES, &len) : NULL;
	const char *nearest;

	if (!name)
		return;
	name = arena_strndup(s->arena, name, len);
	nearest = choice_nearest(s->arena, PREFIX_NAMES, name);
	notes_add(notes, NOTE_WARNING, "%s: ${%s} is not replaced; %s%s%s",
		settings_label(s, SET_LOG_LINE_PREFIX_TEMPLATE), name,
		nearest ? "did you mean ${" : "launchd(1) lists the names that are",
		nearest ? nearest : "", nearest ? "}?" : "");
}

void note_idle_output(const struct settings *s, const unsigned *nproc_of_node, const struct plan *p,
	struct notes *notes)
{
	const struct output_plan *o = &p->output;
	const struct used u = look(p);
	const char *no_file = "without log files; --log-dir, -r and -t ask for them";
	const struct {
		enum setting_id id;
		bool idle;
		const char *because;
	} rules[] = {
		{ SET_LOG_MAX_SIZE, o->max_size_bytes > 0 && !u.file, no_file },
		{ SET_LOG_KEEP, o->max_size_bytes == 0, "without --log-max-size" },
		{ SET_LOG_TIMESTAMPS, o->timestamps && !u.file, no_file },
		{ SET_CONSOLE_OVERFLOW, o->drop && !u.waits,
			"here: no worker writes through launchd to the console alone" },
		{ SET_LOG_LINE_PREFIX_TEMPLATE, o->prefix && !u.console,
			"here: nothing goes to the console" },
		{ SET_DUPLICATE_STDOUT_FILTERS, o->out_filters.count > 0 && !u.filtered[1],
			"here: it is for a stdout that is tee'd and shown" },
		{ SET_DUPLICATE_STDERR_FILTERS, o->err_filters.count > 0 && !u.filtered[2],
			"here: it is for a stderr that is tee'd and shown" },
	};

	if (p->start_count == 0)
		return;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].idle && s->value[rules[i].id].from.level > LEVEL_SYSTEM_FILE)
			notes_add(notes, NOTE_WARNING, "%s has no effect %s",
				settings_label(s, rules[i].id), rules[i].because);
	note_template(s, p, notes);
	if (o->reopen && !u.file)
		notes_add(notes, NOTE_WARNING, "%s: reopen has no effect %s",
			settings_label(s, SET_ON_SIGNAL), no_file);
	note_rank(s, SET_REDIRECTS, streams_last(o->redirects), nproc_of_node, p->nnodes, notes);
	note_rank(s, SET_TEE, streams_last(o->tee), nproc_of_node, p->nnodes, notes);
	if (o->ranks_filter)
		note_rank(s, SET_LOCAL_RANKS_FILTER, ranks_last(o->ranks_filter), nproc_of_node,
			p->nnodes, notes);
}
