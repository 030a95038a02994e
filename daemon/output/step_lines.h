/* step_lines.h - --progress REGEX: the number of the newest step in lines that workers write.
 *
 * It costs the output thread a bounded part of its time: a line is looked at up to
 * STEP_LINE_MAX bytes, and once that has taken a quarter of the time, no more lines are until the
 * next moment. Of a job that prints thousands of lines a second the newest step comes so a moment
 * late; the lines themselves go where they go as ever. */
#ifndef LAUNCHD_DAEMON_OUTPUT_STEP_LINES_H
#define LAUNCHD_DAEMON_OUTPUT_STEP_LINES_H

#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;

enum { STEP_LINE_MAX = 1024 };

/* The start of a stream's line that has not ended. { 0 } at first. */
struct step_line {
	unsigned len;
	unsigned missed;  /* len of the one before, for which there was no time; 0: none */
	bool bar, seen;   /* it follows a '\r'; all of it was looked at */
	uint64_t came_ns; /* its newest byte */
	char at[STEP_LINE_MAX + 1];
};

/* What was seen, for another thread. */
struct steps_seen {
	uint64_t lines;  /* that named a step; 0: none did, and the rest is not known */
	uint64_t newest; /* the highest that was named since it was forgotten */
	uint64_t at_ns;  /* when a line named a step that was higher than those before */
};

struct step_lines {
	regex_t expression;
	uint64_t moment_ns, spent_ns; /* the thread's: since when, and what it has used to look */
	_Atomic uint64_t lines, newest, at_ns;
};

/* -EINVAL, -ENOMEM. */
int step_lines_open(struct step_lines *s, const char *expression, struct failure *why);

/* Bytes of a stream. A line ends with '\n', or with '\r' as those of progress bars do; one without
 * an end is not looked at. */
void step_lines_take(struct step_lines *s, struct step_line *l, const char *at, size_t len);

/* Whether a moment without more bytes should look at what there is: the newest state of a bar, or a
 * line that there was no time for. */
bool step_line_waits(const struct step_line *l);

/* Looks at what there is: after such a moment, or as the stream has ended, and so its last line. */
void step_lines_rest(struct step_lines *s, struct step_line *l);

/* For any thread. Forgetting: another attempt begins. */
struct steps_seen step_lines_seen(const struct step_lines *s);
void step_lines_forget(struct step_lines *s);

void step_lines_close(struct step_lines *s);

#endif
