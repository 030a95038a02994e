/* ask_by_signal.h - a source of the black box: workers print their stacks at a signal
 * (--stack-signal). */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_BY_SIGNAL_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_BY_SIGNAL_H

#include <stdbool.h>

struct source_input;
struct source_worker;
struct task_answer;

bool has_stack_signal(const struct source_input *in);

/* Sends the signal to a worker that has a handler for it, and waits until that has returned: what
 * it prints is in the worker's log, and SIGTERM, which may come next, must not cut it off. */
void ask_by_signal(
	const struct source_input *in, const struct source_worker *w, struct task_answer *a);

#endif
