/* finding_read.h - the JSON of findings, read back: one node's findings on another one. */
#ifndef LAUNCHD_DAEMON_CHECK_FINDING_READ_H
#define LAUNCHD_DAEMON_CHECK_FINDING_READ_H

#include <stddef.h>

struct failure;
struct findings;

/* Replaces *ret by what findings_json() wrote; members that are not known are skipped. -EINVAL: it
 * is no such JSON; errors of cjson_open(). *ret is untouched then. */
int findings_parse(const char *json, size_t len, struct findings *ret, struct failure *why);

#endif
