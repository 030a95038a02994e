/* said.c - see said.h */
#include "daemon/report/said.h"

#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/text.h"
#include "daemon/job/evidence.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/report_input.h"

/* Bounds of what is shown of texts that are not ours; --report has more. A line may be a tensor's
 * repr() of 100 kB, and a traceback of a compiled model hundreds of frames. */
enum { LINE_MAX_BYTES = 400, MESSAGE_LINES = 10, TRACEBACK_LINES = 30 };

/* A piece of a text that a worker wrote. */
struct said_piece {
	const char *at;
	size_t len;
};

static struct said_piece piece_of(const char *text)
{
	struct said_piece p = { text, strlen(text) };

	while (p.len > 0 && strchr("\r\n", p.at[p.len - 1]))
		p.len--;
	return p;
}

/* The next line, without its end; *rest is what follows it. */
static struct said_piece next_line(struct said_piece *rest)
{
	const char *end = memchr(rest->at, '\n', rest->len);
	struct said_piece line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t used = line.len + (end != NULL);

	rest->at += used;
	rest->len -= used;
	if (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

static size_t count_lines(struct said_piece p)
{
	size_t count = 0;

	for (; p.len > 0; count++)
		(void)next_line(&p);
	return count;
}

static void add_text(struct said_piece line, struct text *out)
{
	bool is_long = line.len > LINE_MAX_BYTES;

	text_add_shown(out, line.at, is_long ? LINE_MAX_BYTES : line.len);
	text_add(out, is_long ? " ...\n" : "\n");
}

/* Indented, and without "launchd: error:" before it: these lines are copied. None of them can be
 * taken for one of launchd's. */
static void add_line(struct said_piece line, struct text *out)
{
	text_add(out, line.len > 0 ? "    " : "");
	add_text(line, out);
}

/* Up to `max` lines; of more the first ones, or the last ones. */
static void add_lines(struct said_piece p, size_t max, bool last, struct text *out)
{
	size_t count = count_lines(p), skipped = count > max ? count - max : 0;

	for (size_t i = 0; last && i < skipped; i++)
		(void)next_line(&p);
	if (last && skipped)
		text_printf(out, "    [%zu earlier lines]\n", skipped);
	for (size_t i = 0; i < max && p.len > 0; i++)
		add_line(next_line(&p), out);
	if (!last && skipped)
		text_printf(out, "    [%zu more lines]\n", skipped);
}

/* The same, and of a progress bar what was seen last: what follows the last '\r'. */
static struct said_piece next_seen_line(struct said_piece *rest)
{
	struct said_piece line = next_line(rest);
	const char *seen = memrchr(line.at, '\r', line.len);
	size_t hidden = seen ? (size_t)(seen - line.at) + 1 : 0;

	return (struct said_piece){ line.at + hidden, line.len - hidden };
}

/* The lines that the culprit wrote last, as many as are wanted; *ret_count is how many these are.
 */
static struct said_piece last_lines_of(const struct report_input *in, size_t *ret_count)
{
	struct said_piece p = piece_of(in->words.lines ? in->words.lines : "");
	size_t count = count_lines(p), wanted = in->plan->output.tail_lines;

	for (; count > wanted; count--)
		(void)next_line(&p);
	*ret_count = count;
	return p;
}

static struct said_piece take_last_line(struct said_piece *rest)
{
	const char *before = memrchr(rest->at, '\n', rest->len);
	size_t from = before ? (size_t)(before - rest->at) + 1 : 0;
	struct said_piece line = { rest->at + from, rest->len - from };

	rest->len = before ? from - 1 : 0;
	if (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Whether a line is this one of a traceback, but for the "[rank3]: " that torch puts before it. */
static bool is_same(struct said_piece line, struct said_piece of_traceback)
{
	size_t mark = line.len > of_traceback.len ? line.len - of_traceback.len : 0;
	bool is_marked = mark > 3 && *line.at == '[' && memcmp(line.at + mark - 3, "]: ", 3) == 0;

	return line.len - mark == of_traceback.len && (mark == 0 || is_marked) &&
		memcmp(line.at + mark, of_traceback.at, of_traceback.len) == 0;
}

static bool is_header(struct said_piece text)
{
	static const char begin[] = "Traceback (";

	return text.len >= sizeof begin - 1 && memcmp(text.at, begin, sizeof begin - 1) == 0 &&
		count_lines(text) == 1;
}

/* What the last lines do not have of a traceback, which Python writes on stderr, too. There it may
 * have other lines between its own: the frames before @record's, what another thread writes. Where
 * the last lines begin in the middle of it, the part before. */
static struct said_piece untold_of(struct said_piece traceback, struct said_piece lines)
{
	struct said_piece rest = traceback;
	size_t found = 0, others = 0; /* lines of it, and those before the topmost one found */

	while (lines.len > 0 && rest.len > 0) {
		struct said_piece shorter = rest;

		if (is_same(take_last_line(&lines), take_last_line(&shorter))) {
			rest = shorter;
			found++;
			others = 0;
		} else {
			others++;
		}
	}
	if (rest.len > 0 && found <= others)
		return traceback;
	return is_header(rest) ? (struct said_piece){ rest.at, 0 } : rest;
}

/* A traceback without the message that Python writes at its end, as that has been said. */
static struct said_piece traceback_of(const struct error_record *e)
{
	struct said_piece traceback = piece_of(e->traceback);
	struct said_piece message = piece_of(e->message ? e->message : "");

	if (message.len > 0 && traceback.len > message.len &&
		traceback.at[traceback.len - message.len - 1] == '\n' &&
		memcmp(traceback.at + traceback.len - message.len, message.at, message.len) == 0)
		traceback.len -= message.len + 1;
	return traceback;
}

static void add_traceback(
	const struct error_record *e, struct said_piece last_lines, struct text *out)
{
	struct said_piece whole = piece_of(e->traceback), untold = untold_of(whole, last_lines);

	if (untold.len == whole.len)
		untold = traceback_of(e);
	add_lines(untold, TRACEBACK_LINES, true, out);
}

static void add_record(const struct error_record *e, struct said_piece last_lines, struct text *out)
{
	struct said_piece rest;

	if (e->raw) {
		text_add(out, "launchd: error: error file: ");
		text_add_shown(out, e->raw_why, strlen(e->raw_why));
		text_add(out, *e->raw ? ":\n" : "\n");
		add_lines(piece_of(e->raw), MESSAGE_LINES, false, out);
		return;
	}
	if (e->message) {
		rest = piece_of(e->message);
		text_add(out, "launchd: error: exception: ");
		add_text(next_line(&rest), out);
		add_lines(rest, MESSAGE_LINES - 1, false, out);
	}
	if (e->traceback)
		add_traceback(e, last_lines, out);
}

void said_add_log(const struct report_input *in, const char *level, struct text *out)
{
	const char *log = in->words.log;

	if (!log || !*log)
		return;
	text_printf(out, "launchd: %s: log: ", level);
	text_add_shown(out, log, strlen(log));
	text_add(out, "\n");
}

static void add_last_lines(struct said_piece lines, size_t count, struct text *out)
{
	if (count == 1)
		text_add(out, "launchd: error: last line:\n");
	else if (count > 0)
		text_printf(out, "launchd: error: last %zu lines:\n", count);
	while (lines.len > 0)
		add_line(next_seen_line(&lines), out);
}

void said_add(const struct report_input *in, struct text *out)
{
	size_t count;
	struct said_piece last_lines = last_lines_of(in, &count);

	if (in->record)
		add_record(in->record, last_lines, out);
	add_last_lines(last_lines, count, out);
	said_add_log(in, "error", out);
}

void said_add_json(const struct report_input *in, struct json *j)
{
	size_t count;
	struct said_piece rest = last_lines_of(in, &count);

	if (in->words.lines)
		json_array_begin(j, "last_lines");
	else
		json_string(j, "last_lines", NULL);
	for (bool first = true; rest.len > 0; first = false) {
		struct said_piece line = next_seen_line(&rest);

		if (!first)
			json_line(j);
		json_string(j, NULL, arena_strndup(in->arena, line.at, line.len));
	}
	if (in->words.lines)
		json_array_end(j);
	json_string(j, "log", in->words.log);
}
