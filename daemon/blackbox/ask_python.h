/* ask_python.h - sources of the black box: where each worker's Python is. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_ASK_PYTHON_H
#define LAUNCHD_DAEMON_BLACKBOX_ASK_PYTHON_H

struct source_input;
struct source_worker;
struct task_answer;

/* By py-spy, where PATH has one and the worker is a Python. It reads the worker's memory and does
 * not stop it. Leaves python.rank-N.txt. */
void ask_py_spy(
	const struct source_input *in, const struct source_worker *w, struct task_answer *a);

#endif
