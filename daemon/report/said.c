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

/* Up to `max` lines. */
static void add_lines(struct said_piece p, size_t max, struct text *out)
{
	size_t count = count_lines(p);

	for (size_t i = 0; i < max && p.len > 0; i++)
		add_line(next_line(&p), out);
	if (count > max)
		text_printf(out, "    [%zu more lines]\n", count - max);
}

/* As next_line(), and of a progress bar what was seen last: what follows the last '\r'. */
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

const char *said_last_lines(const struct report_input *in)
{
	size_t count;
	struct said_piece p = last_lines_of(in, &count);

	return in->words.lines ? arena_strndup(in->arena, p.at, p.len) : NULL;
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

/* A traceback's first line, behind torch's "[rank3]: " or not. */
static bool is_begin(struct said_piece line)
{
	static const char begin[] = "Traceback (";
	const char *at = memmem(line.at, line.len, begin, sizeof begin - 1);

	return at && (at == line.at || (*line.at == '[' && at[-1] == ' '));
}

static bool is_header(struct said_piece text)
{
	return is_begin(text) && count_lines(text) == 1;
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

/* Its start and its end. */
static void add_ends(struct said_piece p, struct text *out)
{
	enum { END_LINES = TRACEBACK_LINES / 2 };
	size_t count = count_lines(p),
	       hidden = count > TRACEBACK_LINES ? count - TRACEBACK_LINES : 0;

	for (size_t i = 0; p.len > 0; i++) {
		struct said_piece line = next_line(&p);

		if (hidden && i == END_LINES)
			text_printf(out, "    [%zu lines between]\n", hidden);
		if (!hidden || i < END_LINES || i >= END_LINES + hidden)
			add_line(line, out);
	}
}

/* What the last lines say behind the traceback that ends in them. */
static struct said_piece said_behind(struct said_piece traceback, struct said_piece lines)
{
	struct said_piece all = lines, end = take_last_line(&traceback);

	while (lines.len > 0) {
		struct said_piece line = take_last_line(&lines);

		if (is_same(line, end)) {
			size_t used = (size_t)(line.at + line.len - all.at);

			used += used < all.len && all.at[used] == '\r';
			used += used < all.len && all.at[used] == '\n';
			return (struct said_piece){ all.at + used, all.len - used };
		}
	}
	return all;
}

/* Whether a line of the console is this one of a worker, behind a prefix or not. */
static bool said_is_shown(struct said_piece on_console, struct said_piece line)
{
	size_t prefix = on_console.len - line.len;

	if (on_console.len < line.len || memcmp(on_console.at + prefix, line.at, line.len) != 0)
		return false;
	return line.len > 0 || prefix == 0 || strchr(" :]", on_console.at[prefix - 1]);
}

/* How many of the last lines are those of a traceback that stands on the console that gets the
 * report, with nothing between them or behind them; 0: other words are short. They begin with its
 * first line, or in the middle of it. */
static size_t count_above(const struct report_input *in, struct said_piece lines, size_t count)
{
	static const char frame[] = "  File \"";
	struct said_piece console = piece_of(in->shown ? in->shown : "");
	size_t above = 0, ret = 0;
	bool in_frames = false, is_cut = count == in->plan->output.tail_lines;

	while (lines.len > 0 && console.len > 0 && above < count) {
		struct said_piece line = take_last_line(&lines);

		line = next_seen_line(&line);
		if (!said_is_shown(take_last_line(&console), line))
			break;
		above++;
		in_frames |= memmem(line.at, line.len, frame, sizeof frame - 1) != NULL;
		if (is_begin(line) || (above == count && in_frames && is_cut))
			ret = above;
	}
	return ret;
}

static void add_record(const struct error_record *e, struct text *out)
{
	struct said_piece rest;

	if (e->raw) {
		text_add(out, "launchd: error: error file: ");
		text_add_shown(out, e->raw_why, strlen(e->raw_why));
		text_add(out, *e->raw ? ":\n" : "\n");
		add_lines(piece_of(e->raw), MESSAGE_LINES, out);
		return;
	}
	if (e->message) {
		rest = piece_of(e->message);
		text_add(out, "launchd: error: exception: ");
		add_text(next_line(&rest), out);
		add_lines(rest, MESSAGE_LINES - 1, out);
	}
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

static void add_last_lines(struct said_piece lines, const char *which, struct text *out)
{
	size_t count = count_lines(lines);

	if (count == 1)
		text_printf(out, "launchd: error: last line%s:\n", which);
	else if (count > 0)
		text_printf(out, "launchd: error: last %zu lines%s:\n", count, which);
	while (lines.len > 0)
		add_line(next_seen_line(&lines), out);
}

static bool has_part_of(const struct error_record *e, struct said_piece lines)
{
	struct said_piece whole = piece_of(e->traceback);

	return untold_of(whole, lines).len < whole.len;
}

/* Its error file's traceback, once: where the last lines begin in the middle of it, they are a part
 * of it. Returns those that are left to show. */
static struct said_piece add_traceback(
	const struct error_record *e, struct said_piece lines, struct text *out)
{
	struct said_piece whole = piece_of(e->traceback), untold = untold_of(whole, lines);

	if (untold.len == 0)
		return lines;
	add_ends(untold.len == whole.len ? traceback_of(e) : whole, out);
	return untold.len == whole.len ? lines : said_behind(whole, lines);
}

void said_add(const struct report_input *in, struct text *out)
{
	size_t count, above;
	struct said_piece lines = last_lines_of(in, &count);

	above = count_above(in, lines, count);
	if (in->record)
		add_record(in->record, out);
	if (above > 0) {
		if (in->record && in->record->traceback && !has_part_of(in->record, lines))
			add_ends(traceback_of(in->record), out);
		text_add(out, "launchd: error: its last lines are above\n");
		for (size_t i = 0; i < above; i++)
			(void)take_last_line(&lines);
		add_last_lines(lines, " before those", out);
	} else {
		if (in->record && in->record->traceback)
			lines = add_traceback(in->record, lines, out);
		add_last_lines(lines, "", out);
	}
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
