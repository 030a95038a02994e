/* explain_bundle.h - --explain: the story of a failure, from the files that --blackbox has left. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_EXPLAIN_BUNDLE_H
#define LAUNCHD_DAEMON_BLACKBOX_EXPLAIN_BUNDLE_H

struct arena;
struct failure;
struct text;

/* Adds the story. path: a failure's directory, a node's in it, or a file index.json or bundle.json;
 * or a directory below which failures are: then it is the newest one's, and the first line says
 * which. chosen_by: why it is this path, where the user has named none; NULL: the user has.
 * -EINVAL, or another negative errno: why names the file and what is wrong with it. */
int explain_bundle(const char *path, const char *chosen_by, struct arena *arena, struct text *out,
	struct failure *why);

#endif
