/* message_wire.h - what several messages are made of. Pure.
 *
 * What is read is bounded field by field: a value that no launcher writes fails the message. */
#ifndef LAUNCHD_DAEMON_CLUSTER_MESSAGE_WIRE_H
#define LAUNCHD_DAEMON_CLUSTER_MESSAGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/net/wire.h"

struct cause;
struct outcome;

enum { OUTCOME_BYTES = 68 }; /* of one outcome in a message */

/* A line of text, as it will be shown: cut to room - 1 bytes, with '?' for control characters.
 * Reading fails at one of these: nobody writes to a user's terminal from another node. */
void wire_put_line(struct wire_out *w, const char *s, size_t room);
void wire_get_line(struct wire_in *w, char *ret, size_t room);

void wire_put_bool(struct wire_out *w, bool value);
bool wire_get_bool(struct wire_in *w);

/* A number below `end`, in one byte. */
unsigned wire_get_below(struct wire_in *w, unsigned end);

void wire_put_cause(struct wire_out *w, const struct cause *c);
void wire_get_cause(struct wire_in *w, struct cause *ret);

void wire_put_outcome(struct wire_out *w, const struct outcome *o);
void wire_get_outcome(struct wire_in *w, struct outcome *ret);

#endif
