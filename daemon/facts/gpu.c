/* gpu.c - see gpu.h */
#include "daemon/facts/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/failure.h"
#include "common/vec.h"
#include "daemon/facts/devices.h"

/* The few symbols that are needed, by their ABI names (nvml.h, stable since NVML 4). Each returns
 * 0 for success. */
struct nvml {
	int (*init)(void);
	int (*device_count)(unsigned *);
	int (*shutdown)(void);
};

static bool nvml_load(void *library, struct nvml *ret)
{
	/* POSIX has dlsym() return functions as void *; memcpy() is the conversion ISO C allows */
	void *init = dlsym(library, "nvmlInit_v2");
	void *count = dlsym(library, "nvmlDeviceGetCount_v2");
	void *shutdown = dlsym(library, "nvmlShutdown");

	memcpy(&ret->init, &init, sizeof init);
	memcpy(&ret->device_count, &count, sizeof count);
	memcpy(&ret->shutdown, &shutdown, sizeof shutdown);
	return init && count && shutdown;
}

int gpu_count(const char *const *env, unsigned *ret, struct failure *why)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	struct nvml nvml;
	unsigned present = 0;
	int rc = 0;

	*ret = 0;
	if (!library)
		return 0;
	if (!nvml_load(library, &nvml)) {
		rc = failure_set(why, -EIO, "libnvidia-ml.so.1 lacks nvmlDeviceGetCount_v2");
	} else if (nvml.init() == 0) { /* else: the library without a driver or device */
		if (nvml.device_count(&present) != 0)
			rc = failure_set(why, -EIO, "nvmlDeviceGetCount fails");
		(void)nvml.shutdown();
	}
	(void)dlclose(library);
	if (rc == 0)
		*ret = devices_visible(env_get(env, "CUDA_VISIBLE_DEVICES"), present);
	return rc;
}
