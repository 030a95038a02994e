/* join.h - from settings, facts and plan to what this launcher needs to meet the others. */
#ifndef LAUNCHD_DAEMON_JOIN_H
#define LAUNCHD_DAEMON_JOIN_H

#include <stdbool.h>

struct facts;
struct failure;
struct member_config;
struct notes;
struct plan;
struct settings;
struct topology;

/* Whether the nodes will learn the master address when they meet; of the topology only launcher and
 * identity are there. */
bool join_tells_master(
	const struct settings *s, const struct facts *facts, const struct topology *t);

/* Everything in *ret is borrowed or the settings' arena's. Reads the key's file. argv: main()'s.
 * -EINVAL, -EACCES, -ENOENT: an interface that is not there, a key that is none. */
int join_config(const struct settings *s, const struct facts *facts, const struct topology *t,
	const struct plan *plan, char **argv, struct member_config *ret, struct notes *notes,
	struct failure *why);

#endif
