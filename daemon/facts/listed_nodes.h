/* listed_nodes.h - the nodes that [cluster] lists, and which of them this machine is. */
#ifndef LAUNCHD_DAEMON_FACTS_LISTED_NODES_H
#define LAUNCHD_DAEMON_FACTS_LISTED_NODES_H

#include "config/hosts.h"
#include "config/settings.h"
#include "daemon/facts/host_lookup.h"

struct arena;
struct failure;
struct vec;

struct listed_nodes {
	struct hosts hosts;   /* none: nothing is listed */
	enum setting_id id;   /* the setting that does it */
	const char *where;    /* "job.ini:4", "--cluster-nodes"; of a host file, its name */
	struct own_hosts own; /* of the hosts; none where the rank is given */
	bool asked_names;     /* their names have been looked up: own is from answers */
	struct host_answers answers;
};

/* Whether a list is to be read: the settings have one, and --standalone doesn't set it aside. */
bool listed_nodes_given(const struct settings *s);

/* Reads the list, and finds this machine in it by its name and addresses; only where these don't
 * tell, names are looked up, for at most as long as nodes are waited for, and 30 s. What is kept is
 * the arena's. -EINVAL with a sentence: the file can't be read, has what is no host or one twice,
 * or a loopback address among several hosts. That this machine isn't in it is no failure here. */
int listed_nodes_read(const struct settings *s, const char *hostname, const struct vec *addresses,
	struct arena *arena, struct listed_nodes *ret, struct failure *why);

/* Reads a host file into *ret. label begins the sentence about a file that can't be read. -EINVAL.
 */
int host_file_read(const char *label, const char *path, struct arena *arena, struct hosts *ret,
	struct failure *why);

#endif
