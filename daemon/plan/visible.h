/* visible.h - which GPUs the workers of this node see, and which of them are each one's own: by
 * --gpus, --gpus-per-worker, --visible-devices, --share-gpus. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_VISIBLE_H
#define LAUNCHD_DAEMON_PLAN_VISIBLE_H

#include <stdbool.h>

#include "common/vec.h"
#include "daemon/facts/devices.h"

struct arena;
struct failure;
struct gpus;
struct machine;
struct settings;

/* The choices of --visible-devices. */
enum visible_how { VISIBLE_KEEP, VISIBLE_ONE, VISIBLE_NONE };

struct visible {
	enum visible_how how;
	struct device_list own; /* what the launcher was given */
	struct vec list;        /* all for this node's workers, as own.variable takes them */
	bool known;             /* the list has them all; else a worker's number is its device */
	bool chosen;            /* by --gpus, so workers are told */
	bool asked;             /* the user asks for GPUs, so that there must be enough */
	bool share;
	bool by_bus;         /* CUDA_DEVICE_ORDER=PCI_BUS_ID: CUDA's numbers are NVML's */
	unsigned per_worker; /* at least 1 */
	const char *from;    /* what decides what workers see */
	const char *list_from;
};

/* Decides from settings, the launcher's environment and what NVML knows (which may be nothing).
 * Memory is the settings' arena's. -EINVAL: --gpus names what the launcher doesn't see. */
int visible_choose(const struct settings *s, const char *const *env, const struct gpus *gpus,
	struct visible *ret, struct failure *why);

/* Whether there are enough for so many workers, where that is known. -EINVAL: there aren't, or they
 * are to be shared and nobody knows how many there are. */
int visible_check(
	const struct settings *s, const struct visible *v, unsigned workers, struct failure *why);

/* For --nproc_per_node gpu: as many workers as the GPUs that are known suffice for. */
unsigned visible_workers(const struct visible *v);

/* The n-th of a worker's own devices, n below per_worker, as the variable takes it; the arena's. */
const char *visible_device(
	const struct visible *v, unsigned local_rank, unsigned n, struct arena *arena);

/* Whether that is one of those that are known to be there, or nobody knows which are. */
bool visible_is_there(const struct visible *v, unsigned local_rank, unsigned n);

/* All of a worker's own, as the variable takes them: "2", "4,5". */
const char *visible_own(const struct visible *v, unsigned local_rank, struct arena *arena);

/* All that this node's workers may see: "0,2,4". */
const char *visible_all(const struct visible *v, struct arena *arena);

/* Which GPU of the machine a device is, once that has the numbers and names of NVML (gpus_name());
 * MACHINE_NOWHERE: that isn't known. */
int visible_gpu(const struct visible *v, const struct machine *m, const char *device);

#endif
