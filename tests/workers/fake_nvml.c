/* fake_nvml.c - an NVML that has $FAKE_GPUS devices; "broken" fails at the count, and a number
 * below 0 is a library without a driver. $FAKE_GPU_USE is a list of "pid:bytes", which the first of
 * them tells; "hang" never answers, "fail" fails.
 *
 * All are H100s that are well, but for what $FAKE_NVML says: words with blanks between them, each
 * NAME=VALUE for all GPUs or NAME@GPU=VALUE for one:
 *   hang=FUNCTION crash=FUNCTION   which never returns, or kills its process
 *   spin=FUNCTION                  which never returns, and uses its CPU
 *   slow=FUNCTION                  which takes a second
 *   FUNCTION=ERROR                 what it returns; /PATH, a file with the number
 *   name uuid version recovery ecc pending failed retired down width used power busy throttled
 *   fabric status health xid tensor mig numa divided
 * as the functions below read them, which leave the caller's memory alone when they fail; used,
 * power, busy and tensor may be /PATH, a file with the number; without tensor=PERCENT a GPU counts
 * no work of its tensor units. Once all Xids are told, and somebody waits for more, that is written
 * to the FIFO $FAKE_XIDS_TOLD, and GPUs want a reset where they need one. Like NVML, it begins
 * with making the driver's device file where it may: $FAKE_CONTROL_DEVICE. $FAKE_GPU_BUSES is a
 * list of their addresses, "0000:3b:00.0". Built with OLD_DRIVER it lacks what a driver of 2021
 * lacked. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/check/nvml.h"

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *ret, unsigned size);
int nvmlDeviceGetName(void *device, char *ret, unsigned size);
int nvmlDeviceGetUUID(void *device, char *ret, unsigned size);
int nvmlDeviceGetIndex(void *device, unsigned *ret);
int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *ret);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **ret);
int nvmlDeviceGetFieldValues(void *device, int count, struct nvml_field *values);
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *ret);
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
	unsigned *pending, unsigned *failed);
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *ret);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *ret);
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
int nvmlDeviceGetGpuFabricInfoV(void *device, struct nvml_fabric *ret);
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *ret);
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *ret);
int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *ret);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory_v2 *ret);
int nvmlDeviceGetNumaNodeId(void *device, unsigned *ret);
int nvmlDeviceGetComputeRunningProcesses_v3(
	void *device, unsigned *count, struct nvml_process *ret);
int nvmlDeviceGetPowerUsage(void *device, unsigned *ret);
int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *ret);
int nvmlGpmQueryDeviceSupport(void *device, struct nvml_metrics_support *ret);
int nvmlGpmSampleAlloc(void **ret);
int nvmlGpmSampleGet(void *device, void *sample);
int nvmlGpmMetricsGet(struct nvml_metrics *ret);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret);
int nvmlDeviceGetTemperatureV(void *device, struct nvml_temperature *ret);
int nvmlDeviceGetClockInfo(void *device, int type, unsigned *ret);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *ret);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *ret);
int nvmlEventSetCreate(void **ret);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
int nvmlEventSetWait_v2(void *set, struct nvml_event *ret, unsigned timeout_ms);

enum { LINKS = 18, WIDTH = 16, NOBODY = -1 };

static char devices[64], events;
static char parts[64];               /* MIG devices, one of a GPU */
static int lost[64], registered[64]; /* after an Xid 79 of it; for events */

static int index_of(const void *device)
{
	return device ? (int)((const char *)device - devices) : NOBODY;
}

/* The next thing that is said under this name of this GPU, from *at on; NULL: nothing is. The value
 * ends at a blank. */
static const char *next_told(const char **at, const char *name, int gpu)
{
	size_t len = strlen(name);

	while (*at && **at) {
		const char *word = *at + strspn(*at, " ");
		const char *value = word + len;
		char *end;

		*at = word + strcspn(word, " ");
		if (strncmp(word, name, len) != 0)
			continue;
		if (*value == '@' && gpu == (int)strtol(value + 1, &end, 10))
			value = end;
		if (*value == '=')
			return value + 1;
	}
	return NULL;
}

static const char *told(const char *name, int gpu)
{
	const char *at = getenv("FAKE_NVML");

	return next_told(&at, name, gpu);
}

static unsigned number(const char *name, const void *device, unsigned otherwise)
{
	const char *value = told(name, index_of(device));

	return value ? (unsigned)strtoul(value, NULL, 0) : otherwise;
}

static void copy(const char *value, char *ret, unsigned size)
{
	(void)snprintf(ret, size, "%.*s", (int)strcspn(value, " "), value);
	for (char *c = ret; *c; c++)
		if (*c == '_')
			*c = ' ';
}

