/* devices.h - lists of GPUs as CUDA_VISIBLE_DEVICES has them: "0,2", "GPU-aaaa,GPU-bbbb". Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_DEVICES_H
#define LAUNCHD_DAEMON_FACTS_DEVICES_H

#include "daemon/facts/machine.h"

struct arena;

#define CUDA_DEVICES "CUDA_VISIBLE_DEVICES"
#define HIP_DEVICES  "HIP_VISIBLE_DEVICES"
#define ROCR_DEVICES "ROCR_VISIBLE_DEVICES"
#define ZE_DEVICES   "ZE_AFFINITY_MASK"

/* CUDA numbers GPUs by speed, the fastest first, and not as NVML and the PCI bus do, unless this
 * says PCI_BUS_ID: where GPUs are of several models a number is not NVML's. */
#define CUDA_ORDER "CUDA_DEVICE_ORDER"

/* order: what CUDA_ORDER says; NULL: it is not set. */
bool devices_are_by_bus(const char *order);

/* By which variable programs choose their GPUs, and what it says. */
struct device_list {
	enum gpu_maker maker; /* whose programs read it */
	const char *variable;
	const char *list; /* its value, borrowed; NULL: not set, so that all are visible */
	/* ROCR_VISIBLE_DEVICES, borrowed: ROCm's runtime hides all others, and HIP's numbers count
	 * those that are left; NULL: not set */
	const char *outer;
};

/* As for torchrun that is HIP_VISIBLE_DEVICES (ROCm), where it is set and not empty, else
 * CUDA_VISIBLE_DEVICES, which HIP obeys, too. ZE_AFFINITY_MASK counts where Intel's GPUs are here,
 * or none of the others is set. Where nothing is set the maker of what is here decides. */
struct device_list devices_find(const char *const *env, enum gpu_maker here);

/* How many entries a list has, whatever they name; an empty one ends it, and -1, as for CUDA and
 * HIP. */
unsigned devices_count(const char *list);

/* The n-th entry, from 0, without blanks around it, the arena's; NULL where the list has fewer. */
const char *devices_nth(struct arena *arena, const char *list, unsigned n);

/* Of `present` devices, how many CUDA shows with this CUDA_VISIBLE_DEVICES (NULL: not set): the
 * list ends at its first entry that isn't a device, and a repeated one empties it, as in torch's
 * device_count(). Names (GPU-..., MIG-...) count one each. */
unsigned devices_visible(const char *list, unsigned present);

#endif
