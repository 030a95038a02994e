/* nodes.h - the report's words about the nodes of the job. On one node there are none but the
 * host's name. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_NODES_H
#define LAUNCHD_DAEMON_REPORT_NODES_H

#include <stdbool.h>
#include <stddef.h>

struct outcome;
struct report_input;
struct result;
struct text;

/* Whether it tells of several nodes. */
bool result_is_jobwide(const struct result *r);

/* A node as outcomes, causes and survivors name it, as the user knows it: on one node what they say
 * does not count. */
unsigned node_rank_of(const struct report_input *in, unsigned node);

/* Its host's name; "": not known. */
const char *node_name_of(const struct report_input *in, unsigned node);

/* Whether its workers' ends can't be known: it was lost, or never joined. */
bool node_is_silent(const struct report_input *in, unsigned node);

/* "node 2 (gpu03)"; "node 2" */
void node_add(const struct report_input *in, unsigned node, struct text *out);

/* " on gpu03 (node 2)"; " on node 2" */
void host_add(const struct report_input *in, unsigned node, struct text *out);

/* The rank of the node where the cause came in, and its host as above: it may be another launcher
 * that has told of it. */
unsigned cause_node_of(const struct report_input *in);
void cause_host_add(const struct report_input *in, struct text *out);

/* Where workers, in order of rank, are: " (node 2, gpu03)", " (nodes 0, 2-5)". Nothing on one node.
 * The number of nodes, 1 on one node. */
size_t nodes_of_add(const struct report_input *in, const struct outcome *const *list, size_t count,
	struct text *out);

/* The whole of "rank 3 (local rank 1, pid 4711) on gpu03 (node 2)", "ranks 8-15 (node 1, gpu07)".
 * Returns the number of nodes. */
size_t workers_add(const struct report_input *in, const struct outcome *const *list, size_t count,
	struct text *out);

/* Adds the lines about nodes that were lost, but for the one that ended the job, and about those
 * that never joined. */
void nodes_missing_add(const struct report_input *in, struct text *out);

/* Adds the line about ranks that had not joined the store. */
void waiting_add(const struct report_input *in, struct text *out);

/* "root cause: rank 3 (local rank 1, pid 4711) on gpu07 (node 1): exit code 1 after 12.3 s"; of a
 * result whose cause is a failure. */
void culprit_add(const struct report_input *in, struct text *out);

#endif
