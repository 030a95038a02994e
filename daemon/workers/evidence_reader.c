/* evidence_reader.c - see evidence_reader.h */
#include "daemon/workers/evidence_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/verdict.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"

/* Who may be the culprit, likeliest first: by itself before asked, then in order of death. */
static int by_time(const void *a, const void *b)
{
	const struct outcome *x = *(struct outcome *const *)a, *y = *(struct outcome *const *)b;

	if (x->asked != y->asked)
		return x->asked < y->asked ? -1 : 1;
	return x->ended_ns < y->ended_ns ? -1 : x->ended_ns > y->ended_ns;
}

/* The same, but victims of a lost peer, and ranks that waited for it, come last. */
static int by_blame(const void *a, const void *b)
{
	const struct outcome *x = *(struct outcome *const *)a, *y = *(struct outcome *const *)b;
	bool x_victim = x->blames >= BLAMES_A_PEER, y_victim = y->blames >= BLAMES_A_PEER;

	return x_victim != y_victim ? (x_victim ? 1 : -1) : by_time(a, b);
}

static bool has_failed(const struct outcome *o)
{
	return o->end.how != ENDED_NONE && !ending_is_success(&o->end);
}

static const char *command_of(const struct plan *plan, const struct attempt *attempt,
	const struct outcome *o, struct arena *arena)
{
	struct vec argv = { 0 };
	struct text line = { 0 };
	const char *copy;

	plan_command(plan, o->local_rank, attempt, arena, &argv);
	for (size_t i = 0; i < argv.count; i++) {
		if (i > 0)
			text_add(&line, " ");
		text_add_shell(&line, argv.at[i]);
	}
	copy = arena_strdup(arena, text_string(&line));
	text_done(&line);
	return copy;
}

/* Copies, as whoever made them does not outlive the attempt. */
static struct last_words keep_words(const struct last_words *words, struct arena *arena)
{
	struct last_words ret = { 0 };
	size_t len = words && words->lines ? strlen(words->lines) : 0;
	size_t skipped = len > LAST_LINES_BYTES ? len - LAST_LINES_BYTES : 0;

	if (words && words->lines)
		ret.lines = arena_strdup(arena, words->lines + skipped);
	if (words && words->log)
		ret.log = arena_strdup(arena, words->log);
	return ret;
}

/* NULL: its script has ranks of its own, and names these. */
static const struct speaker *speaker_of(const struct plan *plan, const struct attempt *attempt,
	const struct outcome *o, struct speaker *room)
{
	*room = (struct speaker){ .rank = o->rank,
		.master_port = plan->store == STORE_RANK0 ? attempt->master_port : NULL };
	return plan->node_env ? NULL : room;
}

/* A script that starts ranks of its own has none of launchd's, and one output for all of them: what
 * is written last need not be what one of them died of first. */
static bool read_own(const struct plan *plan, struct outcome *o, const struct left_words *words,
	struct arena *arena, struct error_record *ret)
{
	if (!plan->node_env || !words || !words->words.lines || o->blames < BLAMES_A_PEER ||
		!blames_find_own(words->words.lines, arena, ret))
		return false;
	o->blames = BLAMES_ITSELF;
	return true;
}

/* What its error file says; its outcome learns whom it blames. */
static const struct error_record *read_one(const struct plan *plan, const struct attempt *attempt,
	struct outcome *o, const struct left_words *words, struct arena *arena, struct failure *why)
{
	struct speaker by;
	struct error_record *record = arena_alloc(arena, sizeof *record);
	struct record_text text = { 0 };

	/* in the tree of logs, whose disk may hang, it is another thread's to read */
	if (!attempt->log_dir)
		record_read(plan_error_file(attempt, o->local_rank, arena), arena, &text);
	else if (words && words->error)
		text = *words->error;
	if (!record)
		return NULL;
	if (record_load(&text, arena, record, why) <= 0)
		return read_own(plan, o, words, arena, record) ? record : NULL;
	if (record->message || record->traceback) /* else its last lines are all that can be read */
		o->blames = blames_of(record->message, record->traceback,
			speaker_of(plan, attempt, o, &by), &o->waited);
	return record;
}

/* Of one that we ended only what it had said before: that another one is to blame. It takes torch a
 * while to exit after that. */
static void read_lines(const struct speaker *by, struct outcome *o, const char *lines)
{
	const struct ending failed = { .how = ENDED_EXIT, .value = 1 };
	bool by_us = o->asked == ASKED_TO_STOP && o->end.how == ENDED_SIGNAL &&
		o->end.value == o->asked_signal;

	o->blames = blames_of_lines(by_us ? &failed : &o->end, lines, by, &o->waited);
	if (by_us && o->blames < BLAMES_A_PEER)
		o->blames = BLAMES_NOBODY;
}

size_t evidence_collect(const struct plan *plan, const struct attempt *attempt,
	struct outcome *outcomes, const struct left_words *words, size_t count, struct arena *arena,
	struct evidence ret[EVIDENCE_MAX], struct failure *why)
{
	struct outcome **failed = arena_alloc(arena, count * sizeof *failed);
	const struct error_record **said = arena_alloc(arena, count * sizeof *said);
	size_t n = 0, kept = 0;

	if (!failed || !said)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!has_failed(&outcomes[i]))
			continue;
		failed[n++] = &outcomes[i];
		if (words) {
			struct speaker by;

			read_lines(speaker_of(plan, attempt, &outcomes[i], &by), &outcomes[i],
				words[i].words.lines);
		}
	}
	qsort(failed, n, sizeof *failed, by_time);
	n = n < EVIDENCE_READ ? n : EVIDENCE_READ;
	for (size_t i = 0; i < n; i++)
		said[failed[i] - outcomes] = read_one(plan, attempt, failed[i],
			words ? &words[failed[i] - outcomes] : NULL, arena, why);
	qsort(failed, n, sizeof *failed, by_blame);
	for (size_t i = 0; i < n && kept < EVIDENCE_MAX; i++)
		ret[kept++] = (struct evidence){
			.rank = failed[i]->rank,
			.record = said[failed[i] - outcomes],
			.command = command_of(plan, attempt, failed[i], arena),
			.words = keep_words(
				words ? &words[failed[i] - outcomes].words : NULL, arena),
		};
	return kept;
}
