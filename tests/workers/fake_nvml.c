/* fake_nvml.c - an NVML that has $FAKE_GPUS devices; "broken" fails at the count, and a number
 * below 0 is a library without a driver. */
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlShutdown(void);

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

int nvmlShutdown(void)
{
	return OK;
}
