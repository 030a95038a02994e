/* signame.h - names of signals, both ways. */
#ifndef LAUNCHD_COMMON_SIGNAME_H
#define LAUNCHD_COMMON_SIGNAME_H

#include <stddef.h>

/* "SIGTERM", "SIGRTMIN+3"; "signal 99" for what has no name. Valid until the next call. */
const char *signal_name(int signal);

/* The signal that a text names: "TERM", "SIGTERM", "sigterm", "RTMIN+3", "15". -EINVAL: none. */
int signal_number(const char *text, size_t len);

#endif
