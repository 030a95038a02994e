/* run_merge.h - --merge-logs: lines between the output thread and the nodes. */
#ifndef LAUNCHD_DAEMON_RUN_RUN_MERGE_H
#define LAUNCHD_DAEMON_RUN_RUN_MERGE_H

#include <stddef.h>

struct run;

void run_merge_init(struct run *r);
void run_merge_close(struct run *r);

/* An attempt starts; the last one is over, when the state says so. */
void run_merge_start(struct run *r);
void run_merge_last(struct run *r);

/* The output thread has lines or has taken some, or the member has room or takes none any more.
 * `run` is a struct run, here and below: for struct output_events and struct member_events. */
void run_merge_lines(void *run);

/* Another node's, on node rank 0. */
void run_merge_hear(void *run, unsigned node, int stream, const char *at, size_t len);

#endif
