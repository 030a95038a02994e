/* family.c - a worker with relatives, all of which tell each signal they get: "NAME NUMBER".
 *
 * $KIN or $KIN_<rank> names them: "child" is in the worker's group, "session" a child in a session
 * of its own, "orphan" has lost its parent, "daemon" is one in a session of its own, and "bare" a
 * daemon with an emptied environment. The worker itself is "worker".
 *
 * TERM, INT, HUP and QUIT end with 0 whom $STAY does not name; the worker ends with $CODE (0), and
 * also when it gets a byte from $GO. With $JOIN it ends its child first, and waits for it. $MUTE
 * names a number that is not told. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "worker.h"

static pid_t joined; /* 0: none */

/* Whether a list of words with blanks between them has this one. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return true;
	return false;
}

static void on_signal(const char *name, int signal)
{
	char number[16], text[64];

	(void)snprintf(number, sizeof number, "%d", signal);
	(void)snprintf(text, sizeof text, "%s %d", name, signal);
	if (!has_word(mine("MUTE", ""), number))
		tell(text);
	if (signal != SIGTERM && signal != SIGINT && signal != SIGHUP && signal != SIGQUIT)
		return;
	if (has_word(mine("STAY", ""), name))
		return;
	if (joined > 0 && kill(joined, SIGTERM) == 0)
		(void)waitpid(joined, NULL, 0);
	_exit(strcmp(name, "worker") == 0 ? atoi(mine("CODE", "0")) : 0);
}

static _Noreturn void live(const char *name, const char *go)
{
	struct pollfd on[2] = { { .fd = -1, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	struct signalfd_siginfo si;
	char text[64], byte;
	sigset_t all;

	(void)sigfillset(&all);
	on[0].fd = signalfd(-1, &all, SFD_CLOEXEC);
	if (go)
		on[1].fd = open(go, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (on[0].fd < 0 || (go && on[1].fd < 0))
		_exit(99);
	(void)snprintf(text, sizeof text, "%s ready", name);
	tell(text);
	while (poll(on, 2, -1) > 0) {
		if (on[0].revents && read(on[0].fd, &si, sizeof si) == (ssize_t)sizeof si &&
			si.ssi_signo != SIGCHLD)
			on_signal(name, (int)si.ssi_signo);
		if (on[1].revents && read(on[1].fd, &byte, 1) == 1)
			_exit(atoi(mine("CODE", "0")));
	}
	_exit(99);
}

/* An environment that the kernel does not show, as it is made after the exec. */
static _Noreturn void live_bare(char **argv)
{
	if (setenv("RANK", argv[1], 1) < 0 || setenv("TELL", argv[2], 1) < 0 ||
		setenv("STAY", argv[3], 1) < 0 || setenv("MUTE", argv[4], 1) < 0)
		_exit(99);
	live("bare", NULL);
}

static _Noreturn void become_bare(void)
{
	char *none[] = { NULL };
	char name[] = "family", stay[128], mute[128];
	char *argv[] = { name, getenv("RANK"), getenv("TELL"), stay, mute, NULL };

	(void)snprintf(stay, sizeof stay, "%s", mine("STAY", ""));
	(void)snprintf(mute, sizeof mute, "%s", mine("MUTE", ""));
	(void)execve("/proc/self/exe", argv, none);
	_exit(99);
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(99);
	return pid;
}

/* Makes one relative; returns when its last parent but the worker has ended. */
static void bear(const char *name)
{
	bool alone = strcmp(name, "child") != 0 && strcmp(name, "orphan") != 0;
	bool near = strcmp(name, "child") == 0 || strcmp(name, "session") == 0;
	pid_t pid = start();

	if (pid > 0) {
		if (strcmp(name, "child") == 0 && getenv("JOIN"))
			joined = pid;
		if (!near)
			(void)waitpid(pid, NULL, 0);
		return;
	}
	joined = 0;
	if (alone && setsid() < 0)
		_exit(99);
	if (!near && start() > 0)
		_exit(0);
	if (strcmp(name, "bare") == 0)
		become_bare();
	live(name, NULL);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "child", "session", "orphan", "daemon", "bare" };
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	if (argc == 5)
		live_bare(argv);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (has_word(mine("KIN", ""), names[i]))
			bear(names[i]);
	live("worker", mine("GO", NULL));
}
