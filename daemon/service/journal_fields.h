/* journal_fields.h - launchd's own messages and what happens in a run as entries of systemd's
 * journal, with the fields that launchd(1), JOURNAL lists. Pure. */
#ifndef LAUNCHD_DAEMON_SERVICE_JOURNAL_FIELDS_H
#define LAUNCHD_DAEMON_SERVICE_JOURNAL_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

struct event;
struct text;

/* What all entries have. */
struct journal_frame {
	const char *job_name, *run_id; /* NULL: none */
	bool node_known;
	unsigned node; /* node rank */
	int attempt;   /* -1: none has started */
};

/* Adds a record (common/journal_entry.h) for each line of a text of whole lines: "launchd: level:
 * text", whose level becomes PRIORITY, or a JSON object. One without a level has that of the line
 * before, the first one "note". to_stderr: a line that can't be sent goes there. */
void journal_add_lines(struct text *out, const struct journal_frame *frame, const char *lines,
	size_t len, bool to_stderr);

/* Adds the record of an event, if it is one of those that the journal has. */
void journal_add_event(struct text *out, const struct journal_frame *frame, const struct event *e);

#endif
