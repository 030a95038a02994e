/* nvml.h - NVIDIA's management library, loaded where it is asked. What is needed of its ABI stands
 * here, so that launchd can be built without NVIDIA's header; tests/unit/daemon/check/nvml_abi.c
 * holds it against that header where there is one.
 *
 * Each call may hang with the driver: only a child with a limit may make one. */
#ifndef LAUNCHD_DAEMON_CHECK_NVML_H
#define LAUNCHD_DAEMON_CHECK_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/os/nvml_error.h"

struct failure;

enum {
	NVML_NAME_SIZE = 96,              /* NVML_DEVICE_NAME_V2_BUFFER_SIZE */
	NVML_UUID_SIZE = 96,              /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */
	NVML_VERSION_SIZE = 80,           /* NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE */
	NVML_PROCESSES_MAX = 1024,        /* of one GPU: each takes some 100 MB of it */
	NVML_LINKS_MAX = 36,              /* NVML_NVLINK_MAX_LINKS */
	NVML_UNCORRECTED = 1,             /* NVML_MEMORY_ERROR_TYPE_UNCORRECTED */
	NVML_VOLATILE = 0,                /* NVML_VOLATILE_ECC: since the driver was loaded */
	NVML_ENABLED = 1,                 /* NVML_FEATURE_ENABLED */
	NVML_FIELD_RECOVERY_ACTION = 230, /* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION */
	NVML_EVENT_XID = 8,               /* nvmlEventTypeXidCriticalError */
	NVML_XID_UNKNOWN = 999,
	NVML_VALUE_UINT = 1,     /* NVML_VALUE_TYPE_UNSIGNED_INT */
	NVML_SM_CLOCK = 1,       /* NVML_CLOCK_SM */
	NVML_TENSOR_WORK = 5,    /* NVML_GPM_METRIC_ANY_TENSOR_UTIL, in percent of the time */
	NVML_METRICS_ROOM = 512, /* NVML_GPM_METRIC_MAX at least: it grows with the header */
	NVML_METRICS_VERSION = 1,
};

/* nvmlDeviceGpuRecoveryAction_t */
enum nvml_recovery {
	NVML_RECOVERY_NONE,
	NVML_RECOVERY_GPU_RESET,
	NVML_RECOVERY_NODE_REBOOT,
	NVML_RECOVERY_DRAIN_P2P,
	NVML_RECOVERY_DRAIN_AND_RESET,
	NVML_RECOVERY_IMEX_DOMAIN,
	NVML_RECOVERY_BUS_RESET,
	NVML_RECOVERY_SYSTEM_REBOOT,
	NVML_RECOVERIES,
};

/* NVML_GPU_FABRIC_STATE_* */
enum nvml_fabric_state {
	NVML_FABRIC_NOT_SUPPORTED,
	NVML_FABRIC_NOT_STARTED,
	NVML_FABRIC_IN_PROGRESS,
	NVML_FABRIC_COMPLETED,
};

/* NVML_GPU_FABRIC_HEALTH_MASK_*: where in the mask, and what of it is wrong. */
enum {
	NVML_FABRIC_DEGRADED_SHIFT = 0,
	NVML_FABRIC_RECOVERING_SHIFT = 2,
	NVML_FABRIC_UNHEALTHY_SHIFT = 4,
	NVML_FABRIC_TIMEOUT_SHIFT = 6,
	NVML_FABRIC_CONFIG_SHIFT = 8, /* wider, with a number */
	NVML_FABRIC_BITS = 3,
	NVML_FABRIC_TRUE = 1,
	NVML_FABRIC_CONFIG_BITS = 0xf,
	NVML_FABRIC_CONFIG_RIGHT = 1,
};

/* nvmlGpuFabricInfo_v2_t */
struct nvml_fabric {
	unsigned version; /* NVML_FABRIC_VERSION */
	unsigned char cluster_uuid[16];
	int status; /* of enum nvml_return, where the state is COMPLETED */
	unsigned clique;
	unsigned char state;
	unsigned health_mask;
};
#define NVML_FABRIC_VERSION ((unsigned)sizeof(struct nvml_fabric) | 2u << 24)

/* nvmlPciInfo_t */
struct nvml_pci {
	char bus_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32]; /* "00000000:3B:00.0" */
};

/* nvmlFieldValue_t */
struct nvml_field {
	unsigned id, scope;
	long long timestamp, latency_us;
	int type, status;
	union {
		double d;
		int i;
		unsigned u;
		unsigned long long ull;
	} value;
};

/* nvmlMemory_t, in bytes; its "used" counts what the driver keeps for itself. */
struct nvml_memory {
	unsigned long long total, free, used;
};

