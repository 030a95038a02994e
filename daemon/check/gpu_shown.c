/* gpu_shown.c - see gpu_shown.h */
#include "daemon/check/gpu_shown.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "common/words.h"
#include "daemon/check/nvml.h"
#include "daemon/facts/devices.h"

static const char mig[] = "MIG-";

static bool begins_with(const char *entry, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && strncmp(entry, prefix, strlen(prefix)) == 0;
}

/* "MIG-GPU-8f3a.../1/0", as drivers before 470 call it, has its GPU's UUID; any other name only
 * NVML can place. */
static bool is_part_of(const struct gpu_listed *gpu, const char *entry, size_t len)
{
	const char *inner = entry + strlen(mig);
	const struct nvml_api *n = gpu->nvml;
	void *part = NULL, *whole = NULL;
	char name[NVML_UUID_SIZE];

	if (begins_with(inner, len - strlen(mig), "GPU-")) {
		size_t uuid = strcspn(inner, "/,");

		return strlen(gpu->uuid) == uuid && strncmp(inner, gpu->uuid, uuid) == 0;
	}
	if (!n || !n->by_uuid || !n->whole_of || len >= sizeof name)
		return false;
	(void)snprintf(name, sizeof name, "%.*s", (int)len, entry);
	return n->by_uuid(name, &part) == NVML_OK && n->whole_of(part, &whole) == NVML_OK &&
		whole == gpu->device;
}

static bool entry_shows(const struct gpu_listed *gpu, const char *entry, size_t len, bool *ret_part)
{
	uint64_t n;

	if (num_parse_len(entry, len, 0, UINT32_MAX, &n) == 0)
		return n == gpu->number && gpu->numbered;
	if (!begins_with(entry, len, mig))
		return strncmp(entry, gpu->uuid, len) == 0;
	*ret_part = is_part_of(gpu, entry, len);
	return *ret_part;
}

unsigned gpu_shown(const char *list, const struct gpu_listed *gpu, bool *ret_part)
{
	unsigned entries = devices_visible(list, gpu->present), shown = 0, parts = 0;

	*ret_part = false;
	if (!list)
		return 1;
	for (unsigned i = 0; i < entries; i++) {
		const char *entry;
		size_t len = list_next(&list, &entry);
		bool part = false;

		shown += entry_shows(gpu, entry, len, &part);
		parts += part;
	}
	*ret_part = parts > 0;
	return shown;
}

bool gpu_may_be_shown(const char *list, const struct nvml_api *nvml, void *device, unsigned number,
	unsigned present)
{
	char uuid[NVML_UUID_SIZE] = "";
	const struct gpu_listed gpu = { nvml, nvml_numbers_are_cudas(nvml, list), device, number,
		present, uuid };
	bool part, named = list && (strncmp(list, "GPU-", 4) == 0 || strncmp(list, mig, 4) == 0);

	if (!gpu.numbered)
		return true;
	if (named && (!device || !nvml->uuid || nvml->uuid(device, uuid, sizeof uuid) != NVML_OK))
		return true;
	return gpu_shown(list, &gpu, &part) > 0;
}
