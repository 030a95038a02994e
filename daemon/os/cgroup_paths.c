/* cgroup_paths.c - see cgroup_paths.h */
#include "daemon/os/cgroup_paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/fd.h"

/* What is known so far of one tree. */
struct tree {
	const char *type, *controller; /* of its mount; controller NULL: it has no such option */
	const char *path;              /* ours, as /proc/self/cgroup has it; NULL: not in it */
	struct cgroup_place *found;
};

struct cgroup_search {
	struct arena *arena;
	const char *root;
	struct tree unified, memory, cpu;
};

/* Whether a list like "cpu,memory" has the word. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* "0::/path" is of version 2, "4:cpu,memory:/path" of version 1. */
static void take_cgroup(char *line, struct cgroup_search *s)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return;
	*controllers++ = '\0';
	*path++ = '\0';
	if (strcmp(line, "0") == 0 && *controllers == '\0')
		s->unified.path = path;
	if (list_has(controllers, s->memory.controller))
		s->memory.path = path;
	if (list_has(controllers, s->cpu.controller))
		s->cpu.path = path;
}

/* Where systemd mounts the trees, and every container runtime after it. */
static void try_usual(struct tree *t, const struct cgroup_search *s, const char *point)
{
	char path[PATH_MAX];
	int len;

	if (!t->path || t->found->dir)
		return;
	len = snprintf(path, sizeof path, "%s%s%s/cgroup.procs", s->root, point,
		strcmp(t->path, "/") == 0 ? "" : t->path);
	if (len >= (int)sizeof path || strstr(t->path, "/..") || access(path, F_OK) < 0)
		return;
	t->found->dir = arena_strndup(s->arena, path, (size_t)len - strlen("/cgroup.procs"));
	t->found->top = strlen(s->root) + strlen(point);
}

/* Undoes what mountinfo writes for blanks and backslashes: \040 and its like. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
			from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0');
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* What of path lies below root, "" or with its slash; NULL: root does not show it. Both begin at
 * the root of this cgroup namespace, and may begin above it ("/.."). */
static const char *below(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	path += len;
	/* what is above the mount can't be reached by going up from the mount point */
	return strstr(path, "/..") ? NULL : strcmp(path, "/") == 0 ? "" : path;
}

static void take_tree(
	struct tree *t, const struct cgroup_search *s, const char *root, const char *point)
{
	const char *rest = t->path ? below(t->path, root) : NULL;

	if (t->found->dir || !rest)
		return;
	t->found->dir = arena_printf(s->arena, "%s%s%s", s->root, point, rest);
	t->found->top = strlen(s->root) + strlen(point);
}

static bool is_found(const struct tree *t)
{
	return !t->path || t->found->dir;
}

static bool is_through(const struct cgroup_search *s)
{
	return is_found(&s->unified) && is_found(&s->memory) && is_found(&s->cpu);
}

static void take_version_1(struct tree *t, const struct cgroup_search *s, const char *options,
	const char *root, const char *point)
{
	if (list_has(options, t->controller))
		take_tree(t, s, root, point);
}

/* "41 31 0:38 ROOT POINT rw,relatime [tags] - cgroup2 cgroup2 rw,memory": proc(5).
 * True: nothing more is wanted. */
static bool take_mount(char *line, struct cgroup_search *s)
{
	char *type = strstr(line, " - cgroup"); /* no blank within a field before it */
	char *root = line, *point, *options;

	if (!type)
		return false;
	type += strlen(" - ");
	options = strrchr(type, ' ');
	for (int i = 0; i < 3 && root; i++)
		root = strchr(root + 1, ' ');
	point = root ? strchr(root + 1, ' ') : NULL;
	if (!point || !options)
		return false;
	*root++ = *point++ = *options++ = '\0';
	point[strcspn(point, " ")] = '\0';
	type[strcspn(type, " ")] = '\0';
	unescape(root);
	unescape(point);
	if (strcmp(type, s->unified.type) == 0) {
		take_tree(&s->unified, s, root, point);
	} else if (strcmp(type, s->memory.type) == 0) {
		take_version_1(&s->memory, s, options, root, point);
		take_version_1(&s->cpu, s, options, root, point);
	}
	return is_through(s);
}

/* There may be thousands of mounts, and the trees are mostly among the first. */
static void search_mounts(struct cgroup_search *s)
{
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/proc/self/mountinfo", s->root);
	file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (take_mount(line, s))
			break;
	}
	free(line);
	(void)fclose(file);
}

int cgroup_paths_read(const char *root, struct arena *arena, struct cgroup_paths *ret)
{
	struct cgroup_paths found = { 0 };
	struct cgroup_search s = { .arena = arena,
		.root = root,
		.unified = { .type = "cgroup2", .found = &found.unified },
		.memory = { .type = "cgroup", .controller = "memory", .found = &found.memory },
		.cpu = { .type = "cgroup", .controller = "cpu", .found = &found.cpu } };
	char path[PATH_MAX], lines[16384], *rest = lines, *line;

	(void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	if (fd_read_file(path, lines, sizeof lines) < 0)
		lines[0] = '\0';
	while ((line = strsep(&rest, "\n")))
		take_cgroup(line, &s);
	try_usual(&s.memory, &s, "/sys/fs/cgroup/memory");
	try_usual(&s.cpu, &s, "/sys/fs/cgroup/cpu");
	try_usual(&s.unified, &s, "/sys/fs/cgroup");
	try_usual(&s.unified, &s, "/sys/fs/cgroup/unified"); /* beside trees of version 1 */
	if (!is_through(&s))
		search_mounts(&s);
	if (arena_failed(arena))
		return -ENOMEM;
	*ret = found;
	return 0;
}
