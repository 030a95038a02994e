/* quick_look.h - what /proc tells of all workers at once, fast enough to be asked before SIGTERM
 * goes out. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_QUICK_LOOK_H
#define LAUNCHD_DAEMON_BLACKBOX_QUICK_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct quick_look {
	pid_t pid; /* the owner's; 0: it does not run */
	bool known;
	char state;        /* as proc(5) has it */
	char wait[48];     /* where in the kernel it waits; "": it doesn't, or it may not be read */
	char call[24];     /* its system call; "": it is in none, or it may not be read */
	uint64_t cpu_ms;   /* of all its threads */
	uint64_t io_bytes; /* read and written, from files and sockets; 0: may not be read */
	uint64_t threads;
	uint64_t at_ns; /* CLOCK_MONOTONIC */
};

/* Looks at each, until so much time has passed; who was not reached is not known. It reads nothing
 * that needs a lock of the process' memory. Returns how many were looked at. */
size_t quick_look(struct quick_look *all, size_t count, uint64_t limit_ns);

/* The name of a system call by what /proc/PID/syscall holds; "" where it is in none. Pure. */
void quick_look_call(const char *text, char *ret, size_t room);

#endif
