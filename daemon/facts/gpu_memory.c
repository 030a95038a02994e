/* gpu_memory.c - see gpu_memory.h */
#include "daemon/facts/gpu_memory.h"

#include <dlfcn.h>
#include <errno.h>

#include "common/failure.h"
#include "daemon/os/dlib.h"

enum {
	PROCESSES_MAX = 512, /* of one GPU */
	NOT_AVAILABLE = -1,  /* NVML_VALUE_NOT_AVAILABLE: not said */
};

/* nvmlProcessInfo_t of nvml.h. */
struct process_info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

/* By their ABI names (nvml.h). Each returns 0 for success. */
struct nvml_use {
	int (*init)(void);
	int (*device_count)(unsigned *);
	int (*device)(unsigned index, void **ret);
	int (*processes)(void *device, unsigned *count, struct process_info *ret);
	int (*shutdown)(void);
};

static const struct dlib_symbol symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml_use, init), NULL },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml_use, device_count), NULL },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_use, device), NULL },
	{ "nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml_use, processes), NULL },
	{ "nvmlShutdown", offsetof(struct nvml_use, shutdown), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = symbols,
	.adds = "GPU memory in launchctl status",
};

/* Those of one GPU that there is room for. */
static int read_device(const struct nvml_use *nvml, unsigned index, struct gpu_use *ret,
	size_t room, size_t *count, struct failure *why)
{
	struct process_info found[PROCESSES_MAX];
	unsigned n = PROCESSES_MAX;
	void *device;

	if (nvml->device(index, &device) != 0 || nvml->processes(device, &n, found) != 0)
		return failure_set(why, -EIO, "NVML: GPU %u does not say who uses it", index);
	for (unsigned i = 0; i < n && i < PROCESSES_MAX && *count < room; i++)
		if (found[i].used_bytes != (unsigned long long)NOT_AVAILABLE)
			ret[(*count)++] =
				(struct gpu_use){ (pid_t)found[i].pid, found[i].used_bytes };
	return 0;
}

static int read_devices(const struct nvml_use *nvml, struct gpu_use *ret, size_t room,
	size_t *count, struct failure *why)
{
	unsigned devices;
	int rc = 0;

	if (nvml->device_count(&devices) != 0)
		return failure_set(why, -EIO, "NVML: nvmlDeviceGetCount failed");
	if (devices == 0)
		return failure_set(why, -ELIBACC, "NVML: there is no GPU");
	for (unsigned i = 0; i < devices && rc == 0; i++)
		rc = read_device(nvml, i, ret, room, count, why);
	return rc;
}

int gpu_memory_read(struct gpu_use *ret, size_t room, size_t *ret_count, struct failure *why)
{
	struct nvml_use nvml;
	void *handle;
	int rc = dlib_open(&library, NULL, &nvml, &handle, why);

	*ret_count = 0;
	if (rc < 0)
		return rc;
	if (nvml.init() != 0) {
		rc = failure_set(why, -ELIBACC, "NVML: there is no driver");
	} else {
		rc = read_devices(&nvml, ret, room, ret_count, why);
		(void)nvml.shutdown();
	}
	(void)dlclose(handle);
	return rc;
}
