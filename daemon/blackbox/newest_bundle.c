/* newest_bundle.c - see newest_bundle.h */
#include "daemon/blackbox/newest_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/bundle_name.h"

enum { NEWEST_DIRS_MAX = 1000 }; /* of a home directory with thousands: only the first ones */

struct newest_search {
	struct newest_bundle *ret;
	int64_t at_ns; /* when the newest one was written */
	struct bundle_name name;
};

/* When a file was written; -1: it is not there. */
static int64_t written_ns(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
		stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* When a failure was written; -1: there is nothing of it to read. */
static int64_t failure_ns(const char *path)
{
	int64_t newest = written_ns(path, BUNDLE_INDEX);
	DIR *dir = newest < 0 ? opendir(path) : NULL;

	for (const struct dirent *e; dir && (e = readdir(dir));) {
		char part[NAME_MAX + sizeof "/" BUNDLE_JSON];
		int64_t at_ns;

		if (strncmp(e->d_name, "node-", 5) != 0)
			continue;
		(void)snprintf(part, sizeof part, "%s/" BUNDLE_JSON, e->d_name);
		at_ns = written_ns(path, part);
		newest = at_ns > newest ? at_ns : newest;
	}
	if (dir)
		(void)closedir(dir);
	return newest;
}

static void consider_failure(
	struct newest_search *s, const char *path, const struct bundle_name *name)
{
	int64_t at_ns = failure_ns(path);

	if (at_ns < 0)
		return;
	s->ret->count++;
	if (s->ret->count > 1 &&
		(at_ns < s->at_ns ||
			(at_ns == s->at_ns && bundle_name_compare(name, &s->name) < 0)))
		return;
	s->at_ns = at_ns;
	s->name = *name;
	(void)snprintf(s->ret->path, sizeof s->ret->path, "%s", path);
}

static bool may_be_directory(const struct dirent *e)
{
	return *e->d_name != '.' &&
		(e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN);
}

/* Looks at the failures in a directory. below: called for each other directory in it; NULL: none.
 */
static int search_in(struct newest_search *s, const char *path,
	void (*below)(struct newest_search *s, const char *path))
{
	DIR *dir = opendir(path);
	unsigned entered = 0;

	if (!dir)
		return -errno;
	for (const struct dirent *e; (e = readdir(dir));) {
		char entry[PATH_MAX];
		struct bundle_name name;

		if (!may_be_directory(e) ||
			snprintf(entry, sizeof entry, "%s/%s", path, e->d_name) >=
				(int)sizeof entry)
			continue;
		if (bundle_name_read(e->d_name, &name))
			consider_failure(s, entry, &name);
		else if (below && entered++ < NEWEST_DIRS_MAX)
			below(s, entry);
	}
	(void)closedir(dir);
	return 0;
}

/* What can't be opened has no failure that we could read. */
static void search_below(struct newest_search *s, const char *path)
{
	char beside[PATH_MAX];

	(void)search_in(s, path, NULL);
	if (snprintf(beside, sizeof beside, "%s/blackbox", path) < (int)sizeof beside)
		(void)search_in(s, beside, NULL);
}

int newest_bundle_find(const char *dir, struct newest_bundle *ret)
{
	struct newest_search s = { .ret = ret };

	*ret->path = '\0';
	ret->count = 0;
	return search_in(&s, dir, search_below);
}
