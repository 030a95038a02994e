/* user_command.c - see user_command.h */
#include "daemon/os/user_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/signame.h"
#include "common/text.h"
#include "daemon/os/process.h"

struct tap {
	int fd; /* -1: it has ended */
	size_t len;
	char *to;
};

static void on_child(int signal)
{
	(void)signal; /* ends ppoll(2) */
}

/* False: there is nothing to take now. An end closes it. */
static bool take(struct tap *s)
{
	char bytes[4096];
	ssize_t n = s->fd < 0 ? -1 : read(s->fd, bytes, sizeof bytes);
	size_t room = COMMAND_SAID_BYTES - 1 - s->len;

	if (n == 0)
		fd_closep(&s->fd);
	if (n <= 0)
		return false;
	if (room > (size_t)n)
		room = (size_t)n;
	memcpy(s->to + s->len, bytes, room);
	s->len += room;
	return true;
}

static _Noreturn void become(const char *const *argv, const int outputs[2], pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(outputs[0], STDOUT_FILENO) >= 0 &&
		dup2(outputs[1], STDERR_FILENO) >= 0)
		(void)execv(argv[0], (char *const *)argv);
	_exit(127);
}

/* What it leaves in the pipes is taken, too; who holds them longer is not waited for. */
static int follow(pid_t child, struct tap streams[2], int64_t *ret_said_ms)
{
	int status = 0;
	sigset_t none;

	sigemptyset(&none);
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct pollfd polled[2] = { { streams[0].fd, POLLIN, 0 },
			{ streams[1].fd, POLLIN, 0 } };

		if (ppoll(polled, 2, NULL, &none) <= 0)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (polled[i].revents)
				(void)take(&streams[i]);
		if (*ret_said_ms == 0 && streams[0].len > 0)
			*ret_said_ms = monotonic_ms();
	}
	for (size_t i = 0; i < 2; i++)
		while (streams[i].len < COMMAND_SAID_BYTES - 1 && take(&streams[i]))
			;
	return status;
}

/* SIGCHLD ends the wait. */
static int prepare(struct command_said *ret, struct tap streams[2], int outputs[2])
{
	const struct sigaction wakes = { .sa_handler = on_child };
	sigset_t chld;
	int p[2];

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) < 0 || sigaction(SIGCHLD, &wakes, NULL) < 0)
		return -errno;
	for (size_t i = 0; i < 2; i++) {
		if (pipe2(p, O_CLOEXEC) < 0 || fcntl(p[0], F_SETFL, O_NONBLOCK) < 0)
			return -errno; /* the process ends, and its files with it */
		streams[i] = (struct tap){ .fd = p[0], .to = ret->said[i] };
		outputs[i] = p[1];
	}
	return 0;
}

int command_run(const char *const *argv, struct command_said *ret, const char **ret_what)
{
	struct tap streams[2] = { { .fd = -1 }, { .fd = -1 } };
	int outputs[2] = { -1, -1 }, rc;
	pid_t parent = getpid(), child;

	*ret_what = "pipe";
	rc = prepare(ret, streams, outputs);
	if (rc < 0)
		return rc;
	*ret_what = "fork";
	child = process_fork_to_exec();
	if (child == 0)
		become(argv, outputs, parent);
	if (child < 0)
		return -errno;
	(void)close(outputs[0]);
	(void)close(outputs[1]);
	ret->status = follow(child, streams, &ret->said_ms);
	return 0;
}

struct command_said command_copy(const struct command_said *shared)
{
	struct command_said copy = *shared;

	for (size_t i = 0; i < 2; i++)
		copy.said[i][COMMAND_SAID_BYTES - 1] = '\0';
	return copy;
}

bool command_succeeded(const struct command_said *s)
{
	return WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0;
}

void command_end_add(const struct command_said *s, struct text *out)
{
	if (WIFSIGNALED(s->status))
		text_printf(out, "it was killed by %s", signal_name(WTERMSIG(s->status)));
	else
		text_printf(out, "it exited with code %d", WEXITSTATUS(s->status));
}

void command_words_add(const struct command_said *s, struct text *out)
{
	const char *line = s->said[1] + strspn(s->said[1], " \t\r\n");
	size_t len = strcspn(line, "\r\n");

	if (len == 0)
		return;
	text_add(out, "; it printed: ");
	text_add_shown(out, line, len);
}