static int is_told(const char *what, int gpu, const char *function)
{
	const char *at = getenv("FAKE_NVML"), *value;
	size_t len = strlen(function);

	while ((value = next_told(&at, what, gpu)) != NULL)
		if (strncmp(value, function, len) == 0 && (value[len] == ' ' || !value[len]))
			return 1;
	return 0;
}

/* As the number is now, if a file has it. */
static unsigned long long number_now(const char *value)
{
	unsigned long long number;
	char path[256];
	FILE *from;

	if (*value != '/')
		return strtoull(value, NULL, 10);
	(void)snprintf(path, sizeof path, "%.*s", (int)strcspn(value, " "), value);
	from = fopen(path, "r");
	if (!from || fscanf(from, "%llu", &number) != 1)
		abort();
	(void)fclose(from);
	return number;
}

/* What a function does before anything else. */
static int begin(const char *function, const void *device)
{
	int gpu = index_of(device);
	const char *error = told(function, gpu);

	if (is_told("crash", gpu, function))
		abort();
	while (is_told("hang", gpu, function))
		(void)pause();
	if (is_told("spin", gpu, function))
		for (volatile unsigned long turns = 0;; turns++)
			;
	if (is_told("slow", gpu, function))
		(void)nanosleep(&(struct timespec){ 1, 0 }, NULL);
	return error ? (int)number_now(error) : NVML_OK;
}

int nvmlInit_v2(void)
{
	const char *control = getenv("FAKE_CONTROL_DEVICE");
	int rc = begin("nvmlInit", NULL);

	if (control)
		(void)mknod(control, S_IFCHR | 0666, 0xc3ff);
	return atoi(getenv("FAKE_GPUS")) < 0 ? NVML_DRIVER_NOT_LOADED : rc;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	int rc = begin("nvmlDeviceGetCount", NULL);

	if (strcmp(getenv("FAKE_GPUS"), "broken") == 0)
		return NVML_UNKNOWN_ERROR;
	if (rc != NVML_OK)
		return rc;
	*count = (unsigned)atoi(getenv("FAKE_GPUS"));
	return NVML_OK;
}

/* $FAKE_SLEEP is a directory: a GPU that no process has open sleeps, and is woken in a second,
 * under the driver's one lock; its number is added to the file "woken" there. */
static void wake(unsigned gpu)
{
	const char *dir = getenv("FAKE_SLEEP");
	static int open_here[64];
	char path[256];
	int lock, fd;
	FILE *woken;

	if (!dir || open_here[gpu])
		return;
	open_here[gpu] = 1;
	(void)snprintf(path, sizeof path, "%s/lock", dir);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	(void)snprintf(path, sizeof path, "%s/gpu%u", dir, gpu);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || fd < 0 || flock(lock, LOCK_EX) < 0)
		abort();
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		(void)nanosleep(&(struct timespec){ 1, 0 }, NULL);
		(void)snprintf(path, sizeof path, "%s/woken", dir);
		woken = fopen(path, "a");
		if (!woken || fprintf(woken, "%u\n", gpu) < 0 || fclose(woken) != 0)
			abort();
	}
	(void)flock(fd, LOCK_SH); /* until the process ends */
	(void)close(lock);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
	int rc = begin("nvmlDeviceGetHandleByIndex", &devices[index]);

	if (rc != NVML_OK)
		return rc;
	wake(index);
	*ret = &devices[index];
	return NVML_OK;
}

int nvmlShutdown(void)
{
	return begin("nvmlShutdown", NULL);
}

int nvmlSystemGetDriverVersion(char *ret, unsigned size)
{
	int rc = begin("nvmlSystemGetDriverVersion", NULL);

	if (rc != NVML_OK)
		return rc;
	copy(told("version", NOBODY) ? told("version", NOBODY) : "580.65.06", ret, size);
	return NVML_OK;
}

int nvmlDeviceGetName(void *device, char *ret, unsigned size)
{
	const char *name = told("name", index_of(device));
	int rc = begin("nvmlDeviceGetName", device);

	if (rc != NVML_OK)
		return rc;
	copy(name ? name : "NVIDIA_H100_80GB_HBM3", ret, size);
	return NVML_OK;
}

int nvmlDeviceGetUUID(void *device, char *ret, unsigned size)
{
	int gpu = index_of(device);
	int rc = begin("nvmlDeviceGetUUID", device);

	if (rc != NVML_OK)
		return rc;
	if (told("uuid", gpu))
		copy(told("uuid", gpu), ret, size);
	else
		(void)snprintf(ret, size, "GPU-%08d-0000-0000-0000-000000000000", gpu);
	return NVML_OK;
}

