/* outcome_json.h - what the report and the events have in common as JSON: the words for causes and
 * ends, and members of objects. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_OUTCOME_JSON_H
#define LAUNCHD_DAEMON_REPORT_OUTCOME_JSON_H

#include <stdint.h>

#include "daemon/job/ending.h"

struct json;

/* "failure", "signal", ... */
const char *json_cause_word(enum cause_kind kind);

/* "exit", "signal", "not_startable", "sent_signal", "not_started" */
const char *json_how_word(enum how how);

/* Seconds between two moments with six decimals, or null where one of them is 0: not known. */
void json_seconds(struct json *j, const char *key, uint64_t from_ns, uint64_t to_ns);

/* A signal's name, or null of 0. */
void json_signal(struct json *j, const char *key, int signal);

/* "sender":{"pid":...,"uid":...,"command":...,"kernel":...}, or null where nothing is known. */
void json_sender(struct json *j, const struct sender *s);

/* "exclude":["gpu07","gpu12"] of "gpu07,gpu12", or null of NULL: no node is bad. */
void json_exclude(struct json *j, const char *exclude);

/* exit_code, signal, error, core_dumped and oom of an outcome. */
void json_ending(struct json *j, const struct outcome *o);

/* ended_by_launchd, killed_by_launchd and asked_signal. */
void json_asked(struct json *j, const struct outcome *o);

#endif
