/* host_lookup.h - the listed hosts whose names mean an address of this machine. */
#ifndef LAUNCHD_DAEMON_FACTS_HOST_LOOKUP_H
#define LAUNCHD_DAEMON_FACTS_HOST_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/facts/own_host.h"

struct arena;
struct failure;
struct hosts;
struct vec;

struct host_answers {
	struct own_hosts own;
	bool is_final;       /* all that was asked has been answered, if only by "no such name" */
	const char *unknown; /* "n1: Name or service not known", the first name that has no
			      * address; NULL: all have one */
};

/* Looks up the names that `wanted` has by their index; addresses are this machine's. That is done
 * by a child process, as resolvers hang, which is killed after limit_ms; names that have no answer
 * for the moment are asked for again until then. What is kept is the arena's. -EAGAIN, -ENOMEM and
 * their like: there is no such process. */
int host_lookup(const struct hosts *hosts, const bool *wanted, const struct vec *addresses,
	uint64_t limit_ms, struct arena *arena, struct host_answers *ret, struct failure *why);

#endif
