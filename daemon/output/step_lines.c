/* step_lines.c - see step_lines.h */
#include "daemon/output/step_lines.h"

#include <string.h>
#include <time.h>
#include <uv.h>

#include "daemon/plan/step_source.h"

#define MOMENT_NS 100000000ull

enum { SHARE = 4 }; /* of a moment, one part */

int step_lines_open(struct step_lines *s, const char *expression, struct failure *why)
{
	return progress_compile(expression, "--progress", &s->expression, why);
}

/* What this thread has used, not what has passed: on a busy machine the others' share is not this
 * one's, and no step is to be missed for it. */
static uint64_t used_ns(void)
{
	struct timespec used = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* every Linux has it */
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Whether there is time left for one more line. */
static bool may_look(struct step_lines *s, uint64_t now_ns)
{
	if (now_ns - s->moment_ns >= MOMENT_NS) {
		s->moment_ns = now_ns;
		s->spent_ns = 0;
	}
	return s->spent_ns < MOMENT_NS / SHARE;
}

static void note(struct step_lines *s, uint64_t step, uint64_t now_ns)
{
	uint64_t lines = atomic_load(&s->lines);

	if (lines == 0 || step > atomic_load(&s->newest)) {
		atomic_store(&s->newest, step);
		atomic_store(&s->at_ns, now_ns);
	}
	atomic_store(&s->lines, lines + 1); /* last: whoever sees it sees the others */
}

static void look(struct step_lines *s, struct step_line *l, uint64_t came_ns)
{
	uint64_t begin = used_ns(), step;

	l->at[l->len] = '\0';
	if (progress_in_line(&s->expression, l->at, &step))
		note(s, step, came_ns);
	s->spent_ns += used_ns() - begin;
}

/* The line is over. */
static void end_line(struct step_lines *s, struct step_line *l)
{
	uint64_t now_ns = uv_hrtime();
	bool is_new = l->len > 0 && !l->seen;

	l->came_ns = now_ns;
	l->missed = 0;
	if (is_new && may_look(s, now_ns))
		look(s, l, now_ns);
	else if (is_new)
		l->missed = l->len;
	l->len = 0;
	l->seen = false;
}

/* How many bytes stand before the first end of a line. */
static size_t line_length(const char *at, size_t len)
{
	const char *newline = memchr(at, '\n', len);
	size_t n = newline ? (size_t)(newline - at) : len;
	const char *carriage = memchr(at, '\r', n);

	return carriage ? (size_t)(carriage - at) : n;
}

void step_lines_take(struct step_lines *s, struct step_line *l, const char *at, size_t len)
{
	while (len > 0) {
		size_t n = line_length(at, len);
		size_t room = STEP_LINE_MAX - l->len, more = n < room ? n : room;

		memcpy(l->at + l->len, at, more);
		l->len += (unsigned)more;
		if (more > 0) {
			l->missed = 0; /* what it was is no longer there */
			l->seen = false;
		}
		if (n == len) {
			l->came_ns = uv_hrtime();
			return;
		}
		if (l->len > 0)
			end_line(s, l);
		l->bar = at[n] == '\r';
		at += n + 1;
		len -= n + 1;
	}
}

bool step_line_waits(const struct step_line *l)
{
	return l->missed > 0 || (l->bar && l->len > 0 && !l->seen);
}

void step_lines_rest(struct step_lines *s, struct step_line *l)
{
	if (l->missed > 0) {
		l->len = l->missed;
		look(s, l, l->came_ns);
		l->len = l->missed = 0;
	} else if (l->len > 0 && !l->seen) {
		look(s, l, l->came_ns);
		l->seen = true;
	}
}

struct steps_seen step_lines_seen(const struct step_lines *s)
{
	uint64_t lines = atomic_load(&s->lines);

	return (struct steps_seen){ lines, atomic_load(&s->newest), atomic_load(&s->at_ns) };
}

void step_lines_forget(struct step_lines *s)
{
	atomic_store(&s->lines, 0);
}

void step_lines_close(struct step_lines *s)
{
	regfree(&s->expression);
}
