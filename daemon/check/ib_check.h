/* ib_check.h - InfiniBand and RoCE ports, as sysfs has them. */
#ifndef LAUNCHD_DAEMON_CHECK_IB_CHECK_H
#define LAUNCHD_DAEMON_CHECK_IB_CHECK_H

#include <stdbool.h>

struct quick_input;
struct tasks;

void ib_check_add(const struct quick_input *in, struct tasks *all);

/* Whether the node has such a device at all. */
bool ib_is_there(const struct quick_input *in);

#endif