int nvmlDeviceGetIndex(void *device, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetIndex", device);

	if (rc == NVML_OK && lost[index_of(device)])
		rc = NVML_GPU_IS_LOST;
	if (rc != NVML_OK)
		return rc;
	*ret = (unsigned)index_of(device);
	return NVML_OK;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *ret)
{
	int gpu = index_of(device);
	char *at = getenv("FAKE_GPU_BUSES");
	int rc = begin("nvmlDeviceGetPciInfo", device);

	if (rc != NVML_OK)
		return rc;
	*ret = (struct nvml_pci){ .bus = 0x10 + (unsigned)gpu };
	for (int i = 0; at && *at && i <= gpu; i++) {
		ret->domain = (unsigned)strtoul(at, &at, 16);
		ret->bus = (unsigned)strtoul(at + 1, &at, 16);
		ret->device = (unsigned)strtoul(at + 1, &at, 16);
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return NVML_OK;
}

/* mig@2=MIG-aaaa: GPU 2 has that one. */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret)
{
	int rc = begin("nvmlDeviceGetHandleByUUID", NULL);

	for (int gpu = 0; rc == NVML_OK && gpu < atoi(getenv("FAKE_GPUS")); gpu++)
		if (is_told("mig", gpu, uuid)) {
			*ret = &parts[gpu];
			return NVML_OK;
		}
	return rc == NVML_OK ? NVML_NOT_FOUND : rc;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *part, void **ret)
{
	int rc = begin("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", NULL);

	if (rc == NVML_OK)
		*ret = &devices[(char *)part - parts];
	return rc;
}

/* Whether a GPU has had an Xid after which it needs a reset. */
static int needs_reset(int gpu)
{
	static const char harmless[] = " 11 13 25 31 32 43 45 63 68 69 79 80 94 154 ";
	const char *at = getenv("FAKE_NVML"), *told_file = getenv("FAKE_XIDS_TOLD"), *xid;
	char path[256], word[24];

	(void)snprintf(path, sizeof path, "%s.past", told_file ? told_file : "");
	while (told_file && access(path, F_OK) == 0 && (xid = next_told(&at, "xid", gpu)) != NULL) {
		(void)snprintf(word, sizeof word, " %.*s ", (int)strcspn(xid, " "), xid);
		if (!strstr(harmless, word))
			return 1;
	}
	return 0;
}

int nvmlDeviceGetFieldValues(void *device, int count, struct nvml_field *values)
{
	int rc = begin("nvmlDeviceGetFieldValues", device);

	if (rc != NVML_OK)
		return rc;
	for (int i = 0; i < count; i++) {
		values[i].status =
			values[i].id == NVML_FIELD_RECOVERY_ACTION ? NVML_OK : NVML_NOT_SUPPORTED;
		values[i].type = NVML_VALUE_UINT;
		values[i].value.u = number("recovery", device,
			needs_reset(index_of(device)) ? NVML_RECOVERY_GPU_RESET :
							NVML_RECOVERY_NONE);
	}
	return NVML_OK;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *ret)
{
	int rc = begin("nvmlDeviceGetTotalEccErrors", device);

	if (rc != NVML_OK)
		return rc;
	if (type != NVML_UNCORRECTED || counter != NVML_VOLATILE)
		return NVML_INVALID_ARGUMENT;
	*ret = number("ecc", device, 0);
	return NVML_OK;
}

int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
	unsigned *pending, unsigned *failed)
{
	int rc = begin("nvmlDeviceGetRemappedRows", device);

	if (rc != NVML_OK)
		return rc;
	*corrected = *uncorrected = 0;
	*pending = number("pending", device, 0);
	*failed = number("failed", device, 0);
	return NVML_OK;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *ret)
{
	int rc = begin("nvmlDeviceGetRetiredPagesPendingStatus", device);

	if (rc != NVML_OK)
		return rc;
	*ret = (int)number("retired", device, 0);
	return NVML_OK;
}

/* down=5,11: these; links=N: there are so many. */
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *ret)
{
	const char *down = told("down", index_of(device));
	int rc = begin("nvmlDeviceGetNvLinkState", device);

	if (rc != NVML_OK)
		return rc;
	if (link >= number("links", device, LINKS))
		return link >= LINKS ? NVML_INVALID_ARGUMENT : NVML_NOT_SUPPORTED;
	*ret = NVML_ENABLED;
	while (down && *down && *down != ' ') {
		char *end;

		if (strtoul(down, &end, 10) == link)
			*ret = 0;
		down = end + (*end == ',');
	}
	return NVML_OK;
}

