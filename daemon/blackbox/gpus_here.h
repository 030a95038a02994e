/* gpus_here.h - whether NVIDIA's driver is on this machine, by its device file: does not ask it. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_GPUS_HERE_H
#define LAUNCHD_DAEMON_BLACKBOX_GPUS_HERE_H

#include <stdbool.h>

bool gpus_here(void);

#endif
