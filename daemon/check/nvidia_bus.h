/* nvidia_bus.h - GPUs of NVIDIA's as the kernel has them on the PCI bus, for NVML's word to be held
 * against. */
#ifndef LAUNCHD_DAEMON_CHECK_NVIDIA_BUS_H
#define LAUNCHD_DAEMON_CHECK_NVIDIA_BUS_H

#include <stdint.h>

struct nvidia_bus {
	unsigned present; /* of class 03xx */
	unsigned bound;   /* of them: NVIDIA's driver has them */
	unsigned idle;    /* no driver has them. The others are a virtual machine's, or nouveau's */
	uint64_t nodes;   /* the device files that are here, by number: /dev/nvidia0 */
};

/* root: "" but in tests. Asks no driver. */
void nvidia_bus_look(const char *root, struct nvidia_bus *ret);

/* How many of the bound ones this process may open, going by their device files: a container's
 * cgroup may deny what is there. Opens them, which may hang with the driver. */
unsigned nvidia_bus_usable(const char *root, const struct nvidia_bus *bus);

#endif
