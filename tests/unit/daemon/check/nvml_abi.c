/* nvml_abi.c - what daemon/check/nvml.h says of NVML's ABI is what NVIDIA's header says: it
 * compiles. */
#include <stddef.h>
#include <stdio.h>

#include "daemon/check/nvml.h"

#ifdef HAVE_NVML_H

#include <nvml.h>

#define SAME(ours, theirs)      _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_MEMBER(ours, member, theirs, their_member) \
	_Static_assert(offsetof(ours, member) == offsetof(theirs, their_member) && \
			sizeof((ours *)0)->member == sizeof((theirs *)0)->their_member, \
		#theirs "." #their_member)
/* Its declaration is looked up; nothing is linked. */
#define IS_THERE(function) _Static_assert(sizeof(&(function)) == sizeof(void *), #function)

SAME(NVML_OK, NVML_SUCCESS);
SAME(NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_INSUFFICIENT_POWER, NVML_ERROR_INSUFFICIENT_POWER);
SAME(NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(NVML_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME(NVML_IRQ_ISSUE, NVML_ERROR_IRQ_ISSUE);
SAME(NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(NVML_LIB_RM_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME(NVML_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
SAME(NVML_UNKNOWN_ERROR, NVML_ERROR_UNKNOWN);

SAME(NVML_NAME_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
SAME(NVML_UUID_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME(NVML_VERSION_SIZE, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
_Static_assert(NVML_LINKS_MAX >= NVML_NVLINK_MAX_LINKS, "NVML_NVLINK_MAX_LINKS");
SAME(NVML_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME(NVML_VOLATILE, NVML_VOLATILE_ECC);
SAME(NVML_ENABLED, NVML_FEATURE_ENABLED);
SAME(NVML_ENABLED, NVML_DEVICE_MIG_ENABLE);
SAME(NVML_FIELD_RECOVERY_ACTION, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME(NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME(NVML_VALUE_UINT, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(NVML_SM_CLOCK, NVML_CLOCK_SM);

SAME(NVML_RECOVERY_NONE, NVML_GPU_RECOVERY_ACTION_NONE);
SAME(NVML_RECOVERY_GPU_RESET, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
SAME(NVML_RECOVERY_NODE_REBOOT, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT);
SAME(NVML_RECOVERY_DRAIN_P2P, NVML_GPU_RECOVERY_ACTION_DRAIN_P2P);
SAME(NVML_RECOVERY_DRAIN_AND_RESET, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET);
#ifdef HAVE_RECOVER_IMEX /* enumerators of which older headers (12.9, 13.0) have none */
SAME(NVML_RECOVERY_IMEX_DOMAIN, NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN);
SAME(NVML_RECOVERY_BUS_RESET, NVML_GPU_RECOVERY_ACTION_BUS_RESET);
SAME(NVML_RECOVERY_SYSTEM_REBOOT, NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT);
#endif

SAME(NVML_FABRIC_NOT_SUPPORTED, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
SAME(NVML_FABRIC_NOT_STARTED, NVML_GPU_FABRIC_STATE_NOT_STARTED);
SAME(NVML_FABRIC_IN_PROGRESS, NVML_GPU_FABRIC_STATE_IN_PROGRESS);
SAME(NVML_FABRIC_COMPLETED, NVML_GPU_FABRIC_STATE_COMPLETED);
SAME(NVML_FABRIC_DEGRADED_SHIFT, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW);
SAME(NVML_FABRIC_RECOVERING_SHIFT, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY);
SAME(NVML_FABRIC_UNHEALTHY_SHIFT, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY);
SAME(NVML_FABRIC_TIMEOUT_SHIFT, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY);
#ifdef NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION /* newer than 12.4 */
SAME(NVML_FABRIC_CONFIG_SHIFT, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION);
SAME(NVML_FABRIC_CONFIG_BITS, NVML_GPU_FABRIC_HEALTH_MASK_WIDTH_INCORRECT_CONFIGURATION);
SAME(NVML_FABRIC_CONFIG_RIGHT, NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_NONE);
#endif
#ifdef NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_GPU_STATE_INVALID /* newer than 13.0 */
SAME(8, NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_GPU_STATE_INVALID);
#endif
SAME(NVML_FABRIC_BITS, NVML_GPU_FABRIC_HEALTH_MASK_WIDTH_ROUTE_UNHEALTHY);
SAME(NVML_FABRIC_TRUE, NVML_GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE);

SAME_SIZE(struct nvml_fabric, nvmlGpuFabricInfo_v2_t);
SAME(NVML_FABRIC_VERSION, nvmlGpuFabricInfo_v2);
SAME_MEMBER(struct nvml_fabric, cluster_uuid, nvmlGpuFabricInfo_v2_t, clusterUuid);
SAME_MEMBER(struct nvml_fabric, status, nvmlGpuFabricInfo_v2_t, status);
SAME_MEMBER(struct nvml_fabric, clique, nvmlGpuFabricInfo_v2_t, cliqueId);
SAME_MEMBER(struct nvml_fabric, state, nvmlGpuFabricInfo_v2_t, state);
SAME_MEMBER(struct nvml_fabric, health_mask, nvmlGpuFabricInfo_v2_t, healthMask);

SAME_SIZE(struct nvml_pci, nvmlPciInfo_t);
SAME_MEMBER(struct nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_MEMBER(struct nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_MEMBER(struct nvml_pci, device, nvmlPciInfo_t, device);

SAME_SIZE(struct nvml_field, nvmlFieldValue_t);
SAME_MEMBER(struct nvml_field, id, nvmlFieldValue_t, fieldId);
SAME_MEMBER(struct nvml_field, type, nvmlFieldValue_t, valueType);
SAME_MEMBER(struct nvml_field, status, nvmlFieldValue_t, nvmlReturn);
SAME_MEMBER(struct nvml_field, value, nvmlFieldValue_t, value);
SAME_MEMBER(struct nvml_field, value.u, nvmlFieldValue_t, value.uiVal);

SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_MEMBER(struct nvml_memory, used, nvmlMemory_t, used);
SAME_SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
SAME(NVML_MEMORY_VERSION, nvmlMemory_v2);
SAME_MEMBER(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
SAME_MEMBER(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);

SAME_SIZE(struct nvml_process, nvmlProcessInfo_t);
SAME_MEMBER(struct nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_MEMBER(struct nvml_process, used_bytes, nvmlProcessInfo_t, usedGpuMemory);

SAME(NVML_NOT_TOLD, (unsigned long long)NVML_VALUE_NOT_AVAILABLE);

SAME_SIZE(struct nvml_temperature, nvmlTemperature_v1_t);
SAME(NVML_TEMPERATURE_VERSION, nvmlTemperature_v1);
SAME_MEMBER(struct nvml_temperature, sensor, nvmlTemperature_v1_t, sensorType);
SAME_MEMBER(struct nvml_temperature, celsius, nvmlTemperature_v1_t, temperature);
SAME(0, NVML_TEMPERATURE_GPU);

SAME_SIZE(struct nvml_event, nvmlEventData_t);
SAME_MEMBER(struct nvml_event, device, nvmlEventData_t, device);
SAME_MEMBER(struct nvml_event, type, nvmlEventData_t, eventType);
SAME_MEMBER(struct nvml_event, data, nvmlEventData_t, eventData);

SAME_MEMBER(struct nvml_metric, status, nvmlGpmMetric_t, nvmlReturn);
SAME_MEMBER(struct nvml_metric, value, nvmlGpmMetric_t, value);
SAME_SIZE(struct nvml_metric, nvmlGpmMetric_t);
SAME_MEMBER(struct nvml_metrics, from, nvmlGpmMetricsGet_t, sample1);
SAME_MEMBER(struct nvml_metrics, to, nvmlGpmMetricsGet_t, sample2);
SAME_MEMBER(struct nvml_metrics, at[0], nvmlGpmMetricsGet_t, metrics[0]);
_Static_assert((int)NVML_METRICS_ROOM >= (int)NVML_GPM_METRIC_MAX, "room for all of them");
SAME(NVML_TENSOR_WORK, NVML_GPM_METRIC_ANY_TENSOR_UTIL);
SAME(NVML_METRICS_VERSION, NVML_GPM_METRICS_GET_VERSION);
SAME(NVML_METRICS_VERSION, NVML_GPM_SUPPORT_VERSION);
SAME_SIZE(struct nvml_metrics_support, nvmlGpmSupport_t);

IS_THERE(nvmlInit_v2);
IS_THERE(nvmlShutdown);
IS_THERE(nvmlDeviceGetCount_v2);
IS_THERE(nvmlDeviceGetHandleByIndex_v2);
IS_THERE(nvmlSystemGetDriverVersion);
IS_THERE(nvmlDeviceGetName);
IS_THERE(nvmlDeviceGetUUID);
IS_THERE(nvmlDeviceGetPciInfo_v3);
IS_THERE(nvmlDeviceGetHandleByUUID);
IS_THERE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
IS_THERE(nvmlDeviceGetFieldValues);
IS_THERE(nvmlDeviceGetTotalEccErrors);
IS_THERE(nvmlDeviceGetRemappedRows);
IS_THERE(nvmlDeviceGetRetiredPagesPendingStatus);
IS_THERE(nvmlDeviceGetNvLinkState);
IS_THERE(nvmlDeviceGetMigMode);
IS_THERE(nvmlDeviceGetGpuFabricInfoV);
IS_THERE(nvmlDeviceGetCurrPcieLinkWidth);
IS_THERE(nvmlDeviceGetMaxPcieLinkWidth);
IS_THERE(nvmlDeviceGetMemoryInfo);
IS_THERE(nvmlDeviceGetMemoryInfo_v2);
IS_THERE(nvmlDeviceGetNumaNodeId);
IS_THERE(nvmlDeviceGetComputeRunningProcesses_v3);
IS_THERE(nvmlEventSetCreate);
IS_THERE(nvmlDeviceRegisterEvents);
IS_THERE(nvmlEventSetWait_v2);
IS_THERE(nvmlDeviceGetPowerUsage);
IS_THERE(nvmlDeviceGetUtilizationRates);
IS_THERE(nvmlDeviceGetTemperatureV);
IS_THERE(nvmlDeviceGetTemperature);
IS_THERE(nvmlDeviceGetCurrentClocksEventReasons);
IS_THERE(nvmlDeviceGetCurrentClocksThrottleReasons);
IS_THERE(nvmlGpmQueryDeviceSupport);
IS_THERE(nvmlGpmSampleAlloc);
IS_THERE(nvmlGpmSampleGet);
IS_THERE(nvmlGpmMetricsGet);
IS_THERE(nvmlDeviceGetClockInfo);

int main(void)
{
	(void)puts("1..1\nok 1 - it has compiled");
	return 0;
}

#else

int main(void)
{
	(void)puts("1..0 # SKIP no nvml.h here: ./bootstrap deps fetches it");
	return 0;
}

#endif
