/* columns.h - a table for people: columns as wide as what stands in them. Pure. */
#ifndef LAUNCHD_DAEMON_CTL_COLUMNS_H
#define LAUNCHD_DAEMON_CTL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"

struct text;

enum { COLUMNS_MAX = 12 };

struct columns {
	struct arena *arena;
	unsigned count;      /* of columns */
	const char **cells;  /* row by row; the first row is the head */
	size_t filled, room; /* cells */
};

/* Adds the next cell, which is copied; NULL is "-". */
void columns_add(struct columns *c, const char *cell);

/* The last column is cut where a line would be longer than width; 0: nothing is cut. What a
 * terminal would obey is shown (text_add_shown()). */
void columns_print(const struct columns *c, size_t width, struct text *out);

#endif
