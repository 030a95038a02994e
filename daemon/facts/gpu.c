/* gpu.c - see gpu.h */
#include "daemon/facts/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/vec.h"

/* One entry of the list without blanks around it; *at moves behind it. */
static size_t next_entry(const char **at, const char **ret)
{
	size_t len;

	*at += strspn(*at, " ");
	*ret = *at;
	len = strcspn(*at, ",");
	*at += len + ((*at)[len] == ',');
	while (len > 0 && (*ret)[len - 1] == ' ')
		len--;
	return len;
}

static bool is_name(const char *entry)
{
	return strncmp(entry, "GPU-", 4) == 0 || strncmp(entry, "MIG-", 4) == 0;
}

static bool entry_number(const char *entry, size_t len, uint64_t *ret)
{
	char number[12];

	if (len == 0 || len >= sizeof number)
		return false;
	memcpy(number, entry, len);
	number[len] = '\0';
	return num_parse(number, 0, UINT32_MAX, ret) == 0;
}

/* Whether an entry means the same as one of the `count` before it; all are names or all numbers. */
static bool is_repeated(const char *list, unsigned count, const char *entry, size_t len)
{
	uint64_t a, b;

	for (unsigned i = 0; i < count; i++) {
		const char *other;
		size_t other_len = next_entry(&list, &other);

		if (other_len == len && strncmp(other, entry, len) == 0)
			return true;
		if (entry_number(entry, len, &a) && entry_number(other, other_len, &b) && a == b)
			return true;
	}
	return false;
}

unsigned gpu_visible(const char *visible, unsigned present)
{
	const char *at = visible;
	unsigned count = 0;

	if (!visible)
		return present;
	while (*at) {
		const char *entry;
		size_t len = next_entry(&at, &entry);
		uint64_t n;

		/* the first entry decides whether the list is one of names or of numbers */
		if (is_name(visible) ? strncmp(entry, visible, 4) != 0 :
				       !entry_number(entry, len, &n) || n >= present)
			break;
		if (is_repeated(visible, count, entry, len))
			return 0;
		count++;
	}
	return count;
}

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
		*ret = gpu_visible(env_get(env, "CUDA_VISIBLE_DEVICES"), present);
	return rc;
}
