/* nvidia.h - what the kernel shows of NVIDIA's driver and GPUs. It never asks the driver.
 *
 * /dev/nvidiactl shows neither: where no driver is, NVML makes that file itself, if it may. */
#ifndef LAUNCHD_DAEMON_OS_NVIDIA_H
#define LAUNCHD_DAEMON_OS_NVIDIA_H

#include <stdbool.h>

struct nvidia_seen {
	bool driver; /* it is loaded; containers of this machine see that, too */
	bool nodes;  /* GPUs have device files here: /dev/nvidia0 */
	bool idle;   /* the PCI bus has a GPU of NVIDIA's that no driver uses */
};

/* root: "" but in tests. */
void nvidia_look(const char *root, struct nvidia_seen *ret);

/* Whether this process can use GPUs of NVIDIA's: a container without any has no device files. */
bool nvidia_gpus_here(void);

/* Where neither driver nor GPU is, takes the right to make device files from this process, which
 * is about to call NVIDIA's libraries and ends afterwards. */
void nvidia_make_no_nodes(void);

#endif
