/* history.c - see history.h */
#include "daemon/job/history.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/job/evidence.h"
#include "daemon/job/phrases.h"

/* --- where an exception came from --- */

/* A part of a text that isn't this file's own. */
struct excerpt {
	const char *at;
	size_t len;
};

static struct excerpt line_at(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return (struct excerpt){ at, (size_t)((newline ? newline : end) - at) };
}

static bool starts(struct excerpt p, const char *with)
{
	size_t len = strlen(with);

	return p.len >= len && memcmp(p.at, with, len) == 0;
}

/* "ValueError: the teapot is empty", "torch.OutOfMemoryError: ...", "KeyboardInterrupt" */
static struct excerpt exception_of(struct excerpt line)
{
	struct excerpt p = { line.at, 0 };

	while (p.len < line.len &&
		(isalnum((unsigned char)p.at[p.len]) || p.at[p.len] == '_' || p.at[p.len] == '.'))
		p.len++;
	if (p.len == 0 || isdigit((unsigned char)*p.at) ||
		(p.len < line.len && p.at[p.len] != ':' && p.at[p.len] != '\r'))
		p.len = 0;
	return p;
}

/* `  File "train.py", line 42, in step`; false: the line is none. Of a path its end counts. */
static bool read_frame(struct excerpt line, char *ret, size_t size)
{
	enum { PATH_KEPT = 96, NAME_KEPT = 48 };
	static const char begins[] = "  File \"", between[] = "\", line ";
	struct excerpt path = { line.at + sizeof begins - 1, 0 }, name = { NULL, 0 };
	unsigned long number;
	const char *at;

	if (!starts(line, begins))
		return false;
	while (path.at + path.len + sizeof between <= line.at + line.len &&
		memcmp(path.at + path.len, between, sizeof between - 1) != 0)
		path.len++;
	at = path.at + path.len + sizeof between - 1;
	if (at >= line.at + line.len)
		return false;
	for (number = 0; at < line.at + line.len && isdigit((unsigned char)*at); at++)
		number = number * 10 + (unsigned long)(*at - '0');
	if (line.at + line.len - at > 5 && memcmp(at, ", in ", 5) == 0)
		name = (struct excerpt){ at + 5, (size_t)(line.at + line.len - at - 5) };
	if (path.len > PATH_KEPT) {
		path.at += path.len - PATH_KEPT;
		path.len = PATH_KEPT;
	}
	if (name.len > NAME_KEPT)
		name.len = NAME_KEPT;
	(void)snprintf(ret, size, "%.*s:%lu%s%.*s", (int)path.len, path.at, number,
		name.len ? " in " : "", (int)name.len, name.len ? name.at : "");
	return true;
}

