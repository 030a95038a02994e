/* command_check.c - see command_check.h */
#include "daemon/check/command_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/check/finding.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/check/verdicts.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"

enum {
	OUTPUT_MAX = 1 << 20, /* of each stream: what follows is read and dropped */
	SPARE_MS = 1000,      /* for ending what it has started */
};

static const char check[] = "command";

/* What comes out of it. */
struct outflow {
	int fd; /* -1: it has ended */
	size_t len;
	char bytes[OUTPUT_MAX + 1];
};

static void on_child(int signal)
{
	(void)signal; /* ends ppoll(2) */
}

/* Takes what is there; an end, or an error, closes it. */
static void take(struct outflow *s)
{
	static char dropped[4096];
	bool room = s->len < OUTPUT_MAX;
	ssize_t n = read(s->fd, room ? s->bytes + s->len : dropped,
		room ? OUTPUT_MAX - s->len : sizeof dropped);

	if (n > 0 && room)
		s->len += (size_t)n;
	else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_closep(&s->fd);
}

static _Noreturn void become(const char *const *argv, int out, int err, pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		(void)execv(argv[0], (char *const *)argv);
	_exit(127);
}

/* Takes what it writes until it has ended. False: its time is over. */
static bool follow(pid_t child, uint64_t limit_ms, struct outflow streams[2], int *ret_status)
{
	int64_t until_ms = monotonic_ms() + (int64_t)limit_ms;
	sigset_t none;

	sigemptyset(&none);
	while (waitpid(child, ret_status, WNOHANG) == 0) {
		struct pollfd polled[2] = { { streams[0].fd, POLLIN, 0 },
			{ streams[1].fd, POLLIN, 0 } };
		int left = monotonic_left_ms(until_ms);
		struct timespec wait = { left / 1000, left % 1000 * 1000000L };

		if (left == 0)
			return false;
		if (ppoll(polled, 2, &wait, &none) <= 0)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (polled[i].revents)
				take(&streams[i]);
	}
	for (size_t i = 0; i < 2; i++) /* what it left in the pipes, which others may hold */
		for (size_t before = SIZE_MAX; streams[i].fd >= 0 && before != streams[i].len;) {
			before = streams[i].len;
			take(&streams[i]);
		}
	return true;
}

/* All that it has started comes to this process, as that is a subreaper. Without memory for their
 * list they end when their parent does: with this process. */
static void end_all(void)
{
	struct pids *below = malloc(sizeof *below);

	while (below) {
		below->count = 0;
		(void)process_children(getpid(), below);
		for (size_t i = 0; i < below->count; i++)
			(void)kill(below->at[i], SIGKILL);
		if (below->count == 0 || waitpid(-1, NULL, 0) <= 0)
			break;
	}
	free(below);
}

static void judge(
	const struct task *t, const struct outflow streams[2], int status, struct findings *ret)
{
	const struct said said = { streams[0].bytes, streams[0].len, streams[1].bytes,
		streams[1].len, status };
	char text[sizeof ret->at->text];
	enum health health = verdict_of(&said, text, sizeof text);

	findings_add(ret, health, t->check, t->subject, "%s", text);
}

static void say_not_started(const struct task *t, struct task_answer *a, int error)
{
	findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject, "it can't be started: %s",
		strerror(error));
}

/* SIGCHLD ends the wait, and who was started by who has gone comes here. */
static int prepare(int out[2], int err[2])
{
	const struct sigaction wakes = { .sa_handler = on_child };
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
		fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(err[0], F_SETFL, O_NONBLOCK) < 0 ||
		sigprocmask(SIG_BLOCK, &chld, NULL) < 0 || sigaction(SIGCHLD, &wakes, NULL) < 0 ||
		prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	return 0;
}

/* In a child that ends afterwards, and its files with it. */
static void run(const struct task *t, struct task_answer *a)
{
	struct outflow *streams = calloc(2, sizeof *streams);
	const struct quick_input *in = t->owner;
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, status = 0;
	int rc = streams ? prepare(out, err) : -ENOMEM;
	pid_t parent = getpid(), child = rc < 0 ? -1 : process_fork_to_exec();

	if (child == 0)
		become(in->command, out[1], err[1], parent);
	if (child < 0) {
		say_not_started(t, a, rc < 0 ? -rc : errno);
		free(streams);
		return;
	}
	(void)close(out[1]);
	(void)close(err[1]);
	streams[0].fd = out[0];
	streams[1].fd = err[0];
	if (follow(child, in->command_limit_ms, streams, &status))
		judge(t, streams, status, &a->findings);
	else
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject,
			"it had not ended after %s s, and was killed",
			num_seconds(in->command_limit_ms).text);
	end_all();
	free(streams);
}

void command_check_add(const struct quick_input *in, struct tasks *all)
{
	struct task t = { .work = run,
		.owner = in,
		.check = check,
		.limit_ms = in->command_limit_ms + SPARE_MS };
	const char *slash;

	if (!in->command)
		return;
	slash = strrchr(in->command[0], '/');
	text_fit(t.subject, sizeof t.subject, slash ? slash + 1 : in->command[0]);
	tasks_add(all, &t);
}
