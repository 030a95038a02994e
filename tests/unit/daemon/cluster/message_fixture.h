/* message_fixture.h - what the tests of messages share. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MESSAGE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MESSAGE_FIXTURE_H

#include <stddef.h>

#include "daemon/cluster/message.h"

/* A copy of its own size of what was written: a byte too far is seen by the sanitizer. */
struct bytes {
	enum message_type type;
	unsigned char *at;
	size_t len;
};

/* What is written of m. To be freed. */
struct bytes bytes_of(const struct message *m);

/* Reads them. */
int read_bytes(const struct bytes *b, struct arena *arena, struct message *ret);

/* Writes m and reads it again; what is returned by pointer is the arena's. No beginning of it is a
 * message, and none with a byte more. */
struct message read_again(const struct message *m, struct arena *arena);

#endif
