/* json_parts.h - what the report and the events have in common as JSON: members of objects, and the
 * words for causes and ends. Pure. A member has no comma. */
#ifndef LAUNCHD_DAEMON_REPORT_JSON_PARTS_H
#define LAUNCHD_DAEMON_REPORT_JSON_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/ending.h"

struct text;
struct vec;

const char *json_bool(bool b);

/* "failure", "signal", ... */
const char *json_cause_word(enum cause_kind kind);

/* "exit", "signal", "not_startable", "not_started" */
const char *json_how_word(enum how how);

void json_add_string(struct text *out, const char *key, const char *value);

/* A number, or null where it is not known. */
void json_add_number(struct text *out, const char *key, bool known, long long value);

/* Seconds between two moments with six decimals, or null where one of them is 0: not known. */
void json_add_seconds(struct text *out, const char *key, uint64_t from_ns, uint64_t to_ns);

void json_add_words(struct text *out, const char *key, const struct vec *words);

/* "sender":{"pid":...,"uid":...,"command":...,"kernel":...}, or null where nothing is known. */
void json_add_sender(struct text *out, const struct sender *s);

/* exit_code, signal, error, core_dumped and oom of an outcome. */
void json_add_ending(struct text *out, const struct outcome *o);

#endif
