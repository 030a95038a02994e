/* test_cgroup_paths.c - our cgroups by what /proc says, in trees of files made for it. */
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/os/cgroup_paths.h"

#define MOUNTS_BEFORE \
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n" \
	"27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
#define HYBRID \
	MOUNTS_BEFORE \
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" \
	"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n" \
	"35 31 0:32 / /c/memory rw shared:9 - cgroup cgroup rw,xattr,memory\n" \
	"41 31 0:38 / /c/unified rw,relatime - cgroup2 cgroup2 rw\n"

/* Paths are below the test's own root; NULL: no such file, or none is found. */
static const struct paths_row {
	const char *says, *cgroup, *mountinfo;
	const char *there[3]; /* directories with a cgroup.procs */
	const char *unified;
	const char *unified_top;
	const char *memory, *memory_top;
} rows[] = {
	{ "version 2 at its usual place", "0::/a.slice/b.scope\n", NULL,
		{ "/sys/fs/cgroup/a.slice/b.scope" }, "/sys/fs/cgroup/a.slice/b.scope",
		"/sys/fs/cgroup", NULL, NULL },
	{ "the root of a cgroup namespace", "0::/\n", NULL, { "/sys/fs/cgroup" }, "/sys/fs/cgroup",
		"/sys/fs/cgroup", NULL, NULL },
	{ "version 2 beside version 1, at their usual places",
		"9:name=systemd:/x\n4:memory:/m\n1:cpu:/\n0::/u\n", NULL,
		{ "/sys/fs/cgroup/unified/u", "/sys/fs/cgroup/memory/m" },
		"/sys/fs/cgroup/unified/u", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory/m",
		"/sys/fs/cgroup/memory" },
	{ "a tree with several controllers", "4:cpu,memory:/m\n", NULL,
		{ "/sys/fs/cgroup/memory/m" }, NULL, NULL, "/sys/fs/cgroup/memory/m",
		"/sys/fs/cgroup/memory" },
	{ "a tree whose name only sounds like it", "4:memory2:/m\n3:name=memory:/m\n", HYBRID,
		{ "/sys/fs/cgroup/memory/m" }, NULL, NULL, NULL, NULL },
	{ "other mount points", "4:memory:/m\n0::/u\n", HYBRID, { NULL }, "/c/unified/u",
		"/c/unified", "/c/memory/m", "/c/memory" },
	{ "only version 1 is elsewhere", "4:memory:/m\n0::/u\n", HYBRID, { "/sys/fs/cgroup/u" },
		"/sys/fs/cgroup/u", "/sys/fs/cgroup", "/c/memory/m", "/c/memory" },
	{ "a mount that shows our own cgroup only", "0::/docker/abc\n",
		"30 1 0:26 /docker/abc /c rw - cgroup2 cgroup rw\n", { NULL }, "/c", "/c", NULL,
		NULL },
	{ "a mount that shows a cgroup above ours", "0::/docker/abc/in\n",
		"30 1 0:26 /docker /c rw - cgroup2 cgroup rw\n", { NULL }, "/c/abc/in", "/c", NULL,
		NULL },
	{ "a mount that shows another cgroup whose name begins like ours", "0::/docker/abc\n",
		"30 1 0:26 /docker/a /c rw - cgroup2 cgroup rw\n", { NULL }, NULL, NULL, NULL,
		NULL },
	{ "the first mount that shows ours counts", "0::/a\n",
		"30 1 0:26 /b /c rw - cgroup2 c rw\n31 1 0:26 / /d rw - cgroup2 c rw\n"
		"32 1 0:26 / /e rw - cgroup2 c rw\n",
		{ NULL }, "/d/a", "/d", NULL, NULL },
	{ "a mount from above our cgroup namespace", "0::/\n",
		"30 1 0:26 /../.. /c rw - cgroup2 cgroup rw\n", { NULL }, NULL, NULL, NULL, NULL },
	{ "we are beside our cgroup namespace, and the mount shows it", "0::/../a\n",
		"30 1 0:26 /.. /c rw - cgroup2 cgroup rw\n", { NULL }, "/c/a", "/c", NULL, NULL },
	{ "we are above the mount's root", "0::/../..\n",
		"30 1 0:26 /.. /c rw - cgroup2 cgroup rw\n", { "/sys/fs" }, NULL, NULL, NULL,
		NULL },
	{ "names with blanks and colons", "0::/a b/c:d\n",
		"30 1 0:26 /a\\040b /x\\040y\\134 rw - cgroup2 cgroup rw\n", { NULL }, "/x y\\/c:d",
		"/x y\\", NULL, NULL },
	{ "no cgroup at all", "", HYBRID, { "/sys/fs/cgroup" }, NULL, NULL, NULL, NULL },
	{ "no /proc", NULL, NULL, { "/sys/fs/cgroup" }, NULL, NULL, NULL, NULL },
	{ "no mount", "0::/a\n", MOUNTS_BEFORE, { NULL }, NULL, NULL, NULL, NULL },
	{ "lines that are cut off", "0\n0:\n4:memory\n0::/a\n",
		"30\n30 1 0:26\n30 1 0:26 / - cgroup2\n30 1 0:26 / /c rw - cgroup2\n - cgroup2 c rw",
		{ NULL }, NULL, NULL, NULL, NULL },
	{ "a line that ends with a blank, after a longer one", "0::/a\n",
		"30 1 0:26 / /c rw - cgroup2\n - cgroup2 c ", { NULL }, NULL, NULL, NULL, NULL },
};

