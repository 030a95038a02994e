/* machine_read.h - reads the machine by hwloc, which is loaded for that call only. */
#ifndef LAUNCHD_DAEMON_FACTS_MACHINE_READ_H
#define LAUNCHD_DAEMON_FACTS_MACHINE_READ_H

#include <stdbool.h>

struct arena;
struct dlib;
struct failure;
struct machine;
struct settings;

extern const struct dlib hwloc_library;

/* The setting that needs to know the machine, for sentences: "--bind"; NULL: none does. */
const char *machine_is_needed(const struct settings *s);

/* Whether that includes its GPUs and network devices. A virtual machine takes 1 ms for each device
 * on PCI. */
bool machine_devices_are_needed(const struct settings *s);

/* Reads it; mpirun's mask has been taken off this process before. HWLOC_XMLFILE and HWLOC_SYNTHETIC
 * show another machine: it is read instead, all of it usable. devices: with GPUs and network
 * devices, else there are none. -ELIBACC, -ELIBBAD: there is no hwloc, or an unknown one; -EIO: it
 * finds nothing. */
int machine_read(bool devices, struct arena *arena, struct machine *ret, struct failure *why);

#endif
