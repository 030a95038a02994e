/* explain_output.h - what becomes of the workers' output, for --dry-run. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_EXPLAIN_OUTPUT_H
#define LAUNCHD_DAEMON_REPORT_EXPLAIN_OUTPUT_H

struct arena;
struct attempt;
struct plan;
struct text;

/* The directory that the run will make for its logs, in words where it has no name yet; NULL: there
 * will be none. The arena's. */
const char *explain_log_tree(const struct plan *p, struct arena *arena);

/* Adds two lines, "    stdout    ..." and stderr's. */
void explain_streams_text(
	const struct plan *p, unsigned local_rank, const struct attempt *attempt, struct text *out);

/* Adds two members, "stdout":{...},"stderr":{...}. */
void explain_streams_json(
	const struct plan *p, unsigned local_rank, const struct attempt *attempt, struct text *out);

#endif
