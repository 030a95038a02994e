/* gpu_facts.h - the facts of one GPU, asked one after the other. */
#ifndef LAUNCHD_DAEMON_CHECK_GPU_FACTS_H
#define LAUNCHD_DAEMON_CHECK_GPU_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/check/nvml.h"

struct quick_input;
struct task_answer;

enum { GPU_FACTS = 7 };

/* In the child that asks. */
struct gpu {
	const struct quick_input *in;
	struct nvml_api nvml;
	void *device;
	unsigned present; /* GPUs of this node */
	unsigned visible; /* GPUs of this node that are looked at */
	bool part;        /* the job uses MIG devices of it: others may use the rest */
	char subject[64]; /* "GPU 3" */
	char name[NVML_NAME_SIZE];
	struct task_answer *answer; /* with the findings */
};

/* The name of the n-th check. */
const char *gpu_fact_check(size_t n);

/* Asks them all, and adds a finding for each. */
void gpu_facts(struct gpu *g);

/* How many processes use it, as far as that can be seen, and the first of them; `ret_pid` and
 * `ret_command` stay as they are where there is none. The pid is that of the host, the command ""
 * where this namespace has no such process. */
unsigned gpu_processes(struct gpu *g, unsigned *ret_pid, char ret_command[16]);

/* Whether the GPU is a NUMA node. Its memory is the operating system's then, which keeps pages of
 * processes that have ended, and may use it itself: only a process shows that it is held. */
bool gpu_is_numa(struct gpu *g);

/* Memory in use, in bytes. An enum nvml_return. */
int gpu_memory_used(const struct nvml_api *nvml, void *device, uint64_t *ret);

#endif
