/* tail.c - see tail.h */
#include "daemon/output/tail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/output/console/lines.h"

static const char dots[] = "..."; /* for what came before a cut */

struct tail_run {
	uint16_t len; /* <= TAIL_BYTES */
	uint8_t stream;
};

/* Two rings: bytes, and runs that say whose they are. */
struct tail_kept {
	size_t begin, len;       /* of bytes */
	size_t first_run, count; /* of runs */
	bool cut[2];             /* the first line of the stream has lost its start */
	char last[2];            /* the last byte that came; '\n' before the first one */
	struct tail_run runs[TAIL_RUNS];
	char bytes[TAIL_BYTES];
};

static char *byte_at(struct tail_kept *k, size_t i)
{
	return &k->bytes[(k->begin + i) % TAIL_BYTES];
}

static struct tail_run *run_at(struct tail_kept *k, size_t i)
{
	return &k->runs[(k->first_run + i) % TAIL_RUNS];
}

/* Forgets the first len bytes of the first run. */
static void lose(struct tail_kept *k, size_t len)
{
	struct tail_run *first = run_at(k, 0);

	k->cut[first->stream] = *byte_at(k, len - 1) != '\n';
	k->begin = (k->begin + len) % TAIL_BYTES;
	k->len -= len;
	first->len = (uint16_t)(first->len - len);
	if (first->len > 0)
		return;
	k->first_run = (k->first_run + 1) % TAIL_RUNS;
	k->count--;
}

static void append(struct tail_kept *k, const char *at, size_t len)
{
	size_t end = (k->begin + k->len) % TAIL_BYTES;
	size_t here = len < TAIL_BYTES - end ? len : TAIL_BYTES - end;

	memcpy(k->bytes + end, at, here);
	memcpy(k->bytes, at + here, len - here);
	k->len += len;
}

static struct tail_kept *keep(struct tail *t)
{
	if (t->kept)
		return t->kept;
	t->kept = malloc(sizeof *t->kept);
	if (!t->kept)
		return NULL;
	t->kept->begin = t->kept->len = t->kept->first_run = t->kept->count = 0;
	for (int i = 0; i < 2; i++) {
		t->kept->cut[i] = t->bytes[i] > 0; /* what came before found no memory */
		t->kept->last[i] = t->kept->cut[i] ? '\0' : '\n';
	}
	return t->kept;
}

void tail_add(struct tail *t, int fd, const char *at, size_t len)
{
	unsigned stream = fd == 2;
	struct tail_kept *k;
	struct tail_run *last;

	assert(fd == 1 || fd == 2);
	if (len == 0)
		return;
	k = keep(t);
	t->bytes[stream] += len;
	if (!k)
		return;
	if (len >= TAIL_BYTES) {
		char before = len > TAIL_BYTES ? at[len - TAIL_BYTES - 1] : k->last[stream];

		k->len = k->count = 0;
		k->cut[stream] = before != '\n';
		k->cut[!stream] = k->last[!stream] != '\n';
		at += len - TAIL_BYTES;
		len = TAIL_BYTES;
	}
	while (k->len > TAIL_BYTES - len) {
		size_t over = k->len - (TAIL_BYTES - len), first = run_at(k, 0)->len;

		lose(k, over < first ? over : first);
	}
	last = k->count > 0 ? run_at(k, k->count - 1) : NULL;
	if (!last || last->stream != stream) {
		if (k->count == TAIL_RUNS)
			lose(k, run_at(k, 0)->len);
		last = run_at(k, k->count++);
		*last = (struct tail_run){ .stream = (uint8_t)stream };
	}
	last->len = (uint16_t)(last->len + len);
	append(k, at, len);
	k->last[stream] = at[len - 1];
}

/* A stream's bytes in one piece. */
struct whole {
	char *at;
	size_t len;
};

static bool reassemble(struct tail_kept *k, struct arena *arena, struct whole w[2])
{
	size_t from = k->begin, lens[2] = { 0, 0 };

	for (size_t i = 0; i < k->count; i++)
		lens[run_at(k, i)->stream] += run_at(k, i)->len;
	for (int i = 0; i < 2; i++) {
		w[i] = (struct whole){ arena_alloc(arena, lens[i]), 0 };
		if (!w[i].at)
			return false;
	}
	for (size_t i = 0; i < k->count; i++) {
		const struct tail_run *r = run_at(k, i);
		struct whole *to = &w[r->stream];
		size_t n = r->len < TAIL_BYTES - from ? r->len : TAIL_BYTES - from;

		memcpy(to->at + to->len, k->bytes + from, n);
		memcpy(to->at + to->len + n, k->bytes, r->len - n);
		to->len += r->len;
		from = (from + r->len) % TAIL_BYTES;
	}
	return true;
}

