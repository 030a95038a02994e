/* report.h - what users read when a job has ended: the root cause, what the culprit said of
 * itself, what the others did, and what was left behind. Pure, but for the time zone. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_H
#define LAUNCHD_DAEMON_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/report/report_input.h"

struct arena;
struct outcome;
struct text;

/* Adds the report, lines of "launchd: level: text". Of a job that ended with 0 only what had to be
 * killed, or could not be: that is nothing in most. Its length is bounded for any number of
 * workers and nodes. */
void report_text(const struct report_input *in, struct text *out);

/* Adds the lines about the culprit alone: who, when, its command, and what it says of itself. The
 * result's cause is a failure. */
void report_culprit_text(const struct report_input *in, struct text *out);

/* Adds the lines, five at most, about an attempt that failed and the next one, which starts after
 * delay_ms: the root cause, its exception, where its log is, and what follows. */
void report_restart_text(const struct report_input *in, uint64_t delay_ms, struct text *out);

/* Adds the culprit's command line, quoted for a shell and no longer than max_bytes. False, and
 * nothing is added: it is on another node, which has not told, or no worker failed. */
bool report_command(const struct report_input *in, size_t max_bytes, struct text *out);

/* Adds the report as one JSON object (schema: launchd(1), REPORT). */
void report_json(const struct report_input *in, struct text *out);

/* Adds the sentence, no newline, about workers that have ended with 0 while others still run, at
 * now_ns of CLOCK_MONOTONIC: "ranks 0, 2-3 ended with exit code 0, the first 60.0 s ago; ranks 1, 4
 * are still running". Nothing where there is nothing to say. outcomes in order of rank; who still
 * runs has a pid and how ENDED_NONE. */
void report_unfinished(const struct outcome *outcomes, size_t count, uint64_t now_ns,
	struct arena *arena, struct text *out);

#endif
