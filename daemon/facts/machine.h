/* machine.h - the machine as placement needs it: CPUs, memory, GPUs and network devices, and which
 * of them lie close together. Pure: facts/machine_read.h reads it.
 *
 * Parts of the machine are numbered from 0 in the order of the topology, and refer to one another
 * by these numbers; the kernel's own stand beside them. All memory is the arena's that it was read
 * into.
 */
#ifndef LAUNCHD_DAEMON_FACTS_MACHINE_H
#define LAUNCHD_DAEMON_FACTS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE_NOWHERE = -1 }; /* a part whose place isn't known */

/* What the kernel calls a CPU: a hardware thread. Those of one core stand together. */
struct machine_cpu {
	unsigned number; /* the kernel's */
	int core, l3, numa, package;
	bool usable; /* by this process: in its cpuset, and in its mask with mpirun's taken off */
};

/* Has memory; may have no CPU (Grace's GPUs, CXL). */
struct machine_numa {
	unsigned number; /* the kernel's */
	int package;
	uint64_t memory_bytes; /* 0: not known */
	bool usable;           /* in the cpuset of memory */
	bool has_cpus;
};

enum gpu_maker { GPU_NVIDIA, GPU_AMD, GPU_INTEL, GPU_MAKERS };

enum { GPU_HIDDEN = 0xffff };

struct machine_gpu {
	enum gpu_maker maker;
	/* as its maker's tools number those of one maker: by PCI address; GPU_HIDDEN: they don't,
	 * as this container may not use it */
	unsigned index;
	const char *bus;  /* "0000:3b:00.0" */
	const char *name; /* "NVIDIA H100 80GB HBM3"; NULL: not known */
	const char *uuid; /* "GPU-..."; NULL: not known */
	int numa;         /* the closest that has CPUs */
};

/* A port of an InfiniBand or RoCE device, or an interface without one. */
struct machine_nic {
	const char *device; /* "mlx5_0"; NULL: none */
	unsigned port;      /* of the device; 0: none */
	const char *net;    /* "ib0", "eth0"; NULL: none */
	const char *bus;
	int numa;
	bool up;
};

struct machine {
	struct machine_cpu *cpus;
	struct machine_numa *numas;
	struct machine_gpu *gpus;
	struct machine_nic *nics;
	size_t cpu_count, numa_count, gpu_count, nic_count;
	unsigned core_count, l3_count, package_count;
	/* gpu_count x nic_count: how far apart, in PCI bridges between them; beyond a host bridge
	 * more than anything below one, and beyond a NUMA node still more */
	const unsigned *gpu_nic_distance;
	/* numa_count x numa_count as the firmware tells; NULL: not known */
	const unsigned *numa_distance;
	uint64_t quota; /* of the cgroups that this process is in, in thousandths of a CPU; 0: none
			 */
	const char *from;  /* "hwloc 2.9.0", "hwloc 2.9.0, /tmp/dgx.xml" */
	int memory_error;  /* why set_mempolicy(2) is refused here; 0: it isn't */
	bool devices_read; /* else nobody asked for GPUs and NICs, and it has none here */
	bool is_this;      /* not one that HWLOC_XMLFILE or HWLOC_SYNTHETIC shows in its place */
};

#endif
