/* head_node.h - launchd --mpirun-hosts: the command by which Open MPI's mpirun starts one launchd
 * on each node. Pure. */
#ifndef LAUNCHD_DAEMON_PLAN_HEAD_NODE_H
#define LAUNCHD_DAEMON_PLAN_HEAD_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/vec.h"

struct arena;
struct failure;
struct hosts;
struct settings;

/* What the command is made of. */
struct head_facts {
	const struct settings *s;
	const char *const *env;
	const struct hosts *hosts; /* the nodes */
	const char *hosts_from;    /* the setting or the file that names them */
	const char *mpirun, *self; /* as the command is to have them */
	const struct vec *words;   /* of our own command line: settings_words_for_nodes() */
	bool root;                 /* mpirun has to be told that this is meant */
};

struct head_plan {
	struct vec argv;
	bool slots;      /* the hosts' slots are their numbers of workers */
	uint64_t kill_s; /* between mpirun's SIGTERM and its SIGKILL; 0: not set by us */
	const char *kill_from;
};

/* Whether the settings ask for it. */
bool head_node_given(const struct settings *s);

/* What contradicts it. -EINVAL with a sentence: mpirun, mpiexec or srun has started this process,
 * or another setting says which nodes there are. Asks for nothing of *f but settings and
 * environment. */
int head_node_check(const struct head_facts *f, struct failure *why);

/* All of it. Variables are handed over by their names, so that the command shows no value.
 * -EINVAL: the hosts can't be mpirun's or contradict the settings, or a word of the command line
 * would divide mpirun's. */
int head_node_make(const struct head_facts *f, struct arena *arena, struct head_plan *ret,
	struct failure *why);

/* Whether a variable of this environment goes to the nodes, as of the len bytes of its name:
 * launchd(1), "By mpirun from one node", has the rule. */
bool head_node_exports(const char *name, size_t len);

#endif
