/* hwloc_calls.h - the functions of hwloc that reading a machine takes: it is loaded for that alone,
 * so nothing may call it by name. That includes the functions in hwloc's headers that do so. */
#ifndef LAUNCHD_DAEMON_FACTS_HWLOC_CALLS_H
#define LAUNCHD_DAEMON_FACTS_HWLOC_CALLS_H

#include <hwloc.h>

#include "daemon/facts/machine.h"

struct arena;

struct hwloc_calls {
	__typeof__(hwloc_get_api_version) *api_version;
	__typeof__(hwloc_topology_init) *init;
	__typeof__(hwloc_topology_set_components) *set_components;
	__typeof__(hwloc_topology_set_type_filter) *set_type_filter;
	__typeof__(hwloc_topology_set_icache_types_filter) *set_icache_types_filter;
	__typeof__(hwloc_topology_set_io_types_filter) *set_io_types_filter;
	__typeof__(hwloc_topology_set_flags) *set_flags;
	__typeof__(hwloc_topology_load) *load;
	__typeof__(hwloc_topology_destroy) *destroy;
	__typeof__(hwloc_topology_is_thissystem) *is_thissystem;
	__typeof__(hwloc_get_type_depth) *type_depth;
	__typeof__(hwloc_get_nbobjs_by_depth) *count;
	__typeof__(hwloc_get_obj_by_depth) *object;
	__typeof__(hwloc_topology_get_allowed_cpuset) *allowed_cpuset;
	__typeof__(hwloc_topology_get_allowed_nodeset) *allowed_nodeset;
	__typeof__(hwloc_bitmap_isset) *isset;
	__typeof__(hwloc_bitmap_weight) *weight;
	__typeof__(hwloc_bitmap_first) *first;
	__typeof__(hwloc_distances_get_by_name) *distances;
	__typeof__(hwloc_distances_release) *distances_release;
};

/* A machine that hwloc has read, with its objects. */
struct hwloc_machine {
	const struct hwloc_calls *call;
	hwloc_topology_t topology;
	struct arena *arena;
	struct machine *m; /* CPUs and NUMA nodes are there */
};

/* Adds the GPUs and network devices on PCI, and how far they are from one another. Out of memory:
 * the arena is failed. */
void machine_devices(const struct hwloc_machine *h);

#endif