static void write_file(const char *root, const char *name, const char *text)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof path, "%s%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0700); /* it may be there */
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static void check(const struct cgroup_place *got, const char *root, const char *dir,
	const char *top, const char *says)
{
	if (!got->dir != !dir || (dir && strcmp(got->dir + strlen(root), dir) != 0))
		fail_msg("%s: %s, not %s", says, got->dir ? got->dir : "none", dir ? dir : "none");
	if (dir)
		assert_int_equal(got->top, strlen(root) + strlen(top));
}

/* What is found where /proc and the mounts say that; none of the files is left. */
static struct cgroup_paths find(const char *cgroup, const char *mountinfo, const char *const *there,
	char *root, struct arena *arena)
{
	struct cgroup_paths got = { 0 };
	char name[256];
	int rc;

	assert_non_null(mkdtemp(root));
	if (cgroup)
		write_file(root, "/proc/self/cgroup", cgroup);
	if (mountinfo)
		write_file(root, "/proc/self/mountinfo", mountinfo);
	for (size_t i = 0; i < 3 && there[i]; i++) {
		(void)snprintf(name, sizeof name, "%s/cgroup.procs", there[i]);
		write_file(root, name, "");
	}
	rc = cgroup_paths_read(root, arena, &got);
	assert_int_equal(scratch_remove(root), 0);
	assert_int_equal(rc, 0);
	return got;
}

#define SCRATCH "/tmp/launchd_test_cgroup_paths_XXXXXX"

static void test_paths(void **state)
{
	const struct paths_row *row = *state;
	struct arena arena = { 0 };
	char root[] = SCRATCH;
	struct cgroup_paths got = find(row->cgroup, row->mountinfo, row->there, root, &arena);

	check(&got.unified, root, row->unified, row->unified_top, "version 2");
	check(&got.memory, root, row->memory, row->memory_top, "memory");
	arena_done(&arena);
}

/* CPU time of version 1, mostly in a tree with its accounts. */
static void test_cpu(void **state)
{
	static const struct {
		const char *cgroup, *mountinfo, *there[3], *cpu, *top;
	} cases[] = {
		{ "5:cpu,cpuacct:/c\n4:memory:/m\n", NULL,
			{ "/sys/fs/cgroup/memory/m", "/sys/fs/cgroup/cpu/c" },
			"/sys/fs/cgroup/cpu/c", "/sys/fs/cgroup/cpu" },
		{ "5:cpuacct,cpu:/c\n",
			MOUNTS_BEFORE "35 31 0:32 / /x/cpu rw - cgroup cgroup rw,cpuacct,cpu\n",
			{ NULL }, "/x/cpu/c", "/x/cpu" },
		{ "5:cpu,memory:/c\n",
			MOUNTS_BEFORE "35 31 0:32 / /x rw - cgroup cgroup rw,cpu,memory\n",
			{ NULL }, "/x/c", "/x" },
		{ "5:cpuset:/c\n0::/u\n", NULL, { "/sys/fs/cgroup/u" }, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena arena = { 0 };
		char root[] = SCRATCH;
		struct cgroup_paths got =
			find(cases[i].cgroup, cases[i].mountinfo, cases[i].there, root, &arena);

		check(&got.cpu, root, cases[i].cpu, cases[i].top, "cpu");
		arena_done(&arena);
	}
}

static bool listed;

static int look_for_us(const char *path, const struct stat *st, int type, struct FTW *where)
{
	char line[64];
	FILE *file;

	(void)st;
	if (type != FTW_F || strcmp(path + where->base, "cgroup.procs") != 0)
		return 0;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		listed = listed || atoi(line) == (int)getpid();
	if (file)
		(void)fclose(file);
	return listed;
}

/* Whatever this machine has: what is found is the directory of a cgroup that we are in; at least
 * of one above it, see the header. */
static void test_here(void **state)
{
	struct cgroup_paths got;
	struct arena arena = { 0 };
	const struct cgroup_place *places[] = { &got.unified, &got.memory, &got.cpu };

	(void)state;
	assert_int_equal(cgroup_paths_read("", &arena, &got), 0);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		if (!places[i]->dir)
			continue;
		listed = false;
		(void)nftw(places[i]->dir, look_for_us, 16, FTW_PHYS);
		assert_true(listed);
	}
	arena_done(&arena);
}

TESTS(cgroup_paths)
{
	static struct suite s;

	SUITE_ROWS(&s, test_paths, rows);
	suite_add(&s, "CPU time of version 1", test_cpu, NULL, NULL);
	suite_add(&s, "this process's own, on this machine", test_here, NULL, NULL);
	return suite_run(&s);
}
