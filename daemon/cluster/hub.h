/* hub.h - node rank 0's side of the control channel: it hears all nodes, decides by job.h, and
 * tells all what follows. A job that nobody dials has a hub, too. */
#ifndef LAUNCHD_DAEMON_CLUSTER_HUB_H
#define LAUNCHD_DAEMON_CLUSTER_HUB_H

#include "daemon/cluster/hub_parts.h"

/* Begins: alone, at once; else where others may dial, at that port (0: a free one) and at these
 * addresses only (none: at any). Then it is a part of the party. */
int hub_start(struct hub *h, struct party *p, const struct addresses *bound, unsigned port,
	struct failure *why);

/* What happens on this node; see member.h. */
void hub_failed(struct hub *h, const struct outcome *o);
void hub_asked(struct hub *h, const struct stop *s);
void hub_checked(struct hub *h);
void hub_ended(
	struct hub *h, const struct node_end *end, const struct evidence *list, size_t count);

/* A node's workers have come to a new step; see member.h. */
void hub_step(struct hub *h, unsigned node, uint64_t step, uint64_t at_ns);

/* Asks the other nodes how they are; see member.h. */
size_t hub_query(struct hub *h, unsigned query, bool *ret);

/* The hub's port, once it listens. */
unsigned hub_port(const struct hub *h);

/* Whether a link of this session leads here. */
bool hub_has_session(const struct hub *h, uint64_t session);

/* Closes everything; the party hears party_part_closed() when nothing is left in the loop. */
void hub_close(struct hub *h);

/* After hub_close(): waits no longer until the others have read what they were told. */
void hub_hurry(struct hub *h);

#endif
