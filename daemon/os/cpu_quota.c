/* cpu_quota.c - see cpu_quota.h */
#include "daemon/os/cpu_quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/num.h"
#include "daemon/os/cgroup_paths.h"

/* A file of numbers and words, its last newline cut off. False: it isn't there. */
static bool read_words(const char *dir, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
		fd_read_file(path, ret, size) < 0)
		return false;
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

/* 0: no quota, or no number. */
static uint64_t thousandths(const char *quota, const char *period)
{
	uint64_t part, whole;

	if (num_parse(quota, 1, UINT64_MAX / 1000, &part) < 0 ||
		num_parse(period, 1, UINT64_MAX / 1000, &whole) < 0)
		return 0; /* "max", "-1" */
	part = part * 1000 / whole;
	return part ? part : 1;
}

/* Of version 2: "400000 100000", "max 100000". */
static uint64_t unified_quota(const char *dir)
{
	char words[64], *blank;

	if (!read_words(dir, "cpu.max", words, sizeof words))
		return 0;
	blank = strchr(words, ' ');
	if (!blank)
		return 0;
	*blank = '\0';
	return thousandths(words, blank + 1);
}

static uint64_t old_quota(const char *dir)
{
	char quota[32], period[32];

	return read_words(dir, "cpu.cfs_quota_us", quota, sizeof quota) &&
			read_words(dir, "cpu.cfs_period_us", period, sizeof period) ?
		thousandths(quota, period) :
		0;
}

/* From our directory up to the mount point. */
static uint64_t least_of(const struct cgroup_place *place, uint64_t (*quota_of)(const char *dir))
{
	char dir[PATH_MAX];
	uint64_t least = 0;
	size_t len;

	if (!place->dir || strlen(place->dir) >= sizeof dir)
		return 0;
	len = strlen(place->dir);
	memcpy(dir, place->dir, len + 1);
	for (;;) {
		uint64_t quota = quota_of(dir);

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		while (len > place->top && dir[len - 1] != '/')
			len--;
		if (len <= place->top)
			return least;
		dir[--len] = '\0';
	}
}

uint64_t cpu_quota_read(const struct cgroup_paths *paths)
{
	uint64_t unified = least_of(&paths->unified, unified_quota);
	uint64_t old = least_of(&paths->cpu, old_quota);

	return unified > 0 && (old == 0 || unified < old) ? unified : old;
}
