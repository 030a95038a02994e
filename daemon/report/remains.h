/* remains.h - the report's part about processes that outlived their worker, or launchd. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_REMAINS_H
#define LAUNCHD_DAEMON_REPORT_REMAINS_H

#include <stdbool.h>

struct report_input;
struct text;

/* Adds a line for workers that left equally many processes behind, then one for those that can't be
 * told apart, then one for each process that could not be ended. worst_only: nothing about those
 * that ended after SIGTERM, and a warning about the rest. */
void remains_add(const struct report_input *in, bool worst_only, struct text *out);

#endif
