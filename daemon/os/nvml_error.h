/* nvml_error.h - what NVML's functions return, and the words for it. Pure. */
#ifndef LAUNCHD_DAEMON_OS_NVML_ERROR_H
#define LAUNCHD_DAEMON_OS_NVML_ERROR_H

#include <stdbool.h>

/* Of nvmlReturn_t. */
enum nvml_return {
	NVML_OK = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_INSUFFICIENT_POWER = 8,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_IRQ_ISSUE = 11,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_GPU_NOT_FOUND = 28,
	NVML_UNKNOWN_ERROR = 999,
};

/* "the GPU has fallen off the bus"; of a number that has no words here "error 42". To be used at
 * once. */
const char *nvml_words(int error);

/* Whether an error says that no driver is there, or no GPU for it. */
bool nvml_is_absent(int error);

/* Whether an error says that GPU or driver is bad, and not that something can't be asked. */
bool nvml_is_bad(int error);

#endif
