/* gpu_memory.c - see gpu_memory.h */
#include "daemon/facts/gpu_memory.h"

#include <errno.h>
#include <stdbool.h>

#include "common/failure.h"
#include "daemon/os/dlib.h"
#include "daemon/os/nvidia.h"
#include "daemon/os/nvml_error.h"

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
};

static const struct dlib_symbol symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml_use, init), NULL },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml_use, device_count), NULL },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_use, device), NULL },
	{ "nvmlDeviceGetComputeRunningProcesses_v3", offsetof(struct nvml_use, processes), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = symbols,
	.adds = "GPU memory in launchctl status",
};

/* One GPU's users, as many as there is room for. Returns NVML's error. */
static int read_device(const struct nvml_use *nvml, unsigned index, struct gpu_use *ret,
	size_t room, size_t *count)
{
	struct process_info found[PROCESSES_MAX];
	unsigned n = PROCESSES_MAX;
	void *device;
	int rc = nvml->device(index, &device);

	if (rc == NVML_OK)
		rc = nvml->processes(device, &n, found);
	for (unsigned i = 0; rc == NVML_OK && i < n && i < PROCESSES_MAX && *count < room; i++)
		if (found[i].used_bytes != (unsigned long long)NOT_AVAILABLE)
			ret[(*count)++] =
				(struct gpu_use){ (pid_t)found[i].pid, found[i].used_bytes };
	return rc;
}

/* A GPU that may not be asked is another job's: NVML counts it, and it hides no other. */
static int read_devices(const struct nvml_use *nvml, struct gpu_use *ret, size_t room,
	size_t *count, struct failure *why)
{
	unsigned devices = 0, answered = 0;
	int rc = nvml->device_count(&devices), error;

	if (rc != NVML_OK)
		return failure_set(why, -EIO, "NVML: nvmlDeviceGetCount: %s", nvml_words(rc));
	if (devices == 0)
		return failure_set(why, -ELIBACC, "NVML: there is no GPU");
	for (unsigned i = 0; i < devices; i++) {
		error = read_device(nvml, i, ret, room, count);
		answered += error == NVML_OK;
		if (error != NVML_OK)
			rc = failure_set(why, -EIO, "NVML: GPU %u does not report who uses it: %s",
				i, nvml_words(error));
	}
	return answered ? 0 : rc;
}

/* Where no driver is, nobody uses a GPU. */
static int not_begun(int error, struct failure *why)
{
	bool absent = nvml_is_absent(error) && !nvidia_gpus_here();

	return failure_set(why, absent ? -ELIBACC : -EIO, "NVML: nvmlInit: %s", nvml_words(error));
}

int gpu_memory_read(struct gpu_use *ret, size_t room, size_t *ret_count, struct failure *why)
{
	struct failure denied = { 0 };
	struct nvml_use nvml;
	void *unused;
	int rc;

	*ret_count = 0;
	nvidia_make_no_nodes();
	rc = dlib_open(&library, NULL, &nvml, &unused, why);
	if (rc < 0)
		return rc;
	rc = nvml.init();
	if (rc != NVML_OK) {
		rc = not_begun(rc, why);
	} else {
		rc = read_devices(&nvml, ret, room, ret_count, &denied);
		if (rc < 0)
			(void)failure_copy(why, &denied);
	}
	return rc;
}