/* divided@2=1: by MIG. */
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
	int rc = begin("nvmlDeviceGetMigMode", device);

	if (rc != NVML_OK)
		return rc;
	*current = *pending = number("divided", device, 0);
	return NVML_OK;
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetCurrPcieLinkWidth", device);

	if (rc != NVML_OK)
		return rc;
	*ret = number("width", device, WIDTH);
	return NVML_OK;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetMaxPcieLinkWidth", device);

	if (rc != NVML_OK)
		return rc;
	*ret = WIDTH;
	return NVML_OK;
}

static unsigned long long told_now(
	const char *name, const void *device, unsigned long long otherwise)
{
	const char *value = told(name, index_of(device));

	return value ? number_now(value) : otherwise;
}

int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *ret)
{
	int rc = begin("nvmlDeviceGetMemoryInfo", device);

	if (rc != NVML_OK)
		return rc;
	*ret = (struct nvml_memory){ .total = 80ull << 30 };
	ret->used = told_now("used", device, 600ull << 20);
	return NVML_OK;
}

/* power=MILLIWATTS busy=PERCENT throttled=MASK */
int nvmlDeviceGetPowerUsage(void *device, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetPowerUsage", device);

	if (rc != NVML_OK)
		return rc;
	*ret = (unsigned)told_now("power", device, 310000);
	return NVML_OK;
}

int nvmlDeviceGetUtilizationRates(void *device, struct nvml_utilization *ret)
{
	int rc = begin("nvmlDeviceGetUtilizationRates", device);

	if (rc != NVML_OK)
		return rc;
	*ret = (struct nvml_utilization){ (unsigned)told_now("busy", device, 100), 40 };
	return NVML_OK;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetTemperature", device);

	if (rc != NVML_OK)
		return rc;
	if (sensor)
		return NVML_INVALID_ARGUMENT;
	*ret = 61;
	return NVML_OK;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetClockInfo", device);

	if (rc != NVML_OK)
		return rc;
	if (type != NVML_SM_CLOCK)
		return NVML_INVALID_ARGUMENT;
	*ret = 1980;
	return NVML_OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *ret)
{
	int rc = begin("nvmlDeviceGetCurrentClocksThrottleReasons", device);

	if (rc != NVML_OK)
		return rc;
	*ret = number("throttled", device, 0);
	return NVML_OK;
}

int nvmlEventSetCreate(void **ret)
{
	int rc = begin("nvmlEventSetCreate", NULL);

	if (rc != NVML_OK)
		return rc;
	*ret = &events;
	return NVML_OK;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
	int rc = begin("nvmlDeviceRegisterEvents", device);

	if (rc != NVML_OK)
		return rc;
	if (set != &events || types != NVML_EVENT_XID)
		return NVML_INVALID_ARGUMENT;
	registered[index_of(device)] = 1;
	return NVML_OK;
}

#ifndef OLD_DRIVER

int nvmlDeviceGetTemperatureV(void *device, struct nvml_temperature *ret)
{
	int rc = begin("nvmlDeviceGetTemperatureV", device);

	if (rc != NVML_OK)
		return rc;
	if (ret->version != NVML_TEMPERATURE_VERSION || ret->sensor != 0)
		return NVML_INVALID_ARGUMENT;
	ret->celsius = 62;
	return NVML_OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *ret)
{
	int rc = begin("nvmlDeviceGetCurrentClocksEventReasons", device);

	if (rc != NVML_OK)
		return rc;
	*ret = number("throttled", device, 0);
	return NVML_OK;
}

int nvmlGpmQueryDeviceSupport(void *device, struct nvml_metrics_support *ret)
{
	int rc = begin("nvmlGpmQueryDeviceSupport", device);

	if (rc != NVML_OK)
		return rc;
	if (ret->version != NVML_METRICS_VERSION)
		return NVML_INVALID_ARGUMENT;
	ret->supported = told("tensor", index_of(device)) != NULL;
	return NVML_OK;
}

/* A sample knows its device. */
int nvmlGpmSampleAlloc(void **ret)
{
	int rc = begin("nvmlGpmSampleAlloc", NULL);

	if (rc != NVML_OK)
		return rc;
	*ret = calloc(1, sizeof(void *));
	if (!*ret)
		return NVML_UNKNOWN_ERROR;
	return NVML_OK;
}

int nvmlGpmSampleGet(void *device, void *sample)
{
	int rc = begin("nvmlGpmSampleGet", device);

	if (rc != NVML_OK)
		return rc;
	memcpy(sample, &device, sizeof device);
	return NVML_OK;
}

