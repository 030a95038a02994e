/* joined.h - which workers are connected to the store: seen from outside, by the kernel's lists, as
 * nothing that a client says to a store names its rank. Reads /proc. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_JOINED_H
#define LAUNCHD_DAEMON_RUN_WATCH_JOINED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* For each of `count` processes of this node, in ret_joined, whether it or a process below
 * it has an established connection to the port of an IP address; where addr is a name, to that port
 * of any address: a name may have many, and another one for each process. One that has ended, or
 * may not be looked at, has none. -ENOENT: there is no /proc to look in; -ENOMEM; ret_joined is
 * untouched then. */
int joined_look(const pid_t *pids, size_t count, const char *addr, unsigned port, bool *ret_joined);

#endif
