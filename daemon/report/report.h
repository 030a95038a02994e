/* report.h - what users read when a job has ended: who was first to fail, how, what it said of
 * itself, what the others did, and what was left behind. Pure, but for the time zone. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_H
#define LAUNCHD_DAEMON_REPORT_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct error_record;
struct outcome;
struct plan;
struct result;
struct text;

struct report_input {
	const struct result *result;
	const struct plan *plan;
	const char *hostname;
	const struct error_record *record; /* the culprit's own words; NULL: none */
	uid_t uid;                         /* launchd's own */
	struct arena *arena;               /* for what the report needs in between */
};

/* Adds the report, lines of "launchd: level: text". Of a job that ended with 0 only what had to be
 * killed, or could not be: that is nothing in most. */
void report_text(const struct report_input *in, struct text *out);

/* Adds the report as one JSON object (schema: launchd(1), REPORT). */
void report_json(const struct report_input *in, struct text *out);

/* Adds the sentence, no newline, about workers that have ended with 0 while others still run, at
 * now_ns of CLOCK_MONOTONIC: "ranks 0, 2-3 ended with exit code 0, the first 60.0 s ago; ranks 1, 4
 * still run". Nothing where there is nothing to say. outcomes in order of rank; who still runs has
 * a pid and how ENDED_NONE. */
void report_unfinished(const struct outcome *outcomes, size_t count, uint64_t now_ns,
	struct arena *arena, struct text *out);

#endif
