/* child.c - see child.h. Nothing here may allocate, lock, or call what is not in
 * signal-safety(7); a test lists the symbols this file uses. */
#include "daemon/workers/child.h"

#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

static int failed(struct child *c, enum stage stage)
{
	c->error = errno;
	c->failed = stage;
	return 127;
}

/* Puts the descriptors at 0, 1, 2. The launcher's numbers are all above 2. */
static int place_stdio(const struct child *c)
{
	for (int fd = 0; fd < 3; fd++)
		if (c->stdio[fd] >= 0 && dup2(c->stdio[fd], fd) < 0)
			return -1;
	return 0;
}

/* Default for all but what the launcher found ignored (nohup's HUP); never for CHLD, which would
 * lose exit codes, nor for TERM, which would make every stop a kill. */
static int reset_signals(const struct child *c)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa = { .sa_handler = SIG_DFL };

		if (s == SIGKILL || s == SIGSTOP)
			continue;
		if (s != SIGCHLD && s != SIGTERM && sigismember(&c->heritage->ignored, s) == 1)
			sa.sa_handler = SIG_IGN;
		if (sigaction(s, &sa, NULL) < 0 && errno != EINVAL) /* glibc keeps 32 and 33 */
			return -1;
	}
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((no_sanitize("address", "undefined"))) int child_main(void *arg)
{
	struct child *c = arg;

	if (setsid() < 0)
		return failed(c, STAGE_SESSION);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return failed(c, STAGE_PARENT_DEATH);
	if (getppid() != c->parent) /* the launcher died before the call above */
		return failed(c, STAGE_PARENT_GONE);
	if (place_stdio(c) < 0)
		return failed(c, STAGE_STDIO);
	if (setrlimit(RLIMIT_NOFILE, &c->heritage->nofile) < 0)
		return failed(c, STAGE_LIMITS);
	if (reset_signals(c) < 0)
		return failed(c, STAGE_SIGNALS);
	execve(c->program, c->argv, c->env);
	return failed(c, STAGE_EXEC);
}