/* nvmlMemory_v2_t */
struct nvml_memory_v2 {
	unsigned version; /* NVML_MEMORY_VERSION */
	unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_VERSION ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

#define NVML_NOT_TOLD ~0ull /* NVML_VALUE_NOT_AVAILABLE */

/* nvmlProcessInfo_t */
struct nvml_process {
	unsigned pid;
	unsigned long long used_bytes; /* or NVML_NOT_TOLD */
	unsigned gpu_instance, compute_instance;
};

/* nvmlUtilization_t, in percent of the last second or less */
struct nvml_utilization {
	unsigned gpu, memory;
};

/* nvmlTemperature_v1_t */
struct nvml_temperature {
	unsigned version; /* NVML_TEMPERATURE_VERSION */
	int sensor;       /* 0: the GPU's */
	int celsius;
};
#define NVML_TEMPERATURE_VERSION ((unsigned)sizeof(struct nvml_temperature) | 1u << 24)

/* nvmlEventData_t */
struct nvml_event {
	void *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

/* nvmlGpmMetric_t */
struct nvml_metric {
	unsigned id;
	int status; /* of enum nvml_return */
	double value;
	const char *short_name, *long_name, *unit;
};

/* nvmlGpmMetricsGet_t: what was counted between two samples */
struct nvml_metrics {
	unsigned version, count;
	void *from, *to;
	struct nvml_metric at[NVML_METRICS_ROOM];
};

/* nvmlGpmSupport_t */
struct nvml_metrics_support {
	unsigned version, supported;
};

/* The functions by their ABI names, each of which returns an enum nvml_return. */
struct nvml_api {
	int (*init)(void);
	int (*device_count)(unsigned *);
	int (*device)(unsigned index, void **ret);
	/* NULL: the library is older than they are */
	int (*driver_version)(char *ret, unsigned size);
	int (*name)(void *device, char *ret, unsigned size);
	int (*uuid)(void *device, char *ret, unsigned size);
	int (*pci)(void *device, struct nvml_pci *ret);
	int (*by_uuid)(const char *uuid, void **ret); /* of a MIG device, too */
	int (*whole_of)(void *mig, void **ret);       /* the GPU that a MIG device is a part of */
	int (*fields)(void *device, int count, struct nvml_field *values);
	int (*ecc_errors)(void *device, int type, int counter, unsigned long long *ret);
	int (*remapped_rows)(void *device, unsigned *corrected, unsigned *uncorrected,
		unsigned *pending, unsigned *failed);
	int (*retired_pending)(void *device, int *ret);
	int (*nvlink_state)(void *device, unsigned link, int *ret);
	int (*mig_mode)(void *device, unsigned *ret, unsigned *pending);
	int (*fabric)(void *device, struct nvml_fabric *ret);
	int (*pcie_width)(void *device, unsigned *ret);
	int (*pcie_width_max)(void *device, unsigned *ret);
	int (*memory)(void *device, struct nvml_memory *ret);
	int (*memory_v2)(void *device, struct nvml_memory_v2 *ret);
	int (*numa_node)(void *device, unsigned *ret); /* where GPUs are NUMA nodes */
	int (*processes)(void *device, unsigned *count, struct nvml_process *ret);
	int (*power)(void *device, unsigned *ret_mw);
	int (*utilization)(void *device, struct nvml_utilization *ret);
	int (*temperature)(void *device, struct nvml_temperature *ret);
	int (*temperature_before)(void *device, int sensor, unsigned *ret_c);
	int (*clock)(void *device, int type, unsigned *ret_mhz);
	int (*slowed)(void *device, unsigned long long *ret_reasons);
	int (*slowed_before)(void *device, unsigned long long *ret_reasons);
	int (*event_set)(void **ret);
	int (*event_register)(void *device, unsigned long long types, void *set);
	int (*event_wait)(void *set, struct nvml_event *ret, unsigned timeout_ms);
	int (*metrics_support)(void *device, struct nvml_metrics_support *ret);
	int (*sample_new)(void **ret);
	int (*sample_take)(void *device, void *sample);
	int (*metrics)(struct nvml_metrics *ret);
};

/* Loads it, in a process that may not make device files any more where no driver is. Errors of
 * dlib_open(). */
int nvml_load(struct nvml_api *ret, struct failure *why);

/* Whether numbers in a CUDA_VISIBLE_DEVICES are NVML's: the GPUs are of one model, or this
 * process's environment asks for it, and none before them may not be opened, as CUDA counts no such
 * GPU, and NVML does. No GPU is asked for a list without numbers; NULL: all GPUs. */
bool nvml_numbers_are_cudas(const struct nvml_api *n, const char *list);

#endif
