/* box_parts.h - what is known, as the parts of a bundle. Nothing here waits. */
#ifndef LAUNCHD_DAEMON_RUN_BOX_PARTS_H
#define LAUNCHD_DAEMON_RUN_BOX_PARTS_H

struct arena;
struct black_box;
struct bundle;
struct bundle_index;
struct job_end;
struct text;

/* This node's part, of the box that is being taken. What it returns is the arena's or the box'. */
void box_bundle(const struct black_box *b, struct arena *arena, struct bundle *ret);

/* The whole job's; on node rank 0, which has the end's result. */
void box_index(const struct black_box *b, const struct job_end *end, struct arena *arena,
	struct bundle_index *ret);

/* Adds what a node has found, in a line. */
void box_summary(const struct bundle *b, struct text *out);

#endif
