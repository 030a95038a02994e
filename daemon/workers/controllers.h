/* controllers.h - the kernel's controllers that tell workers' resources apart: texts of their
 * files. Pure. */
#ifndef LAUNCHD_DAEMON_WORKERS_CONTROLLERS_H
#define LAUNCHD_DAEMON_WORKERS_CONTROLLERS_H

#include <stddef.h>
#include <stdint.h>

struct text;
struct worker_limits;

enum controller { CONTROLLER_MEMORY, CONTROLLER_CPU, CONTROLLER_PIDS, CONTROLLERS };

/* A set of controllers. */
#define CONTROLLER_BIT(c) (1u << (c))

/* The set that a list of the kernel's names, in cgroup.controllers or cgroup.subtree_control;
 * others are passed over. */
unsigned controllers_parse(const char *list);

/* "+memory +pids": what is written to cgroup.subtree_control. sign '\0': "memory, pids", for
 * people. */
void controllers_add(struct text *out, unsigned set, char sign);

/* The set that these limits need. */
unsigned limits_need(const struct worker_limits *l);

/* Where the first limit that needs one of this set comes from: "--cgroup-memory". NULL: none
 * does. */
const char *limits_from(const struct worker_limits *l, unsigned set);

/* A file of a worker's cgroup and what it has to say. */
struct limit_file {
	const char *name;
	char text[48];
};

enum { LIMIT_FILES_MAX = 5 };

/* Of these limits; returns how many. With memory.max come: no swap, else who exceeds it would only
 * become slow, and memory.oom.group, so that the kernel ends a worker with all that it has started
 * and not one data loader of it. */
size_t limits_files(const struct worker_limits *l, struct limit_file ret[LIMIT_FILES_MAX]);

#endif
