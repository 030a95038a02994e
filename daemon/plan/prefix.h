/* prefix.h - what stands before a worker's lines: torchrun's macros, and some more. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_PREFIX_H
#define LAUNCHD_DAEMON_PLAN_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

enum { PREFIX_MAX = 4096 }; /* bytes before a line */

/* The names that a template may have. */
#define PREFIX_NAMES "role_name|local_rank|rank|hostname|node_rank|stream|time"

struct prefix_values {
	const char *role_name, *hostname;
	unsigned local_rank, rank, node_rank;
	int fd;          /* ${stream}: 1 is stdout, 2 is stderr */
	int64_t wall_ns; /* ${time}, since 1970 */
};

/* Replaces out by the template with the values of role_name, local_rank, rank, hostname, node_rank,
 * stream and time; see common/template.h for what a template is. What is longer than
 * PREFIX_MAX is cut there, between characters. -ENOMEM: out is empty. */
int prefix_render(const char *template, const struct prefix_values *v, struct text *out);

/* It says ${time}: it is to be rendered anew as time goes by. */
bool prefix_has_time(const char *template);

enum { PREFIX_TIME_SIZE = 25 };

/* "2026-11-21T07:00:12.345Z"; any time that 64 bits can hold has its year in four digits. */
void prefix_time(int64_t wall_ns, char ret[PREFIX_TIME_SIZE]);

#endif