static size_t most_lines(const struct whole w[2], unsigned max)
{
	size_t count = 2; /* one of each stream may not have ended */

	for (int i = 0; i < 2; i++)
		for (size_t k = 0; k < w[i].len; k++)
			count += w[i].at[k] == '\n';
	return count < max ? count : max;
}

/* The line whose last byte is at[last]. */
static struct tail_line line_to(const struct whole *w, size_t last, bool cut)
{
	size_t end = last + (w->at[last] != '\n');
	const char *before = end > 0 ? memrchr(w->at, '\n', end) : NULL;
	const char *begin = before ? before + 1 : w->at;
	struct tail_line line = { .len = (size_t)(w->at + end - begin) };

	line.at = lines_shown(begin, &line.len);
	line.cut = cut && line.at == w->at;
	return line;
}

size_t tail_lines(const struct tail *t, unsigned max, struct arena *arena, struct tail_line **ret)
{
	struct whole w[2];
	struct tail_line *lines;
	size_t left[2], room, count = 0;

	*ret = NULL;
	if (!t->kept || max == 0 || !reassemble(t->kept, arena, w))
		return 0;
	room = most_lines(w, max);
	lines = arena_alloc(arena, room * sizeof *lines);
	if (!lines)
		return 0;
	left[0] = w[0].len;
	left[1] = w[1].len;
	/* back from the last byte: where lines end is met in the order that is asked for */
	for (size_t i = t->kept->count; i-- > 0 && count < room;) {
		const struct tail_run *r = run_at(t->kept, i);
		const struct whole *of = &w[r->stream];

		for (size_t k = 0; k < r->len && count < room; k++) {
			size_t last = --left[r->stream];
			struct tail_line line;

			if (of->at[last] != '\n' && last + 1 < of->len)
				continue;
			line = line_to(of, last, t->kept->cut[r->stream]);
			line.fd = r->stream + 1;
			/* a cut line without a text may have shown anything */
			if (line.len > 0 || (count > 0 && !line.cut))
				lines[room - ++count] = line;
		}
	}
	*ret = lines + (room - count);
	return count;
}

static bool is_middle(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80; /* of a character in UTF-8 */
}

static size_t size_of(const struct tail_line *line)
{
	return (line->cut ? sizeof dots - 1 : 0) + line->len;
}

/* The end of a line that is too long alone. */
static void shorten(struct tail_line *line)
{
	size_t len = TAIL_TEXT_MAX - (sizeof dots - 1);

	for (int i = 0; i < 3 && is_middle(line->at[line->len - len]); i++)
		len--;
	line->at += line->len - len;
	line->len = len;
	line->cut = true;
}

const char *tail_text(const struct tail *t, unsigned max, struct arena *arena)
{
	struct tail_line *lines;
	size_t count = tail_lines(t, max, arena, &lines), size = 0, first = count;
	char *text, *at;

	if (count > 0 && size_of(&lines[count - 1]) > TAIL_TEXT_MAX)
		shorten(&lines[count - 1]);
	while (first > 0 && size + size_of(&lines[first - 1]) <= TAIL_TEXT_MAX)
		size += size_of(&lines[--first]) + 1;
	text = at = arena_alloc(arena, size + 1);
	if (!text)
		return "";
	for (; first < count; first++) {
		const struct tail_line *line = &lines[first];

		if (line->cut)
			at = stpcpy(at, dots);
		for (size_t i = 0; i < line->len; i++)
			*at++ = line->at[i] ? line->at[i] : '?';
		if (first + 1 < count)
			*at++ = '\n';
	}
	return text;
}

void tail_done(struct tail *t)
{
	free(t->kept);
	*t = (struct tail){ 0 };
}

struct tails *tails_new(unsigned count, unsigned max)
{
	struct tails *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->count = count;
	t->max = max;
	t->of = arena_alloc(&t->memory, count * sizeof *t->of);
	t->bytes = arena_alloc(&t->memory, count * sizeof *t->bytes);
	if (t->of && t->bytes)
		return t;
	tails_free(t);
	return NULL;
}

void tails_free(struct tails *t)
{
	if (t)
		arena_done(&t->memory);
	free(t);
}
