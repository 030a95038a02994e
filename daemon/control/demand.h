/* demand.h - one line of the control socket's clients, read. Pure. */
#ifndef LAUNCHD_DAEMON_CONTROL_DEMAND_H
#define LAUNCHD_DAEMON_CONTROL_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/notes.h"
#include "daemon/control/protocol.h"

struct cjson;
struct text;

/* So many find room in a line. */
enum { DEMAND_RANKS_MAX = CONTROL_LINE_MAX / 2 };

struct demand {
	int64_t id;
	bool has_id; /* also where the rest of the line is wrong */
	enum control_op op;
	bool now, all_nodes;
	bool has_level;
	enum note_level level;
	int signal;
	unsigned rank, lines;
	bool has_ranks; /* else all are meant */
	size_t rank_count;
	unsigned ranks[DEMAND_RANKS_MAX];
};

/* Reads len bytes of a line without its newline; line[len] may be written. Not CONTROL_OK: why is a
 * sentence. */
enum control_error demand_read(
	const struct cjson *c, char *line, size_t len, struct demand *ret, struct text *why);

/* How an error is called on the socket. */
const char *control_error_name(enum control_error e);

/* How a level is called there, and by its name; false: there is none of that name. */
const char *control_level_name(enum note_level level);
bool control_level_find(const char *name, enum note_level *ret);

#endif
