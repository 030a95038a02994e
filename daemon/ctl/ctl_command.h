/* ctl_command.h - launchctl's command line. Pure. */
#ifndef LAUNCHD_DAEMON_CTL_CTL_COMMAND_H
#define LAUNCHD_DAEMON_CTL_CTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct failure;
struct text;

enum ctl_what {
	CTL_LIST,
	CTL_STATUS,
	CTL_LOGS,
	CTL_SIGNAL,
	CTL_STOP,
	CTL_RESTART,
	CTL_REOPEN,
	CTL_ENV,
	CTL_STACK,
	CTL_EVENTS,
	CTL_METRICS,
	CTL_LOGLEVEL,
	CTL_HELP,
	CTL_VERSION,
	CTL_COMMANDS
};

struct ctl_command {
	enum ctl_what what;
	const char *job; /* its name, run ID or guard's pid; NULL: the only one */
	bool json, follow, now, all_nodes;
	uint64_t watch_ms;          /* 0: once */
	unsigned lines;             /* 0: as many as the protocol has by default */
	const char *signal, *level; /* names */
	const unsigned *ranks;      /* in ascending order */
	size_t rank_count;          /* 0: all */
};

/* Reads the words behind the program's name. Errors are usage errors. */
int ctl_command_read(const char *const *words, struct arena *arena, struct ctl_command *ret,
	struct failure *why);

/* --help. */
void ctl_command_help(struct text *out);

/* The completion scripts of launchctl for bash and zsh. */
void ctl_command_bash(struct text *out);
void ctl_command_zsh(struct text *out);

#endif
