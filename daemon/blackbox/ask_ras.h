/* ask_ras.h - a source of the black box: what NCCL itself knows of its communicators. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_RAS_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_RAS_H

struct source_input;
struct task_answer;

/* Asks at each address that workers have in NCCL_RAS_ADDR. Leaves nccl-ras.txt. Where nobody
 * listens it says nothing, but on a machine that has GPUs. */
void ask_ras(const struct source_input *in, struct task_answer *a);

#endif