static bool mentions_device(const char *text, size_t len)
{
	static const char *const words[] = { "CUDA error", "NCCL error", "ncclSystemError",
		"ncclInternalError", "cuBLAS", "CUBLAS_STATUS", "ECC error", "DistBackendError",
		"AcceleratorError" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* What a GPU's or a link's own error looks like, in the words of CUDA, NCCL, the driver and the
 * kernel; illegal accesses and failed asserts are the program's, and a closed connection is a
 * peer's. */
static bool mentions_hardware(const char *text, size_t len)
{
	static const char *const words[] = { "ECC error", "uncorrectable", "NVLink error",
		"hardware error", "Hardware Error", "fallen off the bus",
		"CUDA error: unknown error", "CUDA error: unspecified launch failure",
		"unable to determine the device handle", "no CUDA-capable device is detected",
		"CUDA-capable device(s) is/are busy", "CUDA driver initialization failed",
		"system not yet initialized", "Got async event", "Xid (" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* What a traceback says: its innermost frame, and the exception behind that. Of several the last
 * one counts: it is what ended the program. False: there is none. */
static bool read_traceback(const char *text, struct crash_site *ret)
{
	enum { FRAME_SIZE = 160 };
	const char *end = text + strlen(text), *at;
	char frame[FRAME_SIZE] = "", found[FRAME_SIZE] = "";
	struct excerpt type = { NULL, 0 }, line, what = { NULL, 0 };

	for (at = text; at < end; at = line.at + line.len + 1) {
		line = line_at(at, end);
		if (read_frame(line, frame, sizeof frame)) {
			type.len = 0;
			continue;
		}
		if (!*frame || line.len == 0 || *line.at == ' ' || *line.at == '\t')
			continue;
		type = exception_of(line);
		if (type.len) {
			memcpy(found, frame, sizeof found);
			what = (struct excerpt){ line.at, line.len };
			(void)snprintf(ret->text, sizeof ret->text, "%.*s at %s",
				(int)(type.len < 64 ? type.len : 64), type.at, found);
		}
		*frame = '\0';
	}
	ret->device = what.at && mentions_device(what.at, what.len);
	ret->hardware = what.at && mentions_hardware(what.at, (size_t)(end - what.at));
	return *ret->text != '\0';
}

void crash_site_find(const struct evidence *said, struct crash_site *ret)
{
	*ret = (struct crash_site){ .device = false };
	if (said->record && said->record->traceback && read_traceback(said->record->traceback, ret))
		return;
	if (said->words.lines && !read_traceback(said->words.lines, ret))
		ret->hardware = mentions_hardware(said->words.lines, strlen(said->words.lines));
}

/* --- the attempts --- */

unsigned history_count(const struct history *h)
{
	return h->total < PAST_KEPT ? h->total : PAST_KEPT;
}

const struct past_attempt *history_nth(const struct history *h, unsigned n)
{
	return &h->at[(h->total - history_count(h) + n) % PAST_KEPT];
}

static const struct past_attempt *newest(const struct history *h, unsigned back)
{
	unsigned count = history_count(h);

	return back < count ? history_nth(h, count - 1 - back) : NULL;
}

/* That another attempt was asked for is no failure, but steps that it made are steps. */
static void note_step(struct history *h, struct past_attempt *p)
{
	p->progressed = p->has_step && (!h->any_step || p->step > h->best_step);
	if (p->progressed) {
		h->any_step = true;
		h->best_step = p->step;
		h->idle = 0;
	} else if (p->cause != CAUSE_RESTART) {
		h->idle++;
	}
}

static_assert((PAST_KEPT & (PAST_KEPT - 1)) == 0, "room is doubled up to that");

/* Most jobs have one attempt. */
static bool make_room(struct history *h, struct arena *arena)
{
	unsigned room = h->room ? 2 * h->room : 1;
	struct past_attempt *more;

	if (h->total < h->room || h->room == PAST_KEPT)
		return true;
	more = arena_alloc(arena, room * sizeof *more);
	if (!more)
		return false;
	if (h->total)
		memcpy(more, h->at, h->total * sizeof *more);
	h->at = more;
	h->room = room;
	return true;
}

static bool is_failure(const struct past_attempt *p)
{
	return p && p->cause == CAUSE_FAILURE && p->has_culprit;
}

static bool is_same_site(const struct crash_site *a, const struct crash_site *b)
{
	return *a->text && strcmp(a->text, b->text) == 0;
}

static bool is_tally_of(const struct place_tally *t, const struct past_attempt *p)
{
	return t->node == p->node && t->local_rank == p->local_rank &&
		strcmp(t->site.text, p->site.text) == 0 && t->site.device == p->site.device &&
		t->site.hardware == p->site.hardware;
}

/* False: there is no memory. */
static bool count_place(struct history *h, const struct past_attempt *p, struct arena *arena)
{
	unsigned i = 0;

	while (i < h->place_count && !is_tally_of(&h->places[i], p))
		i++;
	if (i == h->place_room) {
		unsigned room = i ? 2 * i : 1;
		struct place_tally *more = arena_alloc(arena, room * sizeof *more);

		if (!more)
			return false;
		if (i)
			memcpy(more, h->places, i * sizeof *more);
		h->places = more;
		h->place_room = room;
	}
	if (i == h->place_count)
		h->places[h->place_count++] =
			(struct place_tally){ p->node, p->local_rank, p->site, 0 };
	h->places[i].times++;
	return true;
}

struct past_attempt *history_add(
	struct history *h, const struct past_attempt *past, struct arena *arena)
{
	struct past_attempt *p;

	if (!make_room(h, arena) || (is_failure(past) && !count_place(h, past, arena)))
		return NULL;
	p = &h->at[h->total++ % PAST_KEPT];
	*p = *past;
	note_step(h, p);
	return p;
}

void history_withdraw(struct history *h, const char *why)
{
	struct past_attempt *p = h->at ? &h->at[(h->total - 1) % PAST_KEPT] : NULL;

	if (!p)
		return;
	p->restarts = false;
	(void)snprintf(p->reason, sizeof p->reason, "%s", why);
}

unsigned history_restarts_since(const struct history *h, uint64_t since_ns)
{
	unsigned count = 0;

	while (count < h->decided && h->decided_ns[h->decided - 1 - count] >= since_ns)
		count++;
	return count;
}

void history_note_restart(
	struct history *h, uint64_t now_ns, uint64_t since_ns, struct arena *arena)
{
	unsigned kept = history_restarts_since(h, since_ns);

	if (h->decided > kept)
		memmove(h->decided_ns, h->decided_ns + (h->decided - kept),
			kept * sizeof *h->decided_ns);
	h->decided = kept;
	if (kept == h->decided_room) {
		unsigned room = kept ? 2 * kept : 16;
		uint64_t *more = arena_alloc(arena, room * sizeof *more);

		if (!more)
			return;
		if (kept)
			memcpy(more, h->decided_ns, kept * sizeof *more);
		h->decided_ns = more;
		h->decided_room = room;
	}
	h->decided_ns[h->decided++] = now_ns;
}

/* --- what they have in common --- */

bool history_repeats(const struct history *h)
{
	const struct past_attempt *last = newest(h, 0), *before = newest(h, 1);

	return is_failure(last) && is_failure(before) && is_same_site(&last->site, &before->site) &&
		!last->site.device;
}

unsigned history_place(const struct history *h, unsigned nnodes, size_t workers, bool *ret_gpu)
{
	const struct past_attempt *last = newest(h, 0);
	unsigned times = 0;

	*ret_gpu = true;
	if (workers <= 1 || !is_failure(last))
		return 0;
	for (unsigned i = 0; i < h->place_count; i++) {
		const struct place_tally *t = &h->places[i];
		bool same_rank = t->local_rank == last->local_rank;
		bool programs = is_same_site(&t->site, &last->site) && !last->site.device;

		if (t->node != last->node || (nnodes == 1 && !same_rank))
			continue;
		if (programs) { /* only the last time itself counts */
			times += is_tally_of(t, last);
			continue;
		}
		times += t->times;
		*ret_gpu = *ret_gpu && same_rank;
	}
	return times > 1 ? times : 0;
}

bool history_blames_hardware(const struct history *h)
{
	const struct past_attempt *last = newest(h, 0);
	unsigned times = 0;

	if (!is_failure(last) || !last->site.hardware)
		return false;
	for (unsigned i = 0; i < h->place_count; i++)
		if (h->places[i].node == last->node && h->places[i].site.hardware)
			times += h->places[i].times;
	return times > 1;
}

bool history_place_add(const struct history *h, const struct node *nodes, unsigned nnodes,
	size_t workers, struct text *out)
{
	bool gpu;
	unsigned times = history_place(h, nnodes, workers, &gpu);
	const struct past_attempt *last = newest(h, 0);

	if (times == 0 || last->node >= nnodes)
		return false;
	if (nnodes > 1)
		node_name_add(out, last->node, nodes[last->node].name);
	else
		text_printf(out, "local rank %u", last->local_rank);
	text_printf(out, " was the first to fail in %u of %u attempts", times, last->attempt + 1);
	if (nnodes > 1 && gpu)
		text_printf(out, ", local rank %u each time", last->local_rank);
	return true;
}
