/* pmix_task.h - size and local rank of the launcher's task, asked of PMIx: prterun has no variables
 * for them.
 */
#ifndef LAUNCHD_DAEMON_FACTS_PMIX_TASK_H
#define LAUNCHD_DAEMON_FACTS_PMIX_TASK_H

struct arena;

struct task_facts {
	unsigned size, local_rank, local_size; /* 0: not known */
	const char *why;                       /* why they are not known; NULL: not asked */
};

/* Asks if the launcher's row says so and there is a server. The text is the arena's. */
struct task_facts pmix_task_read(const char *const *env, struct arena *arena);

#endif
