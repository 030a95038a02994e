/* box_parts.c - see box_parts.h */
#include "daemon/run/box_parts.h"

#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/quick_look.h"
#include "daemon/check/finding.h"
#include "daemon/cluster/message.h"
#include "daemon/job/job_end.h"
#include "daemon/job/phrases.h"
#include "daemon/report/outcome_json.h"
#include "daemon/plan/plan.h"
#include "daemon/run/black_box.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

#define TRACEBACK "Traceback (most recent call last)"

enum {
	NS_PER_MS = 1000000,
	RANKS_MAX = 256,       /* in the index: of those that failed by themselves */
	TELLING_BYTES = 4096,  /* of the last lines of a worker that failed */
	ANOTHERS_BYTES = 1024, /* of another one's: its file has more */
};

/* --- the failure --- */

/* Whether it left an exception: in an error file, or in what it wrote last. */
static bool has_exception(const struct evidence *said)
{
	if (!said)
		return false;
	return (said->record && said->record->message) ||
		(said->words.lines && strstr(said->words.lines, TRACEBACK));
}

/* What its error file says, or the last line below the traceback that it has written last; NULL:
 * neither is there. */
static const char *exception_of(const struct evidence *said, struct arena *arena)
{
	const char *trace, *last = NULL;

	if (said->record && said->record->message)
		return said->record->message;
	trace = said->words.lines ? strstr(said->words.lines, TRACEBACK) : NULL;
	for (const char *at = trace; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (*at && !strchr(" \t\n", *at) && at != trace)
			last = at;
	}
	return last ? arena_strndup(arena, last, strcspn(last, "\n")) : NULL;
}

static const char *kind_of_worker(const struct outcome *o, const struct evidence *said)
{
	if (o->oom == OOM_YES || o->oom == OOM_LIKELY)
		return "oom";
	if (ending_is_unstarted(&o->end))
		return "not_startable";
	if (o->end.how == ENDED_SIGNAL)
		return "signal";
	return has_exception(said) ? "exception" : "exit";
}

static const char *kind_of(const struct cause *c, const struct evidence *said)
{
	const struct outcome *culprit = cause_culprit(c);

	if (culprit)
		return kind_of_worker(culprit, said);
	return c->kind == CAUSE_HANG         ? "hang" :
		c->kind == CAUSE_MAX_RUNTIME ? "timeout" :
					       json_cause_word(c->kind);
}

static const char *end_text(const struct outcome *o, struct arena *arena)
{
	struct text t = { 0 };
	const char *ret;

	outcome_add(&t, o);
	if (ending_is_unstarted(&o->end) && o->end.value)
		text_printf(&t, ": %s", strerror(o->end.value));
	ret = arena_strdup(arena, text_string(&t));
	text_done(&t);
	return ret;
}

static void set_first(const struct cause *c, const char *host, const struct evidence *said,
	struct arena *arena, struct bundle_first *ret)
{
	const struct outcome *culprit = cause_culprit(c);

	*ret = (struct bundle_first){ .known = culprit != NULL };
	if (!culprit)
		return;
	ret->rank = culprit->rank;
	ret->node = culprit->node;
	ret->host = *c->host ? c->host : host;
	ret->text = c->kind == CAUSE_TIMEOUT ? arena_strdup(arena, c->detail) :
					       end_text(culprit, arena);
	if (said && said->rank == culprit->rank) {
		ret->error = exception_of(said, arena);
		ret->command = said->command;
	}
}

/* When the first failure was; 0: not known. */
static uint64_t first_ns(const struct cause *c)
{
	const struct outcome *culprit = cause_culprit(c);

	return culprit && culprit->ended_ns ? culprit->ended_ns : c->at_ns;
}

static int64_t after_ms(const struct outcome *o, uint64_t from_ns)
{
	if (!from_ns || !o->ended_ns)
		return 0;
	return ((int64_t)o->ended_ns - (int64_t)from_ns) / NS_PER_MS;
}

static enum bundle_fate fate_of(const struct outcome *o, const struct outcome *first)
{
	if (o->end.how == ENDED_NONE)
		return o->pid > 0 ? FATE_RUNS : FATE_UNSTARTED;
	if (first && o->rank == first->rank)
		return FATE_FIRST;
	if (ending_is_success(&o->end))
		return FATE_WELL;
	if (o->asked != ASKED_NOTHING)
		return FATE_ENDED;
	return FATE_FAILED;
}

