/* ras_ask.h - a conversation with NCCL's RAS: a question, and all that comes until it closes the
 * connection. To be had in a process that may hang. */
#ifndef LAUNCHD_DAEMON_BLACKBOX_RAS_ASK_H
#define LAUNCHD_DAEMON_BLACKBOX_RAS_ASK_H

#include <stddef.h>
#include <sys/types.h>

struct text;

enum { RAS_ADDRESS_SIZE = 64 };

/* Where a worker's RAS is. 1: it says so; 0: it doesn't, and ret is untouched; -ENOENT: it has
 * switched RAS off. */
int ras_address_of(pid_t worker, char ret[RAS_ADDRESS_SIZE]);

/* address: "HOST:PORT"; question: lines. -EINVAL: it is no address; -ECONNREFUSED: nobody listens;
 * -EHOSTUNREACH; -ETIMEDOUT, -EMSGSIZE (about max bytes), or an error of read(2): what had come is
 * in the answer. */
int ras_ask(
	const char *address, const char *question, int limit_ms, size_t max, struct text *answer);

#endif
