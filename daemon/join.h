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

/* Binds ports for what listens in this node's workers: one for each with --tf-config, one more with
 * --jax-env. They are held until this process and those that it forks have ended, so that every
 * attempt has the same; a worker listens there all the same (os/port.h). */
int join_hold_ports(const struct settings *s, const struct topology *t, struct member_config *ret,
	struct failure *why);

#endif
