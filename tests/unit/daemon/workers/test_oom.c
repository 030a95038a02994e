/* test_oom.c - the kernel's counter: where it is, whom it counts, and a real want of memory. */
#include "tests/unit/daemon/workers/cgroup_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/workers/oom.h"
#include "tests/unit/daemon/output/scratch_dir.h"

#define V2(n) "low 0\nhigh 0\nmax 91\noom 5\noom_kill " #n "\noom_group_kill 0\n"
#define V1(n) "oom_kill_disable 0\nunder_oom 0\noom_kill " #n "\n"

/* Trees of plain files; ours is /a/b. "@" in a list of processes is this one, "^" its parent. */
static const struct file_row {
	const char *says;
	bool memory; /* the tree is version 1's */
	struct {
		const char *name, *text;
	} files[3];
	const char *cgroup; /* one more that lies in /a/b */
	const char *later;  /* what files[0] has at the look */
	enum oom verdict;
} rows[] = {
	{ "version 2: it rose, and we are alone", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(3),
		OOM_YES },
	{ "version 2: it did not rise", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(2),
		OOM_NO },
	{ "version 2: our parent is no other", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "^\n@\n" } }, NULL, V2(3),
		OOM_YES },
	{ "version 2: another process is in it", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n1\n" } }, NULL, V2(3),
		OOM_LIKELY },
	{ "version 2: very many are", false,
		{ { "/a/b/memory.events", V2(2) },
			{ "/a/b/cgroup.procs",
				"@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n"
				"@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n@\n" } },
		NULL, V2(3), OOM_LIKELY },
	{ "version 2: one of another pid namespace is", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "0\n@\n" } }, NULL, V2(3),
		OOM_LIKELY },
	{ "version 2: another cgroup is in it", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, "/a/b/c",
		V2(3), OOM_LIKELY },
	{ "version 2: its processes can't be listed", false, { { "/a/b/memory.events", V2(2) } },
		NULL, V2(3), OOM_LIKELY },
	{ "version 2: the cgroup above counts", false,
		{ { "/a/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(3),
		OOM_LIKELY },
	{ "version 2: the mount point itself counts", false,
		{ { "/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(3),
		OOM_LIKELY },
	{ "version 2: the nearest counts", false,
		{ { "/a/memory.events", V2(2) }, { "/a/b/memory.events", V2(7) },
			{ "/a/b/cgroup.procs", "@\n" } },
		NULL, V2(3), OOM_NO },
	{ "version 2: none counts", false, { { "/a/b/cgroup.procs", "@\n" } }, NULL, "@\n",
		OOM_NO },
	{ "version 2: above the mount point is nothing", false,
		{ { "/../memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(3),
		OOM_NO },
	{ "version 2: it was set back", false,
		{ { "/a/b/memory.events", V2(2) }, { "/a/b/cgroup.procs", "@\n" } }, NULL, V2(1),
		OOM_NO },
	{ "version 2: a kernel that does not count", false,
		{ { "/a/b/memory.events", "oom 3\n" }, { "/a/b/cgroup.procs", "@\n" } }, NULL,
		"oom 4\n", OOM_NO },
	{ "version 1: it rose, and we are alone", true,
		{ { "/a/b/memory.oom_control", V1(0) }, { "/a/b/cgroup.procs", "@\n" } }, NULL,
		V1(1), OOM_YES },
	{ "version 1: other cgroups in it are not counted", true,
		{ { "/a/b/memory.oom_control", V1(0) }, { "/a/b/cgroup.procs", "@\n" } }, "/a/b/c",
		V1(1), OOM_YES },
	{ "version 1: another process is in it", true,
		{ { "/a/b/memory.oom_control", V1(0) }, { "/a/b/cgroup.procs", "1\n@\n" } }, NULL,
		V1(1), OOM_LIKELY },
	{ "version 1: a kernel that does not count", true,
		{ { "/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n" } }, NULL,
		"oom_kill_disable 1\nunder_oom 1\n", OOM_NO },
};

static void write_text(const char *path, const char *text)
{
	char whole[1024];
	size_t len = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (; *text; text++)
		len += (size_t)snprintf(whole + len, sizeof whole - len,
			*text == '@' || *text == '^' ? "%d" : "%c",
			*text == '@'         ? (int)getpid() :
				*text == '^' ? (int)getppid() :
					       *text);
	assert_true(fd >= 0 && len < sizeof whole);
	assert_int_equal(fd_write_all(fd, whole, len), 0);
	(void)close(fd);
}

static void test_file(void **state)
{
	const struct file_row *row = *state;
	char above[] = "/tmp/launchd_test_oom_XXXXXX", root[64], path[256], first[256] = "";
	struct cgroup_paths paths = { 0 };
	struct oom_watch o = OOM_NONE;
	enum oom verdict, again;
	static const char *const dirs[] = { "", "/a", "/a/b" };

	assert_non_null(mkdtemp(above));
	(void)snprintf(root, sizeof root, "%s/root", above);
	for (size_t i = 0; i < 4; i++) {
		const char *dir = i < 3 ? dirs[i] : row->cgroup;

		(void)snprintf(path, sizeof path, "%s%s", root, dir ? dir : "/a/b");
		assert_true(mkdir(path, 0700) == 0 || !dir);
	}
	for (size_t i = 0; i < 3 && row->files[i].name; i++) {
		(void)snprintf(path, sizeof path, "%s%s", root, row->files[i].name);
		write_text(path, row->files[i].text);
		if (i == 0)
			(void)snprintf(first, sizeof first, "%s", path);
	}
	(void)snprintf(path, sizeof path, "%s/a/b", root);
	*(row->memory ? &paths.memory : &paths.unified) =
		(struct cgroup_place){ path, strlen(root) };
	oom_start(&paths, &o);
	write_text(first, row->later);
	verdict = oom_look(&o);
	again = oom_look(&o);
	oom_stop(&o);
	assert_int_equal(scratch_remove(above), 0);
	assert_int_equal(verdict, row->verdict);
	assert_int_equal(again, OOM_NO); /* one death for one count */
	assert_int_equal(o.fd, -1);
}

static void test_nothing(void **state)
{
	struct cgroup_paths paths = { 0 };
	struct oom_watch o;

	(void)state;
	oom_start(&paths, &o);
	assert_int_equal(o.fd, -1);
	assert_int_equal(oom_look(&o), OOM_NO);
	oom_stop(&o);
}

/* In a cgroup with 48 MiB: takes memory until it is killed. */
static _Noreturn void take_memory(void)
{
	enum { CHUNK = 4 << 20, CHUNKS = 256 };

	for (int i = 0; i < CHUNKS; i++) {
		void *p = mmap(
			NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			_exit(2);
		memset(p, 1, CHUNK);
	}
	_exit(3); /* the limit is none */
}

/* Starts a process, waits for its death, and looks at once. -1: it did not die by SIGKILL. */
static int look_after(struct oom_watch *o, bool want)
{
	pid_t pid = fork();
	int status;

	if (pid == 0 && want)
		take_memory();
	while (pid == 0)
		(void)pause();
	if (!want)
		(void)kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return -1;
	return o ? (int)oom_look(o) : 0;
}

static struct arena arena;

static struct oom_watch start_here(void)
{
	struct oom_watch o = OOM_NONE;
	struct cgroup_paths paths;

	if (cgroup_paths_read("", &arena, &paths) == 0)
		oom_start(&paths, &o);
	return o;
}

static const char *part_alone(void)
{
	struct oom_watch o = start_here();

	HOLDS(o.fd >= 0, "there is a counter");
	HOLDS(fcntl(o.fd, F_GETFD) & FD_CLOEXEC, "workers don't get it");
	HOLDS(look_after(&o, false) == OOM_NO, "a SIGKILL of ours is none");
	for (int i = 0; i < 20; i++) { /* the count is never later than the death */
		HOLDS(look_after(&o, true) == OOM_YES, "the kernel's is one");
		HOLDS(look_after(&o, false) == OOM_NO, "the next is none again");
	}
	HOLDS(look_after(NULL, true) == 0 && look_after(&o, true) == OOM_YES,
		"two died before a look: one of them was killed now");
	HOLDS(oom_look(&o) == OOM_LIKELY, "the other most likely, too");
	HOLDS(oom_look(&o) == OOM_NO, "there is no third");
	oom_stop(&o);
	return NULL;
}

static const char *part_shared(void)
{
	struct oom_watch o;
	pid_t other = fork();

	if (other == 0)
		for (;;)
			(void)pause();
	o = start_here();
	HOLDS(look_after(&o, true) == OOM_LIKELY, "it may have been another's");
	HOLDS(look_after(&o, false) == OOM_NO, "but not where nobody was counted");
	return NULL;
}

/* A cgroup with little memory, of the tree that has the controller here. */
static void make_small(void)
{
	struct cgroup_paths paths;
	const char *limits[] = { "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
		"memory.max", "memory.swap.max" };
	struct arena mine = { 0 };
	bool limited = false, unified;

	assert_int_equal(cgroup_paths_read("", &mine, &paths), 0);
	unified = !paths.memory.dir;
	arena_done(&mine);
	trial_make(unified ? TREE_UNIFIED : TREE_MEMORY);
	for (size_t i = 0; i < 4; i++) {
		if (access(trial_path(limits[i]), W_OK) < 0)
			continue;
		trial_write(limits[i], i == 3 ? "0" : "50331648");
		limited = true;
	}
	needs(limited, "the memory controller in the tests' cgroup");
}

static void test_alone(void **state)
{
	(void)state;
	make_small();
	trial_run(0, part_alone);
}

static void test_user(void **state)
{
	(void)state;
	make_small();
	trial_run(NOBODY, part_alone);
}

static void test_shared(void **state)
{
	(void)state;
	make_small();
	trial_run(0, part_shared);
}

TESTS(oom)
{
	static struct suite s;

	SUITE_ROWS(&s, test_file, rows);
	suite_add(&s, "no cgroup, no verdict", test_nothing, NULL, NULL);
	suite_add(&s, "a real one, in a cgroup of our own", test_alone, NULL, trial_done);
	suite_add(&s, "a real one, for an ordinary user", test_user, NULL, trial_done);
	suite_add(&s, "a real one, in a cgroup that we share", test_shared, NULL, trial_done);
	return suite_run(&s);
}
