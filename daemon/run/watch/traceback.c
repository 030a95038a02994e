/* traceback.c - see traceback.h */
#include "daemon/run/watch/traceback.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/cluster/message.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/output/tail.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

/* LINES: as many as anybody asks for, so that this answer does for all; others' may be too short */
enum { SHOWN_BYTES = 240, LINES = 1000 };

struct traceback_seen {
	uint64_t hash;     /* of the last lines; 0: there are none */
	uint64_t bytes;    /* that came at all: one who repeats himself has the same last lines */
	uint64_t since_ms; /* they are the same */
	bool is, said;
};

/* --- the text --- */

static bool line_begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/* What torch writes before each line of a traceback: "[rank3]: ". */
static const char *behind_mark(const char *line)
{
	size_t digits;

	if (!line_begins(line, "[rank"))
		return line;
	digits = strspn(line + 5, "0123456789");
	return digits > 0 && line_begins(line + 5 + digits, "]: ") ? line + 5 + digits + 3 : line;
}

/* Python 3.13 has some, where it is told so. */
static const char *behind_colour(const char *at)
{
	while (line_begins(at, "\033[")) {
		at += 2 + strspn(at + 2, "0123456789;");
		at += *at == 'm';
	}
	return at;
}

/* "ValueError: x", "torch.distributed.DistBackendError: x", "KeyboardInterrupt" */
static bool names_exception(const char *line)
{
	static const char name[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	size_t len;

	line = behind_colour(line);
	len = strspn(line, name);
	line = behind_colour(line + len);
	return len > 0 && (*line == ':' || *line == '\n' || *line == '\0');
}

/* Of a long traceback only its end is kept: then the text begins inside it. Frames elsewhere are of
 * a stack that somebody prints. */
static bool begins_inside(const char *text)
{
	for (const char *at = text; *at == ' '; at += strcspn(at, "\n"), at += *at == '\n')
		if (line_begins(at, "  File "))
			return true;
	return false;
}

/* Lines that torch and CUDA add to the message of an exception. */
static bool goes_on(const char *line)
{
	static const char *const begins[] = { " ", "\t", "\n", "frame #", "Exception raised from ",
		"CUDA kernel errors ", "For debugging consider ", "Compile with ",
		"Device-side assertion ", "Last error:" };

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (line_begins(line, begins[i]))
			return true;
	return false;
}

bool traceback_ends(const char *text, const char **ret_at, size_t *ret_len)
{
	bool inside = begins_inside(text), ignored = false;
	const char *message = NULL;

	for (const char *at = text, *next; *at; at = next) {
		const char *line = behind_mark(at);

		next = at + strcspn(at, "\n");
		next += *next == '\n';
		if (line_begins(line, "Traceback (most recent call last)")) {
			inside = true;
			message = NULL;
		} else if (inside && (*line == ' ' || *line == '\t')) {
			continue;
		} else if (inside && names_exception(line)) {
			message = ignored ? NULL : line; /* what a destructor raises ends nothing */
			inside = ignored = false;
		} else if (!message || !goes_on(line)) {
			inside = false;
			message = NULL;
			ignored = line_begins(line, "Exception ignored in");
		}
	}
	if (!message)
		return false;
	*ret_at = message;
	*ret_len = strcspn(message, "\n");
	return true;
}

/* --- who lives on --- */

void traceback_begin(struct traceback_watch *w, uint64_t now_ms)
{
	traceback_done(w);
	w->looked_ms = now_ms;
	w->bytes = w->asked_bytes = 0;
}

void traceback_done(struct traceback_watch *w)
{
	free(w->of);
	w->of = NULL;
}

static uint64_t traceback_bytes(const struct traceback_watch *w)
{
	const struct output_counts c = output_counts(w->output);

	return c.read_bytes[0] + c.read_bytes[1];
}

void traceback_look(struct traceback_watch *w, uint64_t now_ms)
{
	uint64_t bytes = traceback_bytes(w);
	bool due = false;

	if (now_ms - w->looked_ms < TRACEBACK_LOOK_MS)
		return;
	w->looked_ms = now_ms;
	for (unsigned i = 0; w->of && i < w->count; i++)
		due |= w->of[i].is && !w->of[i].said &&
			now_ms - w->of[i].since_ms >= TRACEBACK_LIVES_MS;
	if ((bytes != w->bytes || due) && output_ask_tails(w->output, LINES))
		w->asked_bytes = bytes;
}

static void say_it_lives(const struct traceback_watch *w, const struct worker *worker,
	const char *message, size_t len)
{
	struct text t = { 0 }, plain = { 0 };

	for (const char *at = message; (at = behind_colour(at)) < message + len; at++)
		text_add_bytes(&plain, at, 1);
	text_printf(&t, "rank %u printed a traceback more than %d s ago and is still running: ",
		worker->outcome.rank, TRACEBACK_LIVES_MS / 1000);
	text_add_shown(&t, text_string(&plain), plain.len < SHOWN_BYTES ? plain.len : SHOWN_BYTES);
	bus_note(w->bus, NOTE_WARNING, text_string(&t));
	text_done(&plain);
	text_done(&t);
}

static void hear_worker(
	struct traceback_watch *w, unsigned i, const struct tails *tails, uint64_t now_ms)
{
	struct traceback_seen *seen = &w->of[i];
	const struct worker *worker = &w->pool->workers[i];
	const char *text = tails->of[i];
	uint64_t hash = message_hash(text);
	const char *message;
	size_t len;

	if (hash != seen->hash || tails->bytes[i] != seen->bytes) {
		seen->hash = hash;
		seen->bytes = tails->bytes[i];
		seen->since_ms = now_ms;
	}
	seen->is = worker_is_alive(worker) && traceback_ends(text, &message, &len);
	if (!seen->is || seen->said || now_ms - seen->since_ms < TRACEBACK_LIVES_MS)
		return;
	seen->said = true;
	say_it_lives(w, worker, message, len);
}

void traceback_hear(struct traceback_watch *w, const struct tails *tails, uint64_t now_ms)
{
	if (!tails || tails->max < LINES || w->looked_ms == 0)
		return;
	w->bytes = w->asked_bytes;
	if (!w->of) {
		w->count = tails->count;
		w->of = calloc(w->count, sizeof *w->of);
	}
	for (unsigned i = 0; w->of && i < w->count && i < tails->count; i++)
		hear_worker(w, i, tails, now_ms);
}
