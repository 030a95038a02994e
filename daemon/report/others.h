/* others.h - the report's part about the workers that are not the culprit. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_OTHERS_H
#define LAUNCHD_DAEMON_REPORT_OTHERS_H

#include <stdbool.h>

struct outcome;
struct report_input;
struct result;
struct text;

/* Adds a line for each other worker: first those that failed together with the culprit, then those
 * that failed by themselves after it, those that died of a lost peer, then the rest. Three
 * and more with the same story share a line; of more than 16 two do, too. */
void others_add(const struct report_input *in, struct text *out);

/* Whether the plan wanted it at all: --only-rank starts one of them. */
bool worker_is_planned(const struct report_input *in, const struct outcome *o);

/* Whether it may be the cause as well as the culprit: it failed at the same time. */
bool worker_is_together(const struct result *r, const struct outcome *o);

#endif
