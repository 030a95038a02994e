/* machine_fixture.h - models of machines with GPUs and NICs at chosen places. */
#ifndef LAUNCHD_TESTS_UNIT_MACHINE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_MACHINE_FIXTURE_H

#include "daemon/facts/machine.h"

struct arena;

/* So many of each within the one before; each NUMA node has 64 GiB and an L3 cache. Hardware
 * threads are numbered as Linux does it on Intel's: all first ones, then all second ones. */
struct machine machine_make(
	struct arena *a, unsigned packages, unsigned numas, unsigned cores, unsigned threads);

/* Adds a GPU of NVIDIA's, or a port; `bus` tells apart what NICs are close to: the distance is 1
 * where it is the same, 100 in the same NUMA node, else 1000. */
void machine_add_gpu(struct machine *m, struct arena *a, int numa, const char *bus);
void machine_add_nic(struct machine *m, struct arena *a, int numa, const char *bus,
	const char *device, const char *net, bool up);

#endif
