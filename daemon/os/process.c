/* process.c - see process.h */
#include "daemon/os/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/kernel.h"
#include "daemon/os/shed.h"

static int signals_init(sigset_t *ret_ignored)
{
	sigemptyset(ret_ignored);
	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa;

		if (sigaction(s, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			sigaddset(ret_ignored, s);
	}
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	return 0;
}

/* A stack that is too small ends in SIGSEGV, without a word about why. */
static int check_stack(struct failure *why)
{
	enum { LEAST_KB = 256 }; /* we need less than half of that */
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur / 1024 >= LEAST_KB)
		return 0;
	return failure_set(why, -ENOMEM,
		"the stack is limited to %llu KB (ulimit -s): launchd needs %d KB",
		(unsigned long long)stack.rlim_cur / 1024, LEAST_KB);
}

int process_init(struct inherited *ret, struct failure *why)
{
	int rc = fd_open_standard();
	struct rlimit raised;

	shed_loader();
	if (rc < 0)
		return failure_set(why, -EIO, "/dev/null: %s", strerror(-rc));
	rc = check_stack(why);
	if (rc < 0)
		return rc;
	rc = signals_init(&ret->ignored);
	if (rc < 0)
		return failure_set(why, -EIO, "sigaction: %s", strerror(-rc));
	if (getrlimit(RLIMIT_NOFILE, &ret->nofile) < 0)
		return failure_set(why, -EIO, "getrlimit: %s", strerror(errno));
	raised = ret->nofile;
	raised.rlim_cur = raised.rlim_max;
	/* refused if the hard limit is above fs.nr_open: then the soft limit stays */
	ret->nofile_raised =
		raised.rlim_cur != ret->nofile.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0;
	return 0;
}

void process_restore(const struct inherited *inherited)
{
	if (sigismember(&inherited->ignored, SIGPIPE) != 1)
		(void)signal(SIGPIPE, SIG_DFL);
	if (inherited->nofile_raised)
		(void)setrlimit(RLIMIT_NOFILE, &inherited->nofile);
}

void process_rename(char **argv, const char *name)
{
	char *end = argv[0];
	size_t room, len = strlen(name);

	(void)prctl(PR_SET_NAME, name); /* cut at 15 bytes */
	for (char **arg = argv; *arg && *arg == end; arg++)
		end = *arg + strlen(*arg) + 1; /* the kernel puts them one behind the other */
	room = (size_t)(end - argv[0]);
	if (room == 0)
		return;
	memset(argv[0], 0, room);
	memcpy(argv[0], name, len < room ? len : room - 1);
}

static void close_file(int fd, bool on_exec)
{
	if (on_exec)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* not open: fine */
	else
		(void)close(fd);
}

/* Without /proc to list them: every number, of which nobody has a million. */
static int close_numbers(bool on_exec)
{
	enum { MOST = 1 << 20 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	for (int fd = 3; fd < (limit.rlim_cur < MOST ? (int)limit.rlim_cur : MOST); fd++)
		close_file(fd, on_exec);
	return 1;
}

int process_close_files(bool on_exec)
{
	struct dirent *entry;
	DIR *dir;

	if (syscall(SYS_close_range, 3u, ~0u, on_exec ? (unsigned)RANGE_CLOEXEC : 0) == 0)
		return 0;
	dir = opendir("/proc/self/fd");
	if (!dir)
		return close_numbers(on_exec);
	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */

		if (fd > 2 && fd != dirfd(dir))
			close_file(fd, on_exec);
	}
	(void)closedir(dir);
	return 1;
}

int process_set_apart(pid_t parent, int input, int output, const char **ret_what)
{
	const struct rlimit no_core = { 0 };
	int from = input ? input : open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;
	int rc;

	sigemptyset(&none);
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL); /* KILL, STOP and the C library's own can't be */
	(void)signal(SIGPIPE, SIG_IGN);   /* a server that has gone is an error, no reason to die */
	*ret_what = "prctl";
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -errno;
	if (getppid() != parent)
		_exit(1);
	*ret_what = "/dev/null";
	if (from < 0 || dup2(from, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		return -errno;
	(void)setrlimit(
		RLIMIT_CORE, &no_core); /* nobody looks for a library's core by his script */
	*ret_what = "/proc/self/fd";
	rc = process_close_files(false);
	return rc < 0 ? rc : 0;
}

pid_t process_fork_to_exec(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

void process_undo(pid_t child)
{
	(void)kill(child, SIGKILL); /* not reaped yet, so the number is its own */
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}
