/* job_view.h - how a job is, for people: what "status" of launchd-control(7) answers, as text.
 * Pure. */
#ifndef LAUNCHD_DAEMON_CTL_JOB_VIEW_H
#define LAUNCHD_DAEMON_CTL_JOB_VIEW_H

#include <stddef.h>

#include "daemon/report/cjson.h"

struct arena;
struct columns;
struct text;

/* The whole status at a time of day (seconds since 1970), in lines of at most width characters; 0:
 * of any length. */
void job_view_status(const struct cjson *c, const cJSON *status, double now, size_t width,
	struct arena *arena, struct text *out);

/* The cells of `launchctl list`: first the head, then a job's. */
void job_view_head(struct columns *c);
void job_view_row(const struct cjson *c, const cJSON *status, double now, const char *user,
	struct columns *to);

#endif
