/* signame.c - see signame.h */
#include "common/signame.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/num.h"

/* sigabbrev_np(3) is of glibc 2.32. */
static const char *const names[] = {
	[SIGHUP] = "SIGHUP",
	[SIGINT] = "SIGINT",
	[SIGQUIT] = "SIGQUIT",
	[SIGILL] = "SIGILL",
	[SIGTRAP] = "SIGTRAP",
	[SIGABRT] = "SIGABRT",
	[SIGBUS] = "SIGBUS",
	[SIGFPE] = "SIGFPE",
	[SIGKILL] = "SIGKILL",
	[SIGUSR1] = "SIGUSR1",
	[SIGSEGV] = "SIGSEGV",
	[SIGUSR2] = "SIGUSR2",
	[SIGPIPE] = "SIGPIPE",
	[SIGALRM] = "SIGALRM",
	[SIGTERM] = "SIGTERM",
	[SIGSTKFLT] = "SIGSTKFLT",
	[SIGCHLD] = "SIGCHLD",
	[SIGCONT] = "SIGCONT",
	[SIGSTOP] = "SIGSTOP",
	[SIGTSTP] = "SIGTSTP",
	[SIGTTIN] = "SIGTTIN",
	[SIGTTOU] = "SIGTTOU",
	[SIGURG] = "SIGURG",
	[SIGXCPU] = "SIGXCPU",
	[SIGXFSZ] = "SIGXFSZ",
	[SIGVTALRM] = "SIGVTALRM",
	[SIGPROF] = "SIGPROF",
	[SIGWINCH] = "SIGWINCH",
	[SIGPOLL] = "SIGPOLL",
	[SIGPWR] = "SIGPWR",
	[SIGSYS] = "SIGSYS",
};

const char *signal_name(int signal)
{
	static char name[32];

	if (signal > 0 && signal < (int)(sizeof names / sizeof *names) && names[signal])
		return names[signal];
	if (signal >= SIGRTMIN && signal <= SIGRTMAX)
		(void)snprintf(name, sizeof name, "SIGRTMIN+%d", signal - SIGRTMIN);
	else
		(void)snprintf(name, sizeof name, "signal %d", signal);
	return name;
}

int signal_number(const char *text, size_t len)
{
	char word[32];
	uint64_t number;

	if (len == 0 || len >= sizeof word)
		return -EINVAL;
	memcpy(word, text, len);
	word[len] = '\0';
	if (num_parse(word, 1, (uint64_t)SIGRTMAX, &number) == 0)
		return (int)number;
	for (int s = 1; s <= SIGRTMAX; s++) {
		const char *name = signal_name(s);

		if (strncmp(name, "SIG", 3) != 0)
			continue; /* 32 and 33 are the threads library's own */
		if (strcasecmp(name, word) == 0 || strcasecmp(name + 3, word) == 0)
			return s;
	}
	return -EINVAL;
}