/* --- a node's part --- */

static const struct evidence *said_by(const struct black_box *b, unsigned rank)
{
	for (size_t i = 0; i < b->end.said_count; i++)
		if (b->end.said[i].rank == rank)
			return &b->end.said[i];
	return NULL;
}

static void set_look(const struct black_box *b, unsigned i, struct bundle_look *ret)
{
	const struct quick_look *l = b->seen ? &b->seen[i] : NULL;
	const struct quick_look *later = b->later ? &b->later[i] : NULL;

	if (!l || !l->known)
		return;
	*ret = (struct bundle_look){ .known = true,
		.state = l->state,
		.wait = *l->wait ? l->wait : NULL,
		.call = *l->call ? l->call : NULL,
		.cpu_ms = l->cpu_ms,
		.io_bytes = l->io_bytes,
		.threads = l->threads };
	if (!later || !later->known || later->at_ns <= l->at_ns)
		return;
	ret->later_ms = (later->at_ns - l->at_ns) / NS_PER_MS;
	ret->later_cpu_ms = later->cpu_ms > l->cpu_ms ? later->cpu_ms - l->cpu_ms : 0;
}

/* The end of a text, from the beginning of a line where that can be. */
static const char *last_of(const char *text, size_t max)
{
	size_t len = text ? strlen(text) : 0;
	const char *at, *line;

	if (len <= max)
		return text;
	at = text + len - max;
	line = strchr(at, '\n');
	return line && line[1] ? line + 1 : at;
}

static void set_worker(const struct black_box *b, unsigned i, const struct outcome *first,
	uint64_t from_ns, struct arena *arena, struct bundle_worker *w)
{
	const struct outcome *o = b->ends ? &b->end.outcomes[i] : &b->pool->workers[i].outcome;
	const struct evidence *said = said_by(b, o->rank);
	bool telling;

	w->rank = o->rank;
	w->local_rank = o->local_rank;
	w->pid = o->pid;
	w->fate = fate_of(o, first);
	w->end = o->end.how == ENDED_NONE ? NULL : end_text(o, arena);
	w->after_ms = after_ms(o, from_ns);
	set_look(b, i, &w->look);
	w->error = said ? exception_of(said, arena) : NULL;
	telling = w->fate == FATE_FIRST || w->fate == FATE_FAILED;
	if (b->end.words) {
		w->lines = last_of(
			b->end.words[i].words.lines, telling ? TELLING_BYTES : ANOTHERS_BYTES);
		w->log = b->end.words[i].words.log;
	}
}

static void set_findings(const struct findings *f, struct arena *arena, struct bundle *ret)
{
	size_t count = f ? (f->count < FINDINGS_MAX ? f->count : FINDINGS_MAX) : 0;
	struct bundle_finding *list = arena_alloc(arena, count * sizeof *list + 1);

	for (size_t i = 0; list && i < count; i++)
		list[i] = (struct bundle_finding){ f->at[i].check, f->at[i].subject,
			health_word(f->at[i].health), f->at[i].text };
	ret->findings = list;
	ret->finding_count = list ? count : 0;
}

static const struct evidence *evidence_of(const struct black_box *b, const struct cause *c)
{
	const struct outcome *culprit = cause_culprit(c);

	return culprit ? said_by(b, culprit->rank) : NULL;
}

void box_bundle(const struct black_box *b, struct arena *arena, struct bundle *ret)
{
	const struct cause *c = b->ends ? b->known : &(const struct cause){ .kind = CAUSE_NONE };
	unsigned count = b->plan->start_count;
	struct bundle_worker *workers = arena_alloc(arena, count * sizeof *workers + 1);

	*ret = (struct bundle){ .name = b->name,
		.job = b->plan->run_id,
		.host = b->host,
		.launchd = LAUNCHD_VERSION,
		.attempt = b->attempt->number,
		.node = b->plan->node_rank,
		.nnodes = b->plan->nnodes,
		.world_size = b->plan->world_size,
		.wall_ms = b->wall_ms,
		.cause = b->ends ? json_cause_word(c->kind) : "look",
		.kind = b->ends ? kind_of(c, evidence_of(b, c)) : "look",
		.why = b->why,
		.held = b->held };
	set_first(c, b->host, evidence_of(b, c), arena, &ret->first);
	for (unsigned i = 0; workers && i < count; i++)
		set_worker(b, i, cause_culprit(c), first_ns(c), arena, &workers[i]);
	ret->workers = workers;
	ret->worker_count = workers ? count : 0;
	set_findings(b->found, arena, ret);
}

