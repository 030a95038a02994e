/* decide_output.c - what becomes of the workers' output; see decide.h */
#include "daemon/plan/decide.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/signame.h"
#include "common/template.h"
#include "config/lists.h"
#include "config/settings.h"
#include "config/value.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/prefix.h"

static bool is_nowhere(const struct output_plan *o)
{
	return o->log_dir && strcmp(o->log_dir, "/dev/null") == 0;
}

/* torchrun's list of texts: ',' divides, ',,' is a comma. Unlike there, an empty text is dropped:
 * it would be found in every line. */
static struct vec split_filters(struct arena *a, const char *text)
{
	struct vec ret = { 0 };
	char *word = arena_strdup(a, text), *to = word;

	for (const char *p = text; !arena_failed(a); p++) {
		if (*p && (*p != ',' || p[1] == ',')) {
			p += *p == ',';
			*to++ = *p;
			continue;
		}
		if (to > word)
			vec_add(a, &ret, arena_strndup(a, word, (size_t)(to - word)));
		to = word;
		if (!*p)
			break;
	}
	return ret;
}

/* --merge-logs. The plan has the other fields that prefix_of() looks at. */
static int decide_merge(const struct deciding *d, const struct topology *t, struct output_plan *o)
{
	const char *label = settings_label(d->s, SET_MERGE_LOGS);

	if (!settings_flag(d->s, SET_MERGE_LOGS))
		return 0;
	if (t->identity.nnodes == 1) {
		notes_add(d->notes, NOTE_INFO, "%s has no effect on one node", label);
		return 0;
	}
	if (t->launcher->merges_output) {
		notes_add(d->notes, NOTE_WARNING,
			"%s has no effect under %s, which merges all nodes' output itself", label,
			t->launcher->name);
		return 0;
	}
	if (t->control.how == CONTROL_NONE)
		return failure_usage(d->why, "%s needs launchers that meet, which %s prevents",
			label, settings_label(d->s, SET_CONTROL));
	o->merge = true;
	return 0;
}

/* --journal. The plan has the other fields. */
static int decide_journal(const struct deciding *d, struct output_plan *o)
{
	const struct settings *s = d->s;

	o->stderr_is_journal = d->facts->stderr_is_journal;
	if (settings_is(s, SET_JOURNAL, "all"))
		o->journal = JOURNAL_ALL;
	else if (settings_is(s, SET_JOURNAL, "messages") ||
		(settings_is(s, SET_JOURNAL, "auto") && o->stderr_is_journal))
		o->journal = JOURNAL_MESSAGES;
	if (o->journal == JOURNAL_ALL && o->merge)
		return failure_usage(d->why,
			"%s and %s all contradict one another: each node has a journal of its own",
			settings_label(s, SET_MERGE_LOGS), settings_label(s, SET_JOURNAL));
	return 0;
}

/* Whether a worker that starts here has a stream that -r or -t names. */
static bool any_redirected(const struct plan *p, const struct output_plan *o)
{
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		if (output_is_redirected(o, i, 1) || output_is_redirected(o, i, 2))
			return true;
	return false;
}

/* What the workers that start here have. */
struct used {
	bool file, console, prefixed, waits; /* waits: for the console, as there is no file */
	bool filtered[3];                    /* by descriptor */
};

static struct used look(const struct plan *p)
{
	struct used u = { 0 };

	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		for (int fd = 1; fd < 3; fd++) {
			struct stream_plan of = plan_stream(p, i, fd);

			u.file |= of.file;
			u.console |= of.console;
			u.prefixed |= of.console && p->output.journal != JOURNAL_ALL;
			u.waits |= of.console && !of.file && of.way == STREAM_PIPE;
			u.filtered[fd] |= of.filtered;
		}
	return u;
}

/* A local rank that no node has. */
static void note_rank(const struct deciding *d, enum setting_id id, uint64_t named,
	const unsigned *nproc_of_node, unsigned nnodes)
{
	unsigned most = 0;

	for (unsigned i = 0; i < nnodes; i++)
		most = nproc_of_node[i] > most ? nproc_of_node[i] : most;
	if (named >= most)
		notes_add(d->notes, NOTE_WARNING,
			"%s: \"%s\" has local rank %llu, but the last one is %u",
			settings_label(d->s, id), settings_text(d->s, id),
			(unsigned long long)named, most - 1);
}

