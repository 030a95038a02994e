/* nvml.c - see nvml.h */
#include "daemon/check/nvml.h"

#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/words.h"
#include "daemon/facts/devices.h"
#include "daemon/os/dlib.h"
#include "daemon/os/nvidia.h"

#define AT(member) offsetof(struct nvml_api, member), NULL

static const struct dlib_symbol symbols[] = {
	{ "nvmlInit_v2", AT(init) },
	{ "nvmlDeviceGetCount_v2", AT(device_count) },
	{ "nvmlDeviceGetHandleByIndex_v2", AT(device) },
	{ NULL, 0, NULL },
};

static const struct dlib_symbol optional[] = {
	{ "nvmlSystemGetDriverVersion", AT(driver_version) },
	{ "nvmlDeviceGetName", AT(name) },
	{ "nvmlDeviceGetUUID", AT(uuid) },
	{ "nvmlDeviceGetPciInfo_v3", AT(pci) },
	{ "nvmlDeviceGetHandleByUUID", AT(by_uuid) },
	{ "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", AT(whole_of) },
	{ "nvmlDeviceGetFieldValues", AT(fields) },
	{ "nvmlDeviceGetTotalEccErrors", AT(ecc_errors) },
	{ "nvmlDeviceGetRemappedRows", AT(remapped_rows) },
	{ "nvmlDeviceGetRetiredPagesPendingStatus", AT(retired_pending) },
	{ "nvmlDeviceGetNvLinkState", AT(nvlink_state) },
	{ "nvmlDeviceGetMigMode", AT(mig_mode) },
	{ "nvmlDeviceGetGpuFabricInfoV", AT(fabric) },
	{ "nvmlDeviceGetCurrPcieLinkWidth", AT(pcie_width) },
	{ "nvmlDeviceGetMaxPcieLinkWidth", AT(pcie_width_max) },
	{ "nvmlDeviceGetMemoryInfo", AT(memory) },
	{ "nvmlDeviceGetMemoryInfo_v2", AT(memory_v2) },
	{ "nvmlDeviceGetNumaNodeId", AT(numa_node) },
	{ "nvmlDeviceGetComputeRunningProcesses_v3", AT(processes) },
	{ "nvmlDeviceGetPowerUsage", AT(power) },
	{ "nvmlDeviceGetUtilizationRates", AT(utilization) },
	{ "nvmlDeviceGetTemperatureV", AT(temperature) },
	{ "nvmlDeviceGetTemperature", AT(temperature_before) },
	{ "nvmlDeviceGetClockInfo", AT(clock) },
	{ "nvmlDeviceGetCurrentClocksEventReasons", AT(slowed) },
	{ "nvmlDeviceGetCurrentClocksThrottleReasons", AT(slowed_before) },
	{ "nvmlEventSetCreate", AT(event_set) },
	{ "nvmlDeviceRegisterEvents", AT(event_register) },
	{ "nvmlEventSetWait_v2", AT(event_wait) },
	{ "nvmlGpmQueryDeviceSupport", AT(metrics_support) },
	{ "nvmlGpmSampleAlloc", AT(sample_new) },
	{ "nvmlGpmSampleGet", AT(sample_take) },
	{ "nvmlGpmMetricsGet", AT(metrics) },
	{ NULL, 0, NULL },
};

static const struct dlib library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = symbols,
	.optional = optional,
	.adds = "checks of GPUs",
};

int nvml_load(struct nvml_api *ret, struct failure *why)
{
	void *unused; /* it stays, as long as its process */

	nvidia_make_no_nodes();
	return dlib_open(&library, NULL, ret, &unused, why);
}

/* Whether a list has a number from this one on. */
static bool has_number_from(const char *list, unsigned first)
{
	const char *entry;
	uint64_t number;
	size_t len;

	while ((len = list_next(&list, &entry)) > 0)
		if (num_parse_len(entry, len, first, UINT32_MAX, &number) == 0)
			return true;
	return false;
}

bool nvml_numbers_are_cudas(const struct nvml_api *n, const char *list)
{
	bool by_bus = devices_are_by_bus(getenv(CUDA_ORDER));
	char first[NVML_NAME_SIZE] = "", name[NVML_NAME_SIZE];
	unsigned count = 0;
	void *device;

	if (!list || !has_number_from(list, 0) || n->device_count(&count) != NVML_OK)
		return true;
	for (unsigned i = 0; i < count; i++) {
		int rc = n->device(i, &device);

		if (rc == NVML_NO_PERMISSION && has_number_from(list, i))
			return false;
		if (by_bus || rc != NVML_OK || !n->name ||
			n->name(device, name, sizeof name) != NVML_OK)
			continue;
		if (!*first)
			memcpy(first, name, sizeof first);
		else if (strcmp(first, name) != 0)
			return false;
	}
	return true;
}
