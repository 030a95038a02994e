/* ask_gpus.h - sources of the black box: what NVML says of this node's GPUs. Nothing where there is
 * no driver of NVIDIA's. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_GPUS_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_GPUS_H

#include <stdbool.h>

struct source_input;
struct task_answer;

/* Memory, processes, power, clocks and errors of each. Leaves gpus.txt. */
void ask_gpus(const struct source_input *in, struct task_answer *a);

bool has_xids(const struct source_input *in);

/* The Xids that were seen since the job began. */
void ask_xids(const struct source_input *in, struct task_answer *a);

#endif