/* A misspelt name would show up in every line. */
static void note_template(const struct deciding *d, const struct plan *p)
{
	size_t len;
	const char *name =
		p->output.prefix ? template_unknown(p->output.prefix, PREFIX_NAMES, &len) : NULL;
	const char *nearest;

	if (!name)
		return;
	name = arena_strndup(d->s->arena, name, len);
	nearest = choice_nearest(d->s->arena, PREFIX_NAMES, name);
	notes_add(d->notes, NOTE_WARNING, "%s: ${%s} is not replaced; %s%s%s",
		settings_label(d->s, SET_LOG_LINE_PREFIX_TEMPLATE), name,
		nearest ? "did you mean ${" : "launchd(1) lists the names that are",
		nearest ? nearest : "", nearest ? "}?" : "");
}

static void note_idle_output(
	const struct deciding *d, const unsigned *nproc_of_node, const struct plan *p)
{
	const struct output_plan *o = &p->output;
	const struct used u = look(p);
	const char *no_file = "without log files; --log-dir, -r and -t create them";
	const struct {
		enum setting_id id;
		bool idle;
		const char *because;
	} rules[] = {
		{ SET_LOG_MAX_SIZE, o->max_size_bytes > 0 && !u.file, no_file },
		{ SET_LOG_KEEP, o->max_size_bytes == 0, "without --log-max-size" },
		{ SET_LOG_TIMESTAMPS, o->timestamps && !u.file, no_file },
		{ SET_CONSOLE_OVERFLOW, o->drop && !u.waits,
			"here: no worker's output goes through launchd to the console alone" },
		{ SET_LOG_LINE_PREFIX_TEMPLATE, o->prefix && !u.prefixed,
			u.console ? "in the journal, whose entries have fields" :
				    "here: nothing goes to the console" },
		{ SET_DUPLICATE_STDOUT_FILTERS, o->out_filters.count > 0 && !u.filtered[1],
			"here: it applies only to a stdout that is tee'd and shown" },
		{ SET_DUPLICATE_STDERR_FILTERS, o->err_filters.count > 0 && !u.filtered[2],
			"here: it applies only to a stderr that is tee'd and shown" },
	};

	if (p->start_count == 0)
		return;
	/* the system's file has defaults for all jobs, which needn't make sense in each */
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].idle && d->s->value[rules[i].id].from.level > LEVEL_SYSTEM_FILE)
			notes_add(d->notes, NOTE_WARNING, "%s has no effect %s",
				settings_label(d->s, rules[i].id), rules[i].because);
	note_template(d, p);
	if (o->reopen && !u.file)
		notes_add(d->notes, NOTE_WARNING, "%s: reopen has no effect %s",
			settings_label(d->s, SET_ON_SIGNAL), no_file);
	note_rank(d, SET_REDIRECTS, streams_last(o->redirects), nproc_of_node, p->nnodes);
	note_rank(d, SET_TEE, streams_last(o->tee), nproc_of_node, p->nnodes);
	if (o->ranks_filter)
		note_rank(d, SET_LOCAL_RANKS_FILTER, ranks_last(o->ranks_filter), nproc_of_node,
			p->nnodes);
}

static int decide_stack_signal(const struct deciding *d, struct plan *p)
{
	const char *name = settings_text(d->s, SET_STACK_SIGNAL);
	int signal;

	if (!name)
		return 0;
	signal = signal_number(name, strlen(name));
	if (signal < 0)
		return failure_usage(d->why, "%s: \"%s\" is no signal: SIGUSR1, for one, is",
			settings_where(d->s, SET_STACK_SIGNAL), name);
	if (signal == SIGKILL || signal == SIGSTOP)
		return failure_usage(d->why, "%s: nothing can handle %s",
			settings_where(d->s, SET_STACK_SIGNAL), signal_name(signal));
	p->stack_signal = signal;
	return 0;
}