void box_summary(const struct bundle *b, struct text *out)
{
	size_t fates[FATES] = { 0 }, unknown = 0;

	for (size_t i = 0; i < b->worker_count; i++)
		fates[b->workers[i].fate]++;
	text_printf(out, "%zu worker%s: %zu failed, %zu ended by launchd", b->worker_count,
		b->worker_count == 1 ? "" : "s", fates[FATE_FIRST] + fates[FATE_FAILED],
		fates[FATE_ENDED]);
	for (size_t i = 0; i < b->finding_count; i++) {
		const struct bundle_finding *f = &b->findings[i];

		if (strcmp(f->health, "bad") == 0) {
			text_printf(out, "; %s%s%s: %s", f->source, *f->subject ? ", " : "",
				f->subject, f->text);
			return;
		}
		unknown += strcmp(f->health, "unknown") == 0;
	}
	if (unknown)
		text_printf(out, "; %zu look%s had no answer", unknown, unknown == 1 ? "" : "s");
}

/* --- the index --- */

static void set_ranks(const struct result *result, struct arena *arena, struct bundle_index *ret)
{
	const struct outcome *first = result_culprit(result);
	struct bundle_rank *list = arena_alloc(arena, RANKS_MAX * sizeof *list);

	ret->ranks = list;
	for (size_t i = 0; i < result->count; i++) {
		const struct outcome *o = &result->outcomes[i];
		enum bundle_fate fate = fate_of(o, first);

		ret->counts[fate]++;
		if (!list || fate != FATE_FAILED || ret->rank_count == RANKS_MAX)
			continue;
		list[ret->rank_count++] = (struct bundle_rank){ .rank = o->rank,
			.node = o->node,
			.fate = fate,
			.end = end_text(o, arena),
			.after_ms = after_ms(o, first_ns(&result->cause)),
			.blames_peer = o->blames == BLAMES_A_PEER || o->blames == BLAMES_A_WAIT };
	}
}

/* The job ended before this node had started any: it has looked at nothing. */
static bool has_started_none(const struct result *result, unsigned node)
{
	bool named = false;

	for (size_t i = 0; i < result->count; i++) {
		const struct outcome *o = &result->outcomes[i];

		if (o->node != node)
			continue;
		if (fate_of(o, NULL) != FATE_UNSTARTED)
			return false;
		named = true;
	}
	return named;
}

static void set_nodes(const struct black_box *b, const struct result *result, struct arena *arena,
	struct bundle_index *ret)
{
	unsigned count = b->plan->nnodes;
	struct bundle_node *list = arena_alloc(arena, count * sizeof *list);
	bool named = result->nodes && result->node_count == count;

	ret->nodes = list;
	ret->node_count = list ? count : 0;
	for (unsigned i = 0; list && i < count; i++) {
		const struct message_bundle *told = b->told ? &b->told[i] : NULL;

		list[i].node = i;
		list[i].host = named            ? result->nodes[i].name :
			i == b->plan->node_rank ? b->host :
						  NULL;
		list[i].lost = named && result->nodes[i].lost;
		if (told && (*told->path || *told->text)) {
			list[i].path = told->path;
			list[i].text = told->text;
		} else if (!list[i].lost && has_started_none(result, i)) {
			list[i].text = "its workers were not started";
		}
	}
}

void box_index(const struct black_box *b, const struct job_end *end, struct arena *arena,
	struct bundle_index *ret)
{
	const struct result *result = end->result;
	const struct cause *c = &result->cause;
	const struct outcome *culprit = cause_culprit(c);
	const char *host = culprit && result->nodes && culprit->node < result->node_count ?
		result->nodes[culprit->node].name :
		b->host;

	*ret = (struct bundle_index){ .name = b->name,
		.job = b->plan->run_id,
		.launchd = LAUNCHD_VERSION,
		.attempt = b->attempt->number,
		.nnodes = b->plan->nnodes,
		.world_size = b->plan->world_size,
		.wall_ms = b->wall_ms,
		.cause = json_cause_word(c->kind),
		.kind = kind_of(c, end->evidence),
		.why = end->verdict.text,
		.unsure = result->unsure,
		.futile = c->futile };
	set_first(c, host, end->evidence, arena, &ret->first);
	set_ranks(result, arena, ret);
	set_nodes(b, result, arena, ret);
}
