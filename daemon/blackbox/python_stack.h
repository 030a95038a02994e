/* python_stack.h - where a Python process is, out of what `py-spy dump` prints. Pure. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_PYTHON_STACK_H
#define LAUNCHD_DAEMON_BLACKBOX_PYTHON_STACK_H

#include <stdbool.h>
#include <stddef.h>

struct text;

/* Adds "idle in wait (threading.py:320), from all_reduce (distributed_c10d.py:2050), main
 * (train.py:40)" of the main thread, or of the first one where none is called that. False: there
 * is no thread in it, and nothing is added. */
bool python_stack_read(const char *dump, size_t len, struct text *out);

#endif
