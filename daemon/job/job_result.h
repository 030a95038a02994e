/* job_result.h - what the nodes' parts of an attempt come to, on node rank 0's clock. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_JOB_RESULT_H
#define LAUNCHD_DAEMON_JOB_JOB_RESULT_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct cause;
struct job;
struct node_end;
struct outcome;

/* Keeps what a node tells of its end. Where there is no memory its outcomes are missing. */
void job_keep_end(struct job *j, unsigned node, const struct node_end *end, struct arena *arena);

/* Whether all its workers have ended with 0, and nothing else ended it. */
bool job_end_is_well(const struct node_end *end);

/* Brings the time of a node to our clock; 0 stays 0. */
uint64_t job_our_ns(const struct job *j, unsigned node, uint64_t node_ns);

/* An outcome as the node tells it, with its times brought to our clock. */
struct outcome job_our_outcome(const struct job *j, unsigned node, const struct outcome *o);

/* Fills j->result from what all nodes have told. */
void job_make_result(struct job *j, uint64_t now_ns, struct arena *arena);

#endif
