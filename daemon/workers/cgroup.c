/* cgroup.c - see cgroup.h */
#include "daemon/workers/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/os/kernel.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/workers/controllers.h"

/* Of glibc 2.32; what is built with an older one may run with it. */
extern char single_threaded __asm__("__libc_single_threaded") __attribute__((weak));

/* systemd's mark. Only root reads what is trusted; newer ones (251) set user.delegate, too. */
static bool is_marked(int dir, const char *name)
{
	char value[2];

	return fgetxattr(dir, name, value, sizeof value) == 1 && *value == '1';
}

/* Root may write everywhere: that alone does not make a cgroup ours to divide. */
static bool is_delegated(int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return false;
	if ((st.st_uid == 0 || st.st_uid != geteuid()) && !is_marked(dir, "user.delegate") &&
		!is_marked(dir, "trusted.delegate"))
		return false;
	/* faccessat(3) is a newer call for some C libraries, which a sandbox may refuse */
	autoclose procs = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return procs >= 0;
}

static int remove_directory(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)where;
	if (type != FTW_DP) /* the kernel's files go with their directory */
		return 0;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_remove(const char *path)
{
	enum { TRIES = 10, PAUSE_MS = 10 }; /* who ends gives memory back */
	int rc = -ENOMEM;

	if (rmdir(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY)
		return -errno;
	for (unsigned i = 0; i < TRIES && rc == -ENOMEM; i++) {
		if (i > 0)
			(void)poll(NULL, 0, PAUSE_MS);
		rc = nftw(path, remove_directory, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		rc = rc == -1 ? -errno : rc;
	}
	return rc;
}

/* A leaf of our pid that is there already is of a process that is dead. It goes if it is empty. */
static int make_directory(const char *path)
{
	int rc;

	if (mkdir(path, 0755) == 0)
		return 0;
	rc = errno == EEXIST ? cgroup_remove(path) : -errno;
	return rc < 0 ? rc : mkdir(path, 0755) < 0 ? -errno : 0;
}

/* The supervisor's cgroup in the leaf; negative errno. */
static int make_nest(int dir)
{
	if (mkdirat(dir, "supervisor", 0755) < 0)
		return -errno;
	dir = openat(dir, "supervisor", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

/* None where the file can't be read. */
static unsigned read_controllers(int dir, const char *name)
{
	char text[512];
	autoclose fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	long len = fd < 0 ? -1 : fd_read_up_to(fd, text, sizeof text - 1);

	if (len < 0)
		return 0;
	text[len] = '\0';
	return controllers_parse(text);
}

/* All that kill and leave will need is opened now: later there may be no descriptor left. */
static int open_leaf(const char *path, int parent, struct cgroup_leaf *ret)
{
	autoclose dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose kill_fd = dir < 0 ? -1 : openat(dir, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	autoclose freeze = kill_fd < 0 ? -1 : openat(dir, "cgroup.freeze", O_WRONLY | O_CLOEXEC);
	autoclose procs = freeze < 0 ? -1 : openat(parent, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	autoclose home = procs < 0 ? -1 : fcntl(parent, F_DUPFD_CLOEXEC, 3);

	if (home < 0) /* before Linux 5.14 there is no cgroup.kill */
		return -errno;
	autoclose nest = make_nest(dir);
	if (nest < 0)
		return nest;
	*ret = (struct cgroup_leaf){
		.path = path,
		.dir = fd_take(&dir),
		.nest = fd_take(&nest),
		.kill = fd_take(&kill_fd),
		.freeze = fd_take(&freeze),
		.home = fd_take(&home),
		.procs = fd_take(&procs),
		.lobby = -1,
		.control = openat(parent, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC),
		.available = read_controllers(parent, "cgroup.controllers"),
	};
	return 0;
}

/* Ours, if it is delegated; errors of cgroup_look(). */
static int open_ours(const struct cgroup_paths *paths)
{
	const char *ours = paths->unified.dir;
	autoclose dir = ours ? open(ours, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir < 0)
		return ours ? -errno : -ENOENT;
	return is_delegated(dir) ? fd_take(&dir) : -EPERM;
}

int cgroup_look(const struct cgroup_paths *paths)
{
	autoclose dir = open_ours(paths);

	return dir < 0 ? dir : 0;
}

int cgroup_leaf_make(const struct cgroup_paths *paths, struct arena *arena, struct cgroup_leaf *ret)
{
	const char *ours = paths->unified.dir, *path;
	autoclose parent = open_ours(paths);
	int rc;

	if (parent < 0) {
		*ret = (struct cgroup_leaf)CGROUP_LEAF_NONE;
		return 0;
	}
	path = arena_printf(arena, "%s/launchd-%d", ours, (int)getpid());
	if (arena_failed(arena))
		return -ENOMEM;
	rc = make_directory(path);
	if (rc < 0)
		return rc;
	rc = open_leaf(path, parent, ret);
	if (rc < 0)
		(void)cgroup_remove(path); /* empty, and made a moment ago */
	return rc;
}

/* fork(2) into a cgroup (Linux 5.7). Entering one by cgroup.procs makes the kernel wait for an RCU
 * grace period, 7 ms where a birth takes 0.3 ms.
 *
 * The C library does not know of this child. In a process with one thread, where no lock is held,
 * all that its own fork() does besides is: to have the kernel write the child's thread id to where
 * it keeps it (which we do: it told the kernel where that is), to register the list of robust
 * mutexes again (we have none), and to call the handlers of pthread_atfork(3) (see cgroup.h). */
static pid_t fork_into(int dir)
{
	int *tid = NULL;

	/* another C library may have told the kernel of something else: then this is not our id */
	if (!&single_threaded || !single_threaded || prctl(PR_GET_TID_ADDRESS, &tid) < 0 || !tid ||
		*tid != getpid())
		return -1;
	return kernel_fork_into(dir, tid);
}

/* Moves this process to the cgroup whose cgroup.procs this is. */
static int move_to(int procs)
{
	return procs >= 0 && write(procs, "0", 1) == 1 ? 0 : -errno;
}

/* Enables ('+') or disables ('-') controllers in a cgroup.subtree_control. 0 or negative errno. */
static int control(int fd, unsigned set, char sign)
{
	struct text words = { 0 };
	int rc;

	if (set == 0)
		return 0;
	controllers_add(&words, set, sign);
	rc = words.failed ? -ENOMEM : fd_write_all(fd, text_string(&words), words.len);
	text_done(&words);
	return rc;
}

int cgroup_enable(int dir, unsigned controllers)
{
	autoclose fd = openat(dir, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : control(fd, controllers, '+');
}

pid_t cgroup_leaf_other(const struct cgroup_leaf *leaf)
{
	char pids[64], *at = pids, *end;
	autoclose fd = openat(leaf->home, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, pids, sizeof pids - 1);

	if (n < 0)
		return -1;
	for (pids[n] = '\0'; *at; at = end + (*end == '\n')) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		if (pid != getpid())
			return pid ? pid : -1;
	}
	return 0;
}

/* "launchd-PID-guard", written to ret. */
static void lobby_name(const struct cgroup_leaf *leaf, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s-guard", strrchr(leaf->path, '/') + 1);
}

static int enter_lobby(struct cgroup_leaf *leaf)
{
	char name[NAME_MAX + 1];
	autoclose dir = -1;

	lobby_name(leaf, name, sizeof name);
	if (mkdirat(leaf->home, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(leaf->home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	leaf->lobby = dir < 0 ? -1 : openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return leaf->lobby < 0 ? -errno : move_to(leaf->lobby);
}

static bool says(int events, const char *what)
{
	char text[64] = "";

	return pread(events, text, sizeof text - 1, 0) > 0 && strstr(text, what);
}

static bool is_populated(int events)
{
	return says(events, "populated 1");
}

/* Waits until nothing lives in the leaf: the kernel tells who polls its cgroup.events (Linux,
 * cgroup-v2.rst), within 10 ms. */
static void wait_empty(int dir, int within_ms)
{
	autoclose events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd change = { .fd = events, .events = POLLPRI };
	uint64_t end = uv_hrtime() + (uint64_t)within_ms * 1000000;

	while (events >= 0 && is_populated(events)) {
		uint64_t now = uv_hrtime();

		if (now >= end)
			return;
		(void)poll(&change, 1, (int)((end - now) / 1000000) + 1);
	}
}

/* Undoes it, as far as it was done. The other process may be dying in there. */
static void leave_lobby(struct cgroup_leaf *leaf, unsigned within_ms)
{
	char name[NAME_MAX + 1];

	(void)control(leaf->control, leaf->enabled, '-');
	leaf->enabled = leaf->controllers = 0;
	(void)move_to(leaf->procs);
	fd_closep(&leaf->lobby);
	lobby_name(leaf, name, sizeof name);
	if (unlinkat(leaf->home, name, AT_REMOVEDIR) < 0 && errno == EBUSY) {
		autoclose dir = openat(leaf->home, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		wait_empty(dir, (int)within_ms);
		(void)unlinkat(leaf->home, name, AT_REMOVEDIR);
	}
}

int cgroup_leaf_divide(struct cgroup_leaf *leaf, unsigned controllers)
{
	unsigned needed = controllers & ~read_controllers(leaf->home, "cgroup.subtree_control");
	int rc = 0;

	if (needed) {
		if (cgroup_leaf_other(leaf) != 0)
			return -EBUSY;
		rc = leaf->control < 0 ? -EACCES : enter_lobby(leaf);
		if (rc == 0)
			rc = control(leaf->control, needed, '+');
		if (rc == 0)
			leaf->enabled = needed;
	}
	if (rc == 0)
		rc = cgroup_enable(leaf->dir, controllers);
	if (rc == 0)
		leaf->controllers = controllers;
	else if (needed)
		leave_lobby(leaf, 0);
	return rc;
}

static void enter(struct cgroup_leaf *leaf)
{
	autoclose procs = openat(leaf->nest, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	leaf->inside = move_to(procs) == 0;
}

pid_t cgroup_fork(struct cgroup_leaf *leaf)
{
	pid_t pid = leaf->path ? fork_into(leaf->nest) : -1;

	if (pid == 0)
		leaf->inside = true;
	if (pid >= 0)
		return pid;
	pid = fork();
	if (pid == 0 && leaf->path)
		enter(leaf); /* or not: it is a help, like the leaf itself */
	return pid;
}

int cgroup_leaf_leave(struct cgroup_leaf *leaf)
{
	int rc = leaf->inside ? move_to(leaf->lobby >= 0 ? leaf->lobby : leaf->procs) : 0;

	if (rc == 0)
		leaf->inside = false;
	return rc;
}

static int thaw_directory(const char *path, const struct stat *st, int type, struct FTW *where)
{
	char file[PATH_MAX];

	(void)st, (void)where;
	if (type != FTW_D ||
		snprintf(file, sizeof file, "%s/cgroup.freeze", path) >= (int)sizeof file)
		return 0;
	autoclose freeze = open(file, O_WRONLY | O_CLOEXEC);
	if (freeze >= 0)
		(void)fd_write_all(freeze, "0", 1);
	return 0;
}

void cgroup_leaf_thaw(const struct cgroup_leaf *leaf)
{
	struct stat st;

	if (!leaf->path)
		return;
	(void)fd_write_all(leaf->freeze, "0", 1);
	if (fstat(leaf->dir, &st) == 0 && st.st_nlink > 2) /* there are cgroups in it */
		(void)nftw(leaf->path, thaw_directory, 16, FTW_PHYS | FTW_MOUNT);
}

/* The kernel says so of cgroup.events to who polls it, and by inotify, which sends signals. */
int cgroup_leaf_watch(const struct cgroup_leaf *leaf, int signal)
{
	char file[PATH_MAX];
	autoclose watch = leaf->path ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;

	if (watch < 0 ||
		snprintf(file, sizeof file, "%s/cgroup.events", leaf->path) >= (int)sizeof file ||
		inotify_add_watch(watch, file, IN_MODIFY) < 0 ||
		fcntl(watch, F_SETOWN, getpid()) < 0 || fcntl(watch, F_SETSIG, signal) < 0 ||
		fcntl(watch, F_SETFL, O_NONBLOCK | O_ASYNC) < 0)
		return -1;
	return fd_take(&watch);
}

bool cgroup_leaf_was_frozen(const struct cgroup_leaf *leaf, int watch)
{
	char told[sizeof(struct inotify_event) + NAME_MAX + 1];

	if (watch < 0 || read(watch, told, sizeof told) <= 0)
		return false;
	autoclose events = openat(leaf->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return events >= 0 && says(events, "frozen 1");
}

int cgroup_leaf_kill(const struct cgroup_leaf *leaf)
{
	if (!leaf->path)
		return 0;
	if (leaf->inside)
		return -EBUSY;
	return write(leaf->kill, "1", 1) == 1 ? 0 : -errno;
}

/* As it mostly is, empty but for the supervisor's: without a look at what is in it. */
static int remove_leaf(const struct cgroup_leaf *leaf)
{
	(void)unlinkat(leaf->dir, "supervisor", AT_REMOVEDIR);
	return cgroup_remove(leaf->path);
}

int cgroup_leaf_remove(struct cgroup_leaf *leaf, unsigned within_ms)
{
	int rc = leaf->inside ? -EBUSY : leaf->path ? remove_leaf(leaf) : 0;

	fd_closep(&leaf->freeze);
	fd_closep(&leaf->kill); /* there may be no descriptor but this to wait with */
	if (rc == -EBUSY && !leaf->inside) {
		wait_empty(leaf->dir, (int)within_ms);
		rc = cgroup_remove(leaf->path);
	}
	if (leaf->lobby >= 0 && !leaf->inside)
		leave_lobby(leaf, within_ms);
	fd_closep(&leaf->lobby);
	fd_closep(&leaf->dir);
	fd_closep(&leaf->nest);
	fd_closep(&leaf->home);
	fd_closep(&leaf->procs);
	fd_closep(&leaf->control);
	*leaf = (struct cgroup_leaf)CGROUP_LEAF_NONE;
	return rc;
}
