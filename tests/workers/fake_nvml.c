/* fake_nvml.c - an NVML that has $FAKE_GPUS devices; "broken" fails at the count, and a number
 * below 0 is a library without a driver. $FAKE_GPU_USE is a list of "pid:bytes", which the first of
 * them tells; "hang" never answers, "fail" fails. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
int nvmlShutdown(void);

struct process_info {
	unsigned pid;
	unsigned long long used_bytes;
	unsigned gpu_instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v3(
	void *device, unsigned *count, struct process_info *ret);

enum { OK, DRIVER_NOT_LOADED = 9, UNKNOWN = 999 };

int nvmlInit_v2(void)
{
	return atoi(getenv("FAKE_GPUS")) < 0 ? DRIVER_NOT_LOADED : OK;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)atoi(getenv("FAKE_GPUS"));
	return strcmp(getenv("FAKE_GPUS"), "broken") == 0 ? UNKNOWN : OK;
}

static char devices[64];

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
	*ret = &devices[index];
	return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process_info *ret)
{
	char *at = getenv("FAKE_GPU_USE");
	unsigned n = 0;

	if (at && strcmp(at, "hang") == 0)
		for (;;)
			(void)pause();
	if (at && strcmp(at, "fail") == 0)
		return UNKNOWN;
	for (; device == devices && at && *at && n < *count; n++) {
		ret[n] = (struct process_info){ .pid = (unsigned)strtoul(at, &at, 10) };
		ret[n].used_bytes = strtoull(at + 1, &at, 10);
		at += *at == ',';
	}
	*count = n;
	return OK;
}

int nvmlShutdown(void)
{
	return OK;
}
