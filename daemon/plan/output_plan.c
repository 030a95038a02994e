/* output_plan.c - what becomes of the workers' output; see output_plan.h and decide.h */
#include "daemon/plan/output_plan.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"
#include "config/streams.h"
#include "config/ranks.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

static bool is_nowhere(const struct output_plan *o)
{
	return o->log_dir && strcmp(o->log_dir, "/dev/null") == 0;
}

/* A tee'd stream is a redirected one that is shown as well. */
static bool is_redirected(const struct output_plan *o, unsigned local_rank, int fd)
{
	return ((streams_of(o->redirects, local_rank) | streams_of(o->tee, local_rank)) &
		       (unsigned)fd) != 0;
}

static const char *prefix_of(const struct output_plan *o, bool teed)
{
	if (o->prefix)
		return o->prefix;
	if (o->merge) /* local ranks of several nodes are the same */
		return "[${hostname}:${rank}]:";
	return teed ? "[${role_name}${local_rank}]:" /* torchrun's */ : NULL;
}

struct stream_plan plan_stream(const struct plan *p, unsigned local_rank, int fd)
{
	const struct output_plan *o = &p->output;
	bool shown = !o->ranks_filter || ranks_contain(o->ranks_filter, local_rank);
	bool redirected = o->tree && is_redirected(o, local_rank, fd);
	bool teed = redirected && (streams_of(o->tee, local_rank) & (unsigned)fd) != 0;
	const struct vec *filters = fd == 1 ? &o->out_filters : &o->err_filters;
	struct stream_plan ret = {
		.way = STREAM_PIPE,
		.file = redirected || (o->tree && o->log_all),
		.console = (teed || !redirected) && shown,
		.filtered = teed && shown && filters->count > 0,
	};

	if (ret.console)
		ret.prefix = prefix_of(o, teed);
	if (ret.console && !ret.file && !ret.prefix && o->terminal[fd])
		ret.way = STREAM_INHERIT;
	if (ret.file && !ret.console && o->max_size_bytes == 0 && !o->timestamps && !o->reopen)
		ret.way = STREAM_DIRECT;
	return ret;
}

/* torchrun's list of texts: ',' divides, ',,' is a comma. Unlike there an empty text is none: it
 * would be found in every line. */
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
static int decide_merge(const struct settings *s, const struct topology *t, struct output_plan *o,
	struct notes *notes, struct failure *why)
{
	const char *label = settings_label(s, SET_MERGE_LOGS);

	if (!settings_flag(s, SET_MERGE_LOGS))
		return 0;
	if (t->identity.nnodes == 1) {
		notes_add(notes, NOTE_INFO, "%s has no effect on one node", label);
		return 0;
	}
	if (t->launcher == LAUNCHER_OPEN_MPI || t->launcher == LAUNCHER_HYDRA) {
		notes_add(notes, NOTE_WARNING,
			"%s has no effect under %s, which brings all nodes' output together itself",
			label, launcher_name(t->launcher));
		return 0;
	}
	if (t->control.how == CONTROL_NONE)
		return failure_usage(why, "%s needs launchers that meet, and %s keeps them apart",
			label, settings_label(s, SET_CONTROL));
	o->merge = true;
	return 0;
}

/* Whether a worker that starts here has a stream that -r or -t names. */
static bool any_redirected(const struct plan *p, const struct output_plan *o)
{
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		if (is_redirected(o, i, 1) || is_redirected(o, i, 2))
			return true;
	return false;
}

static const char *text_or_null(const struct settings *s, enum setting_id id)
{
	const char *text = settings_text(s, id);

	return *text ? text : NULL;
}

int decide_output(const struct settings *s, const struct facts *facts, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p, struct notes *notes, struct failure *why)
{
	enum { BLOCK, DROP };
	enum { TEXT, JSON };
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
		.drop = settings_number(s, SET_CONSOLE_OVERFLOW) == DROP,
		.json = settings_number(s, SET_LOG_FORMAT) == JSON,
		.events_fd = -1,
	};
	for (int fd = 0; fd < 3; fd++) /* mpirun's stdout is a pty, and nobody's terminal */
		o->terminal[fd] = facts->terminal[fd] && t->launcher == LAUNCHER_NONE;
	o->foreground = o->terminal[2] && facts->foreground;
	for (int n = 1; n < REACTION_SIGNALS; n++)
		o->reopen |= p->reactions.of[n].kind == REACTION_REOPEN;
	o->tree = o->log_dir ? !is_nowhere(o) : any_redirected(p, o);
	o->log_all = o->tree && !asked;
	if (decide_merge(s, t, o, notes, why) < 0 || decide_events(s, facts, p, notes, why) < 0)
		return why->code;
	if (is_nowhere(o) && any_redirected(p, o))
		notes_add(notes, NOTE_WARNING,
			"%s: with /dev/null there are no log files, and what -r and -t name goes to "
			"the console",
			settings_label(s, SET_LOG_DIR));
	note_idle_output(s, nproc_of_node, p, notes);
	return 0;
}
