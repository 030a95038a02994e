/* explain.h - the plan in print, for --dry-run. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_EXPLAIN_H
#define LAUNCHD_DAEMON_REPORT_EXPLAIN_H

struct arena;
struct control;
struct facts;
struct notes;
struct plan;
struct settings;
struct text;
struct topology;

/* Of the JSON, here and in explain_head.c: increases when the meaning of a name changes. */
#define EXPLAIN_SCHEMA 2

/* All that was decided, with its sources. */
struct explained {
	const struct settings *settings;
	const struct facts *facts;
	const struct topology *topology;
	const struct plan *plan;
	const struct notes *notes;
	const char *key; /* the job's: a file, or LAUNCHD_KEY; NULL: none, or it comes by PMIx */
};

/* Adds the plan for people, or as one JSON object (schema: launchd(1), DRY RUN). */
void explain_text(const struct explained *e, struct arena *arena, struct text *out);
void explain_json(const struct explained *e, struct arena *arena, struct text *out);

/* Where the launchers meet: "10.0.0.4:29501", "[fe80::1]:29501", "by PMIx", "none". */
const char *explain_control(const struct control *c, struct arena *arena);

#endif
