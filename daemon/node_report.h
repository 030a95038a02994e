/* node_report.h - --check-node: the quick check of this node, for people and programs. */
#ifndef LAUNCHD_DAEMON_NODE_REPORT_H
#define LAUNCHD_DAEMON_NODE_REPORT_H

struct arena;
struct failure;
struct settings;
struct text;

/* Looks, which takes as long as quick_check() may, and adds what it found in the form that is asked
 * for. 1: the node is bad; 0: it isn't; errors of quick_input_make() and quick_check(). */
int node_report(const struct settings *s, const char *const *env, struct arena *arena,
	struct text *out, struct failure *why);

#endif
