/* explain_head.h - mpirun's command in print, for --dry-run with --mpirun-hosts. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_EXPLAIN_HEAD_H
#define LAUNCHD_DAEMON_REPORT_EXPLAIN_HEAD_H

struct arena;
struct head_plan;
struct hosts;
struct notes;
struct settings;
struct text;

struct explained_head {
	const struct settings *settings;
	const struct hosts *hosts;
	const char *hosts_from;
	const struct head_plan *plan;
	const struct notes *notes;
};

/* Adds it for people, the command quoted for a shell, or as one JSON object (schema: launchd(1),
 * DRY RUN). */
void explain_head_text(const struct explained_head *e, struct arena *arena, struct text *out);
void explain_head_json(const struct explained_head *e, struct arena *arena, struct text *out);

#endif
