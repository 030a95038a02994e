/* devices.h - lists of GPUs as CUDA_VISIBLE_DEVICES has them: "0,2", "GPU-aaaa,GPU-bbbb". Pure. */
#ifndef LAUNCHD_DAEMON_FACTS_DEVICES_H
#define LAUNCHD_DAEMON_FACTS_DEVICES_H

struct arena;

/* The variable of env that has the list: as for torchrun that is HIP_VISIBLE_DEVICES (ROCm), where
 * it is set and not empty, else CUDA_VISIBLE_DEVICES. *ret_list is its value, borrowed; NULL: not
 * set. */
const char *devices_variable(const char *const *env, const char **ret_list);

/* How many entries a list has, whatever they name; an empty one ends it, as it does for CUDA. */
unsigned devices_count(const char *list);

/* The n-th entry, from 0, without blanks around it, the arena's; NULL where the list has fewer. */
const char *devices_nth(struct arena *arena, const char *list, unsigned n);

/* Of `present` devices, how many CUDA shows with this CUDA_VISIBLE_DEVICES (NULL: not set): the
 * list ends at its first entry that isn't a device, and a repeated one empties it, as in torch's
 * device_count(). Names (GPU-..., MIG-...) count one each. */
unsigned devices_visible(const char *list, unsigned present);

#endif
