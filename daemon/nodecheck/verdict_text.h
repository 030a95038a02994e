/* verdict_text.h - what launchd-nodecheck prints in the end: a table or one JSON document. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_VERDICT_TEXT_H
#define LAUNCHD_DAEMON_NODECHECK_VERDICT_TEXT_H

struct check_case;
struct findings;
struct text;

enum nodecheck_exit {
	NODECHECK_GOOD = 0, /* or unknown, which is said */
	NODECHECK_FAILED = 1,
	NODECHECK_USAGE = 2,
	NODECHECK_BAD = 3, /* a node, or a link that no node can be blamed for */
	NODECHECK_NO_GPU = 4,
};

enum nodecheck_exit verdict_exit(const struct check_case *c);

/* A line for each node, what isn't good, and the verdict. room: for the findings of one node. */
void verdict_table(const struct check_case *c, struct findings *room, struct text *out);
void verdict_json(const struct check_case *c, struct findings *room, struct text *out);

#endif
