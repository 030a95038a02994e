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

int process_close_files(bool on_exec)
{
	const unsigned cloexec = 4; /* CLOSE_RANGE_CLOEXEC, Linux 5.11; without it 5.9 */
	struct dirent *entry;
	DIR *dir;

	if (syscall(SYS_close_range, 3u, ~0u, on_exec ? cloexec : 0) == 0)
		return 0;
	dir = opendir("/proc/self/fd");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */

		if (fd > 2 && on_exec)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* gone already: fine */
		else if (fd > 2 && fd != dirfd(dir))
			(void)close(fd);
	}
	(void)closedir(dir);
	return 1;
}

void process_undo(pid_t child)
{
	(void)kill(child, SIGKILL); /* not reaped yet, so the number is its own */
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}
