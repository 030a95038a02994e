/* picture.h - the machine and where workers run on it, for people and programs. Pure.
 *
 * As text it is ASCII and at most PICTURE_WIDTH columns wide, but for names that are longer
 * themselves; parts that are alike are ranges, so that 256 CPUs are a few lines. */
#ifndef LAUNCHD_DAEMON_PLACE_PICTURE_H
#define LAUNCHD_DAEMON_PLACE_PICTURE_H

#include <stdbool.h>

struct arena;
struct bits;
struct json;
struct machine;
struct placement;
struct vec;

enum { PICTURE_WIDTH = 100 };

struct picture {
	const struct machine *machine;
	const struct placement *placement; /* of all workers of this node */
	const int *gpus_of;                /* of each, per_worker each; or MACHINE_NOWHERE */
	unsigned per_worker;
	unsigned first_rank;
	bool ranks_known;                  /* else local ranks are shown */
	unsigned start_first, start_count; /* the local ranks that run here */
};

/* Adds the lines, without newlines; the arena's. */
void picture_lines(const struct picture *p, struct arena *arena, struct vec *ret);

/* Writes the members "machine" and "workers" of an open object, then "picture" with the lines. */
void picture_json(const struct picture *p, struct arena *arena, struct json *j);

/* A set of CPUs in at most so many columns, if its beginning is enough: "0-63,128-191", "0-126 in
 * steps of 2", "0,3,4,7,... (64 CPUs)". */
const char *picture_cpus(const struct bits *cpus, struct arena *arena);

#endif
