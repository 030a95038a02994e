/* preempt_watch.h - --preempt-watch: a command of the user's that ends with 0 when this node is
 * about to be preempted, and prints how many seconds are left.
 *
 * What it prints counts once it exits: one that prints a time and stays is warned of.
 *
 * It runs below a child of its own, which takes what it prints. One that fails is run again, later
 * each time. Without the setting there is neither a process nor a timer. */
#ifndef LAUNCHD_DAEMON_RUN_PREEMPT_WATCH_H
#define LAUNCHD_DAEMON_RUN_PREEMPT_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/os/helper.h"

struct bus;

/* Begins as { 0 }. */
struct preempt_watch {
	/* the owner's, before it starts; all are borrowed */
	const char *const *command; /* the first word is a path */
	const struct bus *bus;
	char **argv;        /* as struct helper has it */
	uint64_t preset_ms; /* the time that is left where the command says none */
	uint64_t stay_ms;   /* a command that has printed a time, and runs on, is warned of then */
	/* The node is to be preempted. */
	void (*announce)(void *owner, uint64_t left_ms);
	void *owner;

	/* private */
	struct helper helper;
	uv_timer_t again; /* between two runs */
	uv_timer_t stays; /* while it runs */
	bool open, warned, stay_warned;
	uint64_t began_ms, pause_ms;
};

/* Runs the command. */
void preempt_watch_start(struct preempt_watch *w, uv_loop_t *loop);

/* Ends it; also where it never ran. The loop runs on until it has ended. */
void preempt_watch_stop(struct preempt_watch *w);

#endif