int nvmlGpmMetricsGet(struct nvml_metrics *ret)
{
	void *from, *to;
	int rc;

	if (ret->version != NVML_METRICS_VERSION || ret->count != 1 ||
		ret->at[0].id != NVML_TENSOR_WORK)
		return NVML_INVALID_ARGUMENT;
	memcpy(&from, ret->from, sizeof from);
	memcpy(&to, ret->to, sizeof to);
	rc = begin("nvmlGpmMetricsGet", to);
	if (rc != NVML_OK)
		return rc;
	ret->at[0].status = from && from == to ? NVML_OK : NVML_INVALID_ARGUMENT;
	ret->at[0].value = (double)told_now("tensor", to, 0);
	return NVML_OK;
}

int nvmlDeviceGetGpuFabricInfoV(void *device, struct nvml_fabric *ret)
{
	int rc = begin("nvmlDeviceGetGpuFabricInfoV", device);

	if (rc != NVML_OK)
		return rc;
	if (ret->version != NVML_FABRIC_VERSION)
		return NVML_INVALID_ARGUMENT;
	ret->state = (unsigned char)number("fabric", device, NVML_FABRIC_COMPLETED);
	ret->status = (int)number("status", device, NVML_OK);
	ret->health_mask = number("health", device, 0);
	return NVML_OK;
}

int nvmlDeviceGetNumaNodeId(void *device, unsigned *ret)
{
	int rc = begin("nvmlDeviceGetNumaNodeId", device);

	if (rc == NVML_OK && !told("numa", index_of(device)))
		rc = NVML_NOT_SUPPORTED;
	if (rc == NVML_OK)
		*ret = number("numa", device, 0);
	return rc;
}

int nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory_v2 *ret)
{
	int rc = begin("nvmlDeviceGetMemoryInfo", device);

	if (rc != NVML_OK)
		return rc;
	if (ret->version != NVML_MEMORY_VERSION)
		return NVML_INVALID_ARGUMENT;
	ret->used = told_now("used", device, 0);
	return NVML_OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct nvml_process *ret)
{
	char *at = getenv("FAKE_GPU_USE");
	unsigned n = 0;
	int rc = begin("nvmlDeviceGetComputeRunningProcesses", device);

	if (rc != NVML_OK)
		return rc;
	if (at && strcmp(at, "hang") == 0)
		for (;;)
			(void)pause();
	if (at && strcmp(at, "fail") == 0)
		return NVML_UNKNOWN_ERROR;
	for (char *c = device == devices ? at : NULL; c && *c; c++) /* "pid:bytes" */
		n += *c == ':';
	if (n > *count) {
		*count = n;
		return NVML_INSUFFICIENT_SIZE; /* and the list is left alone */
	}
	*count = n;
	for (unsigned i = 0; i < n; i++) {
		ret[i] = (struct nvml_process){ .pid = (unsigned)strtoul(at, &at, 10) };
		ret[i].used_bytes = strtoull(at + 1, &at, 10);
		at += *at == ',';
	}
	return NVML_OK;
}

static void say_told(void)
{
	const char *path = getenv("FAKE_XIDS_TOLD");
	char past[256];
	FILE *to;

	if (!path)
		return;
	(void)snprintf(past, sizeof past, "%s.past", path);
	to = fopen(past, "w");
	if (to)
		(void)fclose(to);
	to = fopen(path, "w");
	if (!to)
		return;
	(void)fprintf(to, "0 %d told\n", (int)getpid());
	(void)fclose(to);
}

/* Each xid@GPU=N once, then silence. */
int nvmlEventSetWait_v2(void *set, struct nvml_event *ret, unsigned timeout_ms)
{
	static unsigned seen;
	unsigned n = 0;

	if (set != &events || begin("nvmlEventSetWait", NULL) != NVML_OK)
		return NVML_INVALID_ARGUMENT;
	for (int gpu = 0; gpu < atoi(getenv("FAKE_GPUS")); gpu++)
		for (const char *at = getenv("FAKE_NVML"), *xid;
			(xid = next_told(&at, "xid", gpu)) != NULL;)
			if (registered[gpu] && n++ == seen) {
				seen++;
				lost[gpu] |= strtoull(xid, NULL, 10) == 79;
				*ret = (struct nvml_event){ &devices[gpu], NVML_EVENT_XID,
					strtoull(xid, NULL, 10), 0, 0 };
				return NVML_OK;
			}
	if (seen == n++)
		say_told();
	seen = n;
	(void)nanosleep(&(struct timespec){ timeout_ms / 1000, 0 }, NULL);
	return NVML_TIMEOUT;
}

#endif
