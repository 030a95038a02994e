/* input.h - what a run is started with. */
#ifndef LAUNCHD_DAEMON_RUN_INPUT_H
#define LAUNCHD_DAEMON_RUN_INPUT_H

#include <stdbool.h>

struct arena;
struct bus;
struct failure;
struct guard;
struct inherited;
struct meeting;
struct member_config;
struct meter;
struct notify;
struct output;
struct plan;
struct reporter;
struct settings;

struct run_input {
	/* where nodes have yet to meet, its ranks and addresses are provisional */
	const struct plan *plan;
	const struct settings *settings; /* for the check of nodes */
	const struct member_config *member;
	const struct inherited *inherited;
	struct guard *guard; /* as guard_fork() left it in the supervisor; its pipe is taken over */
	struct arena *arena;
	/* The nodes have met: the final plan. NULL: there is none, why says so. */
	const struct plan *(*bind)(void *owner, const struct meeting *m, struct failure *why);
	void *owner;

	struct output *output; /* its thread writes what workers write */
	bool status;     /* a line on the terminal tells how far workers are, while they start */
	struct bus *bus; /* what happens is told there */
	struct meter *meter;
	struct notify *notify;
	struct reporter *reporter; /* whose level can be changed */
	const char *hostname;
};

#endif
