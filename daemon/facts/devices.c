/* devices.c - see devices.h */
#include "daemon/facts/devices.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "common/vec.h"
#include "common/words.h"

/* NULL: not set, or empty, which is the same to ROCm and Level Zero. */
static const char *list_of(const char *const *env, const char *variable)
{
	const char *list = env_get(env, variable);

	return list && *list ? list : NULL;
}

struct device_list devices_find(const char *const *env, enum gpu_maker here)
{
	const char *hip = list_of(env, HIP_DEVICES), *rocr = list_of(env, ROCR_DEVICES);
	const char *ze = list_of(env, ZE_DEVICES), *cuda = env_get(env, CUDA_DEVICES);

	if (here == GPU_INTEL || (ze && !hip && !cuda && !rocr && here != GPU_AMD))
		return (struct device_list){ GPU_INTEL, ZE_DEVICES, ze, NULL };
	if (hip)
		return (struct device_list){ GPU_AMD, HIP_DEVICES, hip, rocr };
	if (cuda)
		return (struct device_list){ here, CUDA_DEVICES, cuda, rocr };
	if (rocr || here == GPU_AMD)
		return (struct device_list){ GPU_AMD, HIP_DEVICES, NULL, rocr };
	return (struct device_list){ GPU_NVIDIA, CUDA_DEVICES, NULL, NULL };
}

/* The length of the next entry; 0: the list ends. It does so at -1, by which users hide all. */
static size_t entry_next(const char **list, const char **ret_entry)
{
	size_t len = list_next(list, ret_entry);

	return len > 0 && **ret_entry != '-' ? len : 0;
}

bool devices_are_by_bus(const char *order)
{
	return order && strcmp(order, "PCI_BUS_ID") == 0;
}

unsigned devices_count(const char *list)
{
	const char *entry;
	unsigned count = 0;

	while (entry_next(&list, &entry) > 0)
		count++;
	return count;
}

const char *devices_nth(struct arena *arena, const char *list, unsigned n)
{
	const char *entry;
	size_t len;

	do {
		len = entry_next(&list, &entry);
	} while (len > 0 && n-- > 0);
	return len > 0 ? arena_strndup(arena, entry, len) : NULL;
}

static bool is_name(const char *entry)
{
	return strncmp(entry, "GPU-", 4) == 0 || strncmp(entry, "MIG-", 4) == 0;
}

static bool entry_number(const char *entry, size_t len, uint64_t *ret)
{
	enum { DIGITS_MAX = 11 };

	return len <= DIGITS_MAX && num_parse_len(entry, len, 0, UINT32_MAX, ret) == 0;
}

/* Whether an entry means the same as one of the `count` before it; all are names or all numbers. */
static bool is_repeated(const char *list, unsigned count, const char *entry, size_t len)
{
	uint64_t a, b;

	for (unsigned i = 0; i < count; i++) {
		const char *other;
		size_t other_len = list_next(&list, &other);

		if (other_len == len && strncmp(other, entry, len) == 0)
			return true;
		if (entry_number(entry, len, &a) && entry_number(other, other_len, &b) && a == b)
			return true;
	}
	return false;
}

unsigned devices_visible(const char *list, unsigned present)
{
	const char *at = list;
	unsigned count = 0;

	if (!list)
		return present;
	while (*at) {
		const char *entry;
		size_t len = list_next(&at, &entry);
		uint64_t n;

		/* the first entry decides whether the list is one of names or of numbers */
		if (is_name(list) ? strncmp(entry, list, 4) != 0 :
				    !entry_number(entry, len, &n) || n >= present)
			break;
		if (is_repeated(list, count, entry, len))
			return 0;
		count++;
	}
	return count;
}
