/* said.h - the report's words about what the culprit itself says: its exception, the lines that it
 * wrote last, and where its log is. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_SAID_H
#define LAUNCHD_DAEMON_REPORT_SAID_H

struct json;
struct report_input;
struct text;

/* Adds the lines of the report, none where the culprit says nothing. */
void said_add(const struct report_input *in, struct text *out);

/* The lines that the culprit wrote last, as many as the report shows; NULL: not known. The arena's.
 */
const char *said_last_lines(const struct report_input *in);

/* Adds the line of its log; level: "error", "warning". Nothing if it has none. */
void said_add_log(const struct report_input *in, const char *level, struct text *out);

/* Adds the last lines and the log as members of a JSON object. */
void said_add_json(const struct report_input *in, struct json *j);

#endif
