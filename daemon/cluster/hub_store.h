/* hub_store.h - the workers' store in node rank 0's launcher: opened before anybody is told of it,
 * closed when the job is over. */
#ifndef LAUNCHD_DAEMON_CLUSTER_HUB_STORE_H
#define LAUNCHD_DAEMON_CLUSTER_HUB_STORE_H

struct failure;
struct hub;

/* Opens it at hub->master_addr, where only the job's nodes may connect; hub->master_port is its
 * port then. */
int hub_store_open(struct hub *h, struct failure *why);

/* A key space for the next attempt. */
void hub_store_renew(struct hub *h);

/* Connections of this attempt so far; 0 without a store. */
unsigned hub_store_clients(const struct hub *h);

/* Closes it, also where it was never opened. */
void hub_store_close(struct hub *h);

#endif
