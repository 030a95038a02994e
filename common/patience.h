/* patience.h - a wait with a limit, which a signal that asks for the end cuts short: for the last
 * things of a process, which may hang: a reader's pipe, a file server. */
#ifndef LAUNCHD_COMMON_PATIENCE_H
#define LAUNCHD_COMMON_PATIENCE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* The longest wait for a reader or a file system at the end, and what is left of it once somebody
 * asks for the end. */
enum { PATIENCE_MOST_MS = 10000, PATIENCE_ASKED_MS = 1000 };

struct patience {
	int64_t until_ms;
};

/* From now on one of these signals, which are blocked, cuts every wait to PATIENCE_ASKED_MS. They
 * stay pending. NULL: no signal cuts one. */
void patience_heed(const sigset_t *asked);

/* A wait of that long begins. */
struct patience patience_begin(int64_t ms);

/* For how long to wait before this is asked again; 0: it is over. */
int patience_slice_ms(struct patience *p);

/* How long it may take at the end where workers have that grace: 1 to 10 s. */
int64_t patience_for_ms(uint64_t grace_ms);

/* Writes to a pipe, a socket or a terminal as long as it takes anything within ms. Returns 0, or
 * negative errno; -EAGAIN: it took nothing for so long. */
int patience_write(int fd, const char *bytes, size_t len, int64_t ms);

#endif
