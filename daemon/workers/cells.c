/* cells.c - see cells.h */
#include "daemon/workers/cells.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/cgroup.h"
#include "daemon/workers/controllers.h"

enum { NAME_LEN = 32 };

struct cell_name {
	char text[NAME_LEN];
};

static struct cell_name name_of(const char *what, unsigned number)
{
	struct cell_name n;

	(void)snprintf(n.text, sizeof n.text, "%s-%u", what, number);
	return n;
}

/* The new cgroup's directory, or negative errno. */
static int make_in(int dir, const char *name)
{
	int made;

	if (mkdirat(dir, name, 0755) < 0)
		return -errno;
	made = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return made < 0 ? -errno : made;
}

int cells_open(struct cells *c, const struct cgroup_leaf *leaf, unsigned attempt, unsigned first,
	unsigned count, const struct worker_limits *limits)
{
	int rc;

	*c = (struct cells)CELLS_NONE;
	if (!leaf->path)
		return 0;
	autoclose dir = make_in(leaf->dir, name_of("attempt", attempt).text);
	autoclose kill_fd = dir < 0 ? -1 : openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);

	if (dir < 0)
		return dir;
	rc = kill_fd < 0 ? -errno : cgroup_enable(dir, leaf->controllers);
	if (rc < 0) {
		(void)unlinkat(leaf->dir, name_of("attempt", attempt).text, AT_REMOVEDIR);
		return rc;
	}
	*c = (struct cells){
		.leaf = leaf,
		.attempt = attempt,
		.first = first,
		.count = count,
		.dir = fd_take(&dir),
		.kill = fd_take(&kill_fd),
		.limits = limits,
	};
	return 0;
}

/* Kernels without swap have no file for it. */
static int set_limits(int dir, const struct worker_limits *l)
{
	struct limit_file files[LIMIT_FILES_MAX];
	size_t count = limits_files(l, files);

	for (size_t i = 0; i < count; i++) {
		autoclose fd = openat(dir, files[i].name, O_WRONLY | O_CLOEXEC);
		int rc = fd < 0 ? -errno : fd_write_all(fd, files[i].text, strlen(files[i].text));

		if (rc < 0 && !(rc == -ENOENT && strcmp(files[i].name, "memory.swap.max") == 0))
			return rc;
	}
	return 0;
}

int cells_add(const struct cells *c, unsigned rank)
{
	struct cell_name name = name_of("rank", rank);
	autoclose dir = c->dir < 0 ? -ENOENT : make_in(c->dir, name.text);
	int rc = dir < 0 ? dir : set_limits(dir, c->limits);

	if (rc < 0 && dir >= 0)
		(void)unlinkat(c->dir, name.text, AT_REMOVEDIR);
	return rc < 0 ? rc : fd_take(&dir);
}

int cells_find(const struct cells *c, unsigned rank)
{
	return c->dir < 0 ?
		-1 :
		openat(c->dir, name_of("rank", rank).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cells_kill(const struct cells *c)
{
	if (c->kill >= 0)
		(void)!write(c->kill, "1", 1); /* a help: who is not killed so is killed by pid */
}

/* Each is mostly empty by now: without a look at what is in it. */
static void remove_cells(const struct cells *c)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < c->count; i++)
		(void)unlinkat(c->dir, name_of("rank", c->first + i).text, AT_REMOVEDIR);
	if (snprintf(path, sizeof path, "%s/attempt-%u", c->leaf->path, c->attempt) <
		(int)sizeof path)
		(void)cgroup_remove(path);
}

void cells_close(struct cells *c)
{
	if (c->dir >= 0) {
		cells_kill(c);
		remove_cells(c);
	}
	fd_closep(&c->dir);
	fd_closep(&c->kill);
	*c = (struct cells)CELLS_NONE;
}
