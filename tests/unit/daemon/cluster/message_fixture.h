/* message_fixture.h - what the tests of messages share. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MESSAGE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_CLUSTER_MESSAGE_FIXTURE_H

#include <stddef.h>

#include "daemon/cluster/message.h"

struct wire_out;

/* A copy of its own size of what was written: a byte too far is seen by the sanitizer. */
struct message {
	unsigned char *at;
	size_t len;
};

/* To be freed; w is empty again. */
struct message message_of(struct wire_out *w);

/* The message is one of that type, no beginning of it is, and none with a byte more. Frees it. */
void assert_whole(enum message_type type, struct message *m);

#endif