/* --blackbox. The plan has the other fields of its output. */
static int decide_blackbox(const struct deciding *d, struct plan *p)
{
	static const enum setting_id idle[] = { SET_BLACKBOX_HOLD, SET_BLACKBOX_KEEP,
		SET_STACK_SIGNAL };
	const struct output_plan *o = &p->output;
	const struct settings *s = d->s;
	const char *dir = settings_text(s, SET_BLACKBOX);

	if (dir)
		p->blackbox_dir = strcmp(dir, "none") == 0 ? NULL : dir;
	else if (o->log_dir && !is_nowhere(o))
		p->blackbox_dir = arena_printf(s->arena, "%s/blackbox", o->log_dir);
	for (size_t i = 0; i < sizeof idle / sizeof *idle && !p->blackbox_dir; i++)
		if (settings_given(s, idle[i]) && s->value[idle[i]].from.level > LEVEL_SYSTEM_FILE)
			notes_add(d->notes, NOTE_WARNING, "%s has no effect without --blackbox",
				settings_label(s, idle[i]));
	return decide_stack_signal(d, p);
}

static const char *text_or_null(const struct settings *s, enum setting_id id)
{
	const char *text = settings_text(s, id);

	return *text ? text : NULL;
}

int decide_output(const struct deciding *d, const struct topology *t, const unsigned *nproc_of_node,
	struct plan *p)
{
	const struct settings *s = d->s;
	struct output_plan *o = &p->output;
	bool asked = settings_given(s, SET_REDIRECTS) || settings_given(s, SET_TEE);

	*o = (struct output_plan){
		.log_dir = settings_text(s, SET_LOG_DIR),
		.redirects = settings_text(s, SET_REDIRECTS),
		.tee = settings_text(s, SET_TEE),
		.ranks_filter = text_or_null(s, SET_LOCAL_RANKS_FILTER),
		.prefix = text_or_null(s, SET_LOG_LINE_PREFIX_TEMPLATE),
		.out_filters =
			split_filters(s->arena, settings_text(s, SET_DUPLICATE_STDOUT_FILTERS)),
		.err_filters =
			split_filters(s->arena, settings_text(s, SET_DUPLICATE_STDERR_FILTERS)),
		.max_size_bytes = settings_number(s, SET_LOG_MAX_SIZE),
		.keep = (unsigned)settings_number(s, SET_LOG_KEEP),
		.tail_lines = (unsigned)settings_number(s, SET_TAIL_LINES),
		.timestamps = settings_flag(s, SET_LOG_TIMESTAMPS),
		.drop = settings_is(s, SET_CONSOLE_OVERFLOW, "drop"),
		.json = settings_is(s, SET_LOG_FORMAT, "json"),
		.events_fd = -1,
	};
	for (int fd = 0; fd < 3; fd++) /* mpirun's stdout is a pty, and nobody's terminal */
		o->terminal[fd] = d->facts->terminal[fd] && t->launcher->kind != LAUNCHER_TASK;
	o->foreground = o->terminal[2] && d->facts->foreground;
	for (int n = 1; n < REACTION_SIGNALS; n++)
		o->reopen |= p->reactions.of[n].kind == REACTION_REOPEN;
	o->tree = o->log_dir ? !is_nowhere(o) : any_redirected(p, o);
	o->log_all = o->tree && !asked;
	if (!failure_go_on(decide_merge(d, t, o), d->why) ||
		!failure_go_on(decide_journal(d, o), d->why) ||
		!failure_go_on(decide_events(d, p), d->why) ||
		!failure_go_on(decide_blackbox(d, p), d->why))
		return d->why->code;
	o->joined = (t->launcher->merges_output || t->launcher->shows_output) &&
		o->journal == JOURNAL_NONE;
	if (is_nowhere(o) && any_redirected(p, o))
		notes_add(d->notes, NOTE_WARNING,
			"%s: with /dev/null there are no log files: the streams of -r and -t go to "
			"the console",
			settings_label(s, SET_LOG_DIR));
	note_idle_output(d, nproc_of_node, p);
	return 0;
}
