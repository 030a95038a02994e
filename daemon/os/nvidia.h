/* nvidia.h - what the kernel shows of NVIDIA's driver and GPUs. Only nvidia_usable() asks the
 * driver.
 *
 * /dev/nvidiactl shows neither: where no driver is, NVML makes that file itself, if it may. */
#ifndef LAUNCHD_DAEMON_OS_NVIDIA_H
#define LAUNCHD_DAEMON_OS_NVIDIA_H

#include <stdbool.h>
#include <stdint.h>

struct nvidia_seen {
	bool driver;      /* it is loaded; containers of this machine see that, too */
	bool nodes;       /* GPUs have device files here: /dev/nvidia0 */
	uint64_t numbers; /* theirs, those below 64: bit 0 for /dev/nvidia0 */
	unsigned present; /* GPUs of NVIDIA's on the PCI bus */
	unsigned bound;   /* of them: NVIDIA's driver has them */
	unsigned idle;    /* no driver has them. The others are a virtual machine's, or nouveau's */
};

/* root: "" but in tests. */
void nvidia_look(const char *root, struct nvidia_seen *ret);

/* How many of the bound ones this process may open, going by their device files: a container's
 * cgroup may deny what is there. Opens them, which may hang with the driver. */
unsigned nvidia_usable(const char *root, const struct nvidia_seen *seen);

/* Whether this process can use GPUs of NVIDIA's: a container without any has no device files. */
bool nvidia_gpus_here(void);

/* Where neither driver nor GPU is, takes the right to make device files from this process, which
 * is about to call NVIDIA's libraries and ends afterwards. */
void nvidia_make_no_nodes(void);

#endif
