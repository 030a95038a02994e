/* question.c - see question.h */
#include "daemon/os/question.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/patience.h"
#include "daemon/os/helper.h"

/* Holds back the signals that would end this process at once, so that its child is reaped first.
 * Returns a descriptor that is readable when one has come. */
static int question_hold_signals(sigset_t *ret_before)
{
	static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	struct sigaction now;
	sigset_t held;

	sigemptyset(&held);
	(void)sigprocmask(SIG_BLOCK, NULL, ret_before);
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
		if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
			sigismember(ret_before, ending[i]) == 0)
			sigaddset(&held, ending[i]);
	(void)sigprocmask(SIG_BLOCK, &held, NULL);
	return signalfd(-1, &held, SFD_CLOEXEC); /* failed: they come when the limit is over */
}

/* They come now. */
static void question_release_signals(int held, const sigset_t *before)
{
	fd_closep(&held);
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

/* Whole, or not in time, or the child has died, or a signal has come to `held`. */
static int question_hear(const struct question *q, int from, int held, void *answer, size_t size,
	struct failure *why)
{
	struct patience patience = patience_begin((int64_t)q->limit_ms);
	size_t len = 0;

	while (len < size) {
		struct pollfd p[] = { { .fd = from, .events = POLLIN },
			{ .fd = held, .events = POLLIN } };
		int slice = patience_slice_ms(&patience), n = slice > 0 ? poll(p, 2, slice) : 0;
		ssize_t got;

		if (slice > 0 && (n == 0 || (n < 0 && errno == EINTR)))
			continue;
		if (n <= 0)
			return failure_set(why, -ETIMEDOUT, "%s has not answered within %s s%s",
				q->whom, num_seconds(q->limit_ms).text, q->hint);
		if (p[1].revents)
			return failure_set(
				why, -EINTR, "a signal came while %s was asked", q->whom);
		got = read(from, (char *)answer + len, size - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return failure_set(
				why, -EIO, "%s: the process that asked it died", q->whom);
		len += (size_t)got;
	}
	return 0;
}

/* Killed, a child in a system call that a driver doesn't return from stays: it is left to whoever
 * inherits it. Its end of the pipe closes when it goes. */
static void question_end(pid_t child, int from)
{
	enum { PATIENCE_MS = 1000 };
	struct pollfd p = { .fd = from };
	int n;

	(void)kill(child, SIGKILL);
	do
		n = poll(&p, 1, PATIENCE_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		helper_lose(child);
		return;
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* In the child: a library finds neither a file of the launcher's nor a blocked signal, and whoever
 * reads the launcher's output doesn't wait for a child that hangs. Returns where the answer goes.
 */
static int question_be_apart(int to, int kept)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = kept > 0 ? fcntl(kept, F_DUPFD_CLOEXEC, QUESTION_KEPT + 1) : -1;
	sigset_t none;

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -1;
	if (to != 3 && dup3(to, 3, O_CLOEXEC) < 0)
		return -1;
	if (kept > 0 && (high < 0 || dup3(high, QUESTION_KEPT, O_CLOEXEC) < 0))
		return -1;
	/* an older kernel leaves them open, which does no harm */
	(void)syscall(SYS_close_range, QUESTION_KEPT + (kept > 0), ~0u, 0u);
	return 3;
}

/* Forks a child that dies with this process. Returns its pid, and in the child 0, with one end of a
 * pipe between them in *ret_end: where the child writes, and where its parent reads. Negative
 * errno, which is said: `what` is what could not be started. */
static pid_t question_fork(const char *what, int *ret_end, struct failure *why)
{
	pid_t parent = getpid(), child;
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return failure_set(why, -errno, "can't make a pipe: %s", strerror(errno));
	child = fork();
	if (child == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(1);
	rc = child < 0 ? failure_not_started(why, -errno, what) : 0;
	fd_closep(&ends[child != 0]);
	if (rc < 0)
		fd_closep(&ends[0]);
	*ret_end = ends[child == 0];
	return rc < 0 ? rc : child;
}

int question_ask(const struct question *q, void *answer, size_t size, struct failure *why)
{
	char what[64];
	sigset_t before;
	pid_t child;
	int end = -1, held, rc;

	memset(answer, 0, size);
	(void)snprintf(what, sizeof what, "a process that asks %s", q->whom);
	held = question_hold_signals(&before);
	child = question_fork(what, &end, why);
	if (child < 0) {
		question_release_signals(held, &before);
		return child;
	}
	if (child == 0) {
		int to = question_be_apart(end, q->kept);

		q->work(q->how, answer);
		_exit(to < 0 || fd_write_all(to, answer, size) < 0);
	}
	rc = question_hear(q, end, held, answer, size, why);
	question_end(child, end);
	fd_closep(&end);
	question_release_signals(held, &before);
	return rc;
}

/* In the child: becomes the program, whose process group it leads. */
static _Noreturn void question_exec(const char *const *argv, const char *const *env, int to)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t no_signals;

	sigemptyset(&no_signals);
	if (none >= 0 && setpgid(0, 0) == 0 && dup2(none, 0) == 0 && dup2(to, 1) == 1 &&
		dup2(none, 2) == 2 && sigprocmask(SIG_SETMASK, &no_signals, NULL) == 0)
		(void)execve(argv[0], (char *const *)argv, (char *const *)env);
	_exit(127);
}

/* Whether it has exited; it stays to be reaped. *ret_code: as a shell has it. */
static bool question_has_exited(pid_t child, int *ret_code)
{
	siginfo_t about = { 0 };

	*ret_code = 0;
	if (waitid(P_PID, (id_t)child, &about, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		about.si_pid == 0)
		return false;
	*ret_code = about.si_code == CLD_EXITED ? about.si_status : 128 + about.si_status;
	return true;
}

/* Reads until the program closes its stdout, or exits while another process has it open. Returns
 * how much that is. */
static size_t question_read_all(const char *program, pid_t child, int from, int held,
	uint64_t limit_ms, char *ret, size_t size, struct failure *why)
{
	enum { LOOK_MS = 50 };
	int64_t until_ms = monotonic_ms() + (int64_t)limit_ms;
	size_t len = 0;
	int code;

	for (;;) {
		struct pollfd p[] = { { .fd = from, .events = POLLIN },
			{ .fd = held, .events = POLLIN } };
		int left = monotonic_left_ms(until_ms);
		/* before the look at the pipe, which then has all that it wrote */
		bool exited = question_has_exited(child, &code);
		int n = poll(p, 2, exited ? 0 : left < LOOK_MS ? left : LOOK_MS);
		char rest[512];
		bool room = len < size - 1;
		ssize_t got = 0;

		if (n > 0 && p[1].revents) {
			(void)failure_set(why, -EINTR, "a signal came while %s ran", program);
			return len;
		}
		if (n > 0)
			got = read(
				from, room ? ret + len : rest, room ? size - 1 - len : sizeof rest);
		if ((n < 0 || got < 0) && errno != EINTR) {
			(void)failure_set(why, -errno, "%s: %s", program, strerror(errno));
			return len;
		}
		if ((n > 0 && got == 0) || (n == 0 && exited))
			return len;
		if (got > 0 && room)
			len += (size_t)got;
		if (left == 0) {
			(void)failure_set(why, -ETIMEDOUT, "%s has not ended within %s s", program,
				num_seconds(limit_ms).text);
			return len;
		}
	}
}

int question_run(const char *const *argv, const char *const *env, uint64_t limit_ms, char *ret,
	size_t size, struct failure *why)
{
	enum { EXIT_MS = 100 }; /* from the end of stdout to the exit */
	sigset_t before;
	pid_t child;
	int end = -1, held, code = 0;
	size_t len;

	held = question_hold_signals(&before);
	child = question_fork(argv[0], &end, why);
	if (child < 0) {
		question_release_signals(held, &before);
		return child;
	}
	if (child == 0)
		question_exec(argv, env, end);
	len = question_read_all(argv[0], child, end, held, limit_ms, ret, size, why);
	for (int ms = 0; why->code == 0 && ms < EXIT_MS && !question_has_exited(child, &code); ms++)
		(void)poll(NULL, 0, 1);
	if (code != 0)
		(void)failure_set(why, -EIO, "%s ended with exit code %d", argv[0], code);
	(void)kill(-child, SIGKILL); /* all in its group; before it is reaped */
	question_end(child, end);
	fd_closep(&end);
	question_release_signals(held, &before);
	ret[len] = '\0';
	return why->code;
}
