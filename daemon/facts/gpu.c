/* gpu.c - see gpu.h */
#include "daemon/facts/gpu.h"

#include <dlfcn.h>
#include <errno.h>

#include "common/failure.h"
#include "common/vec.h"
#include "daemon/facts/devices.h"
#include "daemon/os/dlib.h"

/* By their ABI names (nvml.h, stable since NVML 4). Each returns 0 for success. */
struct nvml {
	int (*init)(void);
	int (*device_count)(unsigned *);
	int (*shutdown)(void);
};

static const struct dlib_symbol symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml, init), NULL },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml, device_count), NULL },
	{ "nvmlShutdown", offsetof(struct nvml, shutdown), NULL },
	{ NULL, 0, NULL },
};

const struct dlib nvml_library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = symbols,
	.adds = "the number of GPUs, for --nproc_per_node gpu and auto",
};

int gpu_count(const char *const *env, unsigned *ret, struct failure *why)
{
	struct failure missing = { 0 };
	unsigned present = 0;
	struct nvml nvml;
	void *handle;
	int rc = dlib_open(&nvml_library, NULL, &nvml, &handle, &missing);

	*ret = 0;
	if (rc < 0)
		return rc == -ELIBACC ? 0 : failure_copy(why, &missing);
	if (nvml.init() == 0) { /* else: the library without a driver or device */
		if (nvml.device_count(&present) != 0)
			rc = failure_set(why, -EIO, "NVML: nvmlDeviceGetCount failed");
		(void)nvml.shutdown();
	}
	(void)dlclose(handle);
	if (rc == 0)
		*ret = devices_visible(env_get(env, "CUDA_VISIBLE_DEVICES"), present);
	return rc;
}
