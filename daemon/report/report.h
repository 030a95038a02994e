/* report.h - what users read when a job has failed: who was first, how, and what the others did.
 * Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_REPORT_H
#define LAUNCHD_DAEMON_REPORT_REPORT_H

struct plan;
struct result;
struct text;

/* Adds the report, lines of "launchd: level: text". Nothing for a job that ended with 0. */
void report_failure(
	const struct result *r, const struct plan *plan, const char *hostname, struct text *out);

#endif
