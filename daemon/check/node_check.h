/* node_check.h - what the kernel says of this node: memory, disks and clock. */
#ifndef LAUNCHD_DAEMON_CHECK_NODE_CHECK_H
#define LAUNCHD_DAEMON_CHECK_NODE_CHECK_H

struct quick_input;
struct tasks;

/* Adds a task for each but /dev/shm. */
void node_check_add(const struct quick_input *in, struct tasks *all);

/* /dev/shm, of which several GPUs need more. */
void shm_check_add(const struct quick_input *in, struct tasks *all, unsigned gpus);

#endif
