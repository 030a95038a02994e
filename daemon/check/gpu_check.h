/* gpu_check.h - what NVML says of the GPUs: one task asks the driver, then one for each GPU. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_CHECK_H
#define LAUNCHD_DAEMON_CHECK_GPU_CHECK_H

struct findings;
struct quick_input;
struct tasks;

/* Adds the first of them. */
void gpu_check_add(const struct quick_input *in, struct tasks *all);

/* After they are done, from their answers: count, models, UUIDs and Xids, and what a GPU that
 * stopped answering did not get to. */
void gpu_check_sum_up(const struct quick_input *in, const struct tasks *all, struct findings *ret);

#endif
