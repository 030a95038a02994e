/* ask_threads.h - a source of the black box: what each thread of a worker does in the kernel. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_THREADS_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_THREADS_H

struct source_input;
struct source_worker;
struct task_answer;

/* Leaves threads.rank-N.txt. */
void ask_threads(
	const struct source_input *in, const struct source_worker *w, struct task_answer *a);

#endif
