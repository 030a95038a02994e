/* evidence_reader.c - see evidence_reader.h */
#include "daemon/workers/evidence_reader.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/verdict.h"
#include "daemon/plan/plan.h"
#include "daemon/os/rehearsal.h"
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
	const char *path = plan_error_file(attempt, o->local_rank, arena);
	struct speaker by;
	struct error_record *record = arena_alloc(arena, sizeof *record);
	struct record_text text = { 0 };

	/* in the tree of logs, whose disk may hang, it is another thread's to read */
	if (!attempt->log_dir && path)
		record_read(path, arena, &text);
	else if (attempt->log_dir && words && words->error)
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

/* Whether this stream of a worker ends where launchd's own does, which has lost its reader. */
static bool is_unread(const struct plan *plan, const struct outcome *o, int fd)
{
	const struct output_plan *to = &plan->output;
	const struct stream_plan how = plan_stream(plan, o->local_rank, fd);
	struct pollfd p = { .fd = fd };

	if (to->journal == JOURNAL_ALL || (to->merge && plan->node_rank > 0))
		return false;
	return how.console && !how.file && poll(&p, 1, 0) > 0 &&
		(p.revents & (POLLERR | POLLHUP)) != 0;
}

/* What programs say last where such a write has failed. */
static const char *const output_words[] = { "BrokenPipeError: [Errno 32]",
	"OSError: [Errno 5] Input/output error", "write error: Broken pipe",
	"standard output: Broken pipe", "write EPIPE" };

/* But not one to a pipe or a socket of their own. */
static bool tells_of_output(const char *text)
{
	static const char *const own[] = { "multiprocessing", "socket.py", "subprocess.py",
		"ssl.py", "asyncio" };
	const char *last = NULL;

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strstr(text, own[i]))
			return false;
	for (size_t i = 0; i < sizeof output_words / sizeof *output_words; i++)
		for (const char *at = text; (at = strstr(at, output_words[i])); at++)
			last = at > last ? at : last;
	return last && !strstr(last, "Traceback (");
}

/* Whether these words were cut off when stderr lost its reader, too: in a traceback, or where they
 * may become those above. */
static bool may_tell_of_output(const char *text)
{
	const char *last = text;

	for (const char *at = text; (at = strchr(at, '\n')) && at[1]; at++)
		last = at + 1;
	if (strncmp(last, "Traceback (", 11) == 0 || strncmp(last, "  ", 2) == 0)
		return true;
	for (size_t i = 0; i < sizeof output_words / sizeof *output_words; i++)
		if (strncmp(last, output_words[i], strcspn(last, "\n")) == 0)
			return true;
	return false;
}

/* A worker that writes there gets SIGPIPE or EPIPE, and EIO on a terminal that is gone. Python then
 * exits with 1, or with 120 at its end; its words are lost where stderr has no reader either. */
static bool wrote_in_vain(const struct plan *plan, const struct outcome *o, const char *lines,
	const struct error_record *record)
{
	enum { CODE_SIGPIPE = 128 + SIGPIPE, CODE_EXCEPTION = 1, CODE_NO_FLUSH = 120 };
	int code = ending_exit_code(&o->end);
	bool err = is_unread(plan, o, STDERR_FILENO);

	if (o->blames >= BLAMES_A_PEER || (!err && !is_unread(plan, o, STDOUT_FILENO)))
		return false;
	if (code != CODE_EXCEPTION && code != CODE_NO_FLUSH)
		return code == CODE_SIGPIPE;
	if (record && record->message)
		return tells_of_output(record->traceback ? record->traceback : record->message);
	if (lines && (tells_of_output(lines) || (err && may_tell_of_output(lines))))
		return true;
	return err && o->blames == BLAMES_NOBODY;
}

size_t evidence_collect(const struct plan *plan, const struct attempt *attempt,
	struct outcome *outcomes, const struct left_words *words, size_t count, struct arena *arena,
	struct evidence ret[EVIDENCE_MAX], struct failure *why)
{
	struct outcome **failed = arena_alloc(arena, count * sizeof *failed);
	const struct error_record **said = arena_alloc(arena, count * sizeof *said);
	size_t n = 0, kept = 0;
	bool hang;

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
	/* one of them answers for all, which are in one directory */
	hang = n > 0 && !attempt->log_dir &&
		path_answers_soon(plan_error_file(attempt, failed[0]->local_rank, arena), why) < 0;
	for (size_t i = 0; i < n && !hang; i++)
		said[failed[i] - outcomes] = read_one(plan, attempt, failed[i],
			words ? &words[failed[i] - outcomes] : NULL, arena, why);
	for (size_t i = 0; i < count; i++)
		if (has_failed(&outcomes[i]) &&
			wrote_in_vain(
				plan, &outcomes[i], words ? words[i].words.lines : NULL, said[i]))
			outcomes[i].blames = BLAMES_OUTPUT;
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
