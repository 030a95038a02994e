/* nvml_error.c - see nvml_error.h */
#include "daemon/os/nvml_error.h"

#include <stddef.h>
#include <stdio.h>

const char *nvml_words(int error)
{
	static const struct {
		int error;
		const char *words;
	} known[] = {
		{ NVML_NOT_SUPPORTED, "not supported" },
		{ NVML_NO_PERMISSION, "no permission" },
		{ NVML_INSUFFICIENT_SIZE, "more than there is room for" },
		{ NVML_INSUFFICIENT_POWER, "the GPU's power cables are not attached properly" },
		{ NVML_DRIVER_NOT_LOADED, "the driver is not loaded" },
		{ NVML_TIMEOUT, "the driver's own time-out" },
		{ NVML_IRQ_ISSUE, "the GPU's interrupts don't arrive" },
		{ NVML_GPU_IS_LOST, "the GPU has fallen off the bus" },
		{ NVML_RESET_REQUIRED, "the GPU needs a reset" },
		{ NVML_LIB_RM_VERSION_MISMATCH,
			"the driver that is loaded is not the one that is installed: reboot" },
		{ NVML_GPU_NOT_FOUND, "there is no GPU" },
		{ NVML_UNKNOWN_ERROR, "an error inside the driver" },
	};
	static char other[24]; /* one thread */

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].error == error)
			return known[i].words;
	(void)snprintf(other, sizeof other, "error %d", error);
	return other;
}

bool nvml_is_absent(int error)
{
	return error == NVML_DRIVER_NOT_LOADED || error == NVML_GPU_NOT_FOUND;
}

bool nvml_is_bad(int error)
{
	return error == NVML_INSUFFICIENT_POWER || error == NVML_IRQ_ISSUE ||
		error == NVML_GPU_IS_LOST || error == NVML_RESET_REQUIRED ||
		error == NVML_LIB_RM_VERSION_MISMATCH;
}
