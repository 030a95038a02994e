/* gate_phase.c - see gate_phase.h */
#include "daemon/check/gate_phase.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/check/command_check.h"
#include "daemon/check/finding_read.h"
#include "daemon/check/gpu_facts.h"
#include "daemon/check/gpu_shown.h"
#include "daemon/check/node_check.h"
#include "daemon/check/phase.h"
#include "daemon/check/quick.h"
#include "daemon/check/spaces.h"
#include "daemon/check/task.h"
#include "daemon/check/xid.h"
#include "daemon/os/nvidia.h"
#include "daemon/os/procfs.h"

enum { LOOK_EVERY_MS = 200, LAST_LOOK_PART = 8, LAST_LOOK_MAX_MS = 1000 };

/* What the tasks share. */
struct gate {
	const struct phase_input *in;
	struct quick_input quick;
	const char *dirs[SPACES];
	uint64_t wait_ms;  /* for what may go away */
	uint64_t limit_ms; /* of each look */
};

static bool may_wait(int64_t until_ms)
{
	const struct timespec pause = { 0, LOOK_EVERY_MS * 1000000L };

	return monotonic_left_ms(until_ms) > 0 && nanosleep(&pause, NULL) == 0;
}

/* --- memory of GPUs --- */

/* How much may be in use: --check-gpu-memory more than before the first attempt. */
static uint64_t most_of(const struct gate *g, const struct gpu *gpu, unsigned number)
{
	uint64_t most = settings_of_model(g->in->settings, SET_CHECK_GPU_MEMORY, gpu->name)->number;

	return most == 0 ? UINT64_MAX : most + xids_level(g->in->xids, number);
}

static void say_held(
	const struct gate *g, struct gpu *gpu, unsigned number, uint64_t used, struct findings *ret)
{
	uint64_t level = xids_level(g->in->xids, number);
	char command[16] = "";
	unsigned pid = 0;

	if (gpu_processes(gpu, &pid, command) == 0 && gpu_is_numa(gpu)) {
		findings_add(ret, HEALTH_UNKNOWN, "gpu_held", gpu->subject,
			"%s of its memory are in use, which may be the operating system's: the GPU is a "
			"NUMA node, and no process that uses it is seen",
			num_size((used - level) & ~(uint64_t)0xfffff).text);
		return;
	}
	findings_add(ret, HEALTH_BAD, "gpu_held", gpu->subject,
		"%s of its memory are still in use after %s s, %s before the job's first attempt",
		num_size((used - level) & ~(uint64_t)0xfffff).text, num_seconds(g->wait_ms).text,
		level ? "beyond what was" : "and nothing was known to be");
	if (pid && ret->count > 0)
		(void)snprintf(ret->at[ret->count - 1].text + strlen(ret->at[ret->count - 1].text),
			sizeof ret->at->text - strlen(ret->at[ret->count - 1].text),
			"; process %u%s%s%s uses it", pid, *command ? " (" : "", command,
			*command ? ")" : "");
}

/* Of a GPU whose MIG devices the job uses, others may hold the rest. */
static bool is_judged(const struct gate *g, struct gpu *gpu, unsigned number)
{
	char uuid[NVML_UUID_SIZE] = "";
	const struct gpu_listed listed = { &gpu->nvml,
		nvml_numbers_are_cudas(&gpu->nvml, g->quick.visible), gpu->device, number,
		gpu->present, uuid };

	if (gpu->nvml.uuid)
		(void)gpu->nvml.uuid(gpu->device, uuid, sizeof uuid);
	return gpu_shown(g->quick.visible, &listed, &gpu->part) > 0 && !gpu->part;
}

/* Whether what is in use may go away. A NUMA node's memory stays the operating system's. */
static bool may_go(struct gpu *gpu)
{
	char command[16];
	unsigned pid;

	return gpu_processes(gpu, &pid, command) > 0 || !gpu_is_numa(gpu);
}

/* One that NVML gives no handle of, and so no UUID: hidden from this container, unless its number
 * is the job's and it is lost. */
static void say_unreached(const struct gate *g, struct gpu *gpu, unsigned number, int error)
{
	const struct gpu_listed listed = { NULL,
		nvml_numbers_are_cudas(&gpu->nvml, g->quick.visible), NULL, number, gpu->present,
		"" };

	if (nvml_is_bad(error) && gpu_shown(g->quick.visible, &listed, &gpu->part) > 0)
		findings_add(&gpu->answer->findings, HEALTH_BAD, "gpu_held", gpu->subject, "%s: %s",
			gpu->answer->step, nvml_words(error));
}

static void look_gpu(const struct gate *g, struct gpu *gpu, unsigned number, int64_t until_ms)
{
	struct findings *ret = &gpu->answer->findings;
	uint64_t used = 0, most;
	int rc;

	task_step(gpu->answer, "nvmlDeviceGetHandleByIndex");
	rc = gpu->nvml.device(number, &gpu->device);
	if (rc != NVML_OK) {
		say_unreached(g, gpu, number, rc);
		return;
	}
	if (gpu->nvml.name)
		(void)gpu->nvml.name(gpu->device, gpu->name, sizeof gpu->name);
	if (!is_judged(g, gpu, number))
		return;
	most = most_of(g, gpu, number);
	task_step(gpu->answer, "nvmlDeviceGetMemoryInfo");
	do
		rc = gpu_memory_used(&gpu->nvml, gpu->device, &used);
	while (rc == NVML_OK && used > most && may_go(gpu) && may_wait(until_ms));
	if (rc != NVML_OK && rc != NVML_NOT_SUPPORTED)
		findings_add(ret, nvml_is_bad(rc) ? HEALTH_BAD : HEALTH_UNKNOWN, "gpu_held",
			gpu->subject, "%s: %s", gpu->answer->step, nvml_words(rc));
	else if (rc == NVML_OK && used > most)
		say_held(g, gpu, number, used, ret);
}

/* Before the job's first attempt: a driver may have been unloaded since. */
static bool had_gpus(const struct gate *g)
{
	return g->in->xids && __atomic_load_n(&g->in->xids->levels, __ATOMIC_ACQUIRE) > 0;
}

static void look_gpus(const struct task *t, struct task_answer *a)
{
	const struct gate *g = t->owner;
	struct gpu gpu = { .in = &g->quick, .answer = a };
	int64_t until_ms = monotonic_ms() + (int64_t)g->wait_ms;
	struct failure why = { 0 };
	int rc;

	task_step(a, "loading NVML");
	if (nvml_load(&gpu.nvml, &why) < 0)
		return;
	task_step(a, "nvmlInit");
	rc = gpu.nvml.init();
	if (nvml_is_absent(rc) && !nvidia_gpus_here() && !had_gpus(g))
		return;
	if (rc == NVML_OK) {
		task_step(a, "nvmlDeviceGetCount");
		rc = gpu.nvml.device_count(&gpu.present);
	}
	if (rc != NVML_OK)
		findings_add(&a->findings, nvml_is_bad(rc) ? HEALTH_BAD : HEALTH_UNKNOWN, t->check,
			"", "%s: %s", a->step, nvml_words(rc));
	for (unsigned i = 0; rc == NVML_OK && i < gpu.present; i++) {
		(void)snprintf(gpu.subject, sizeof gpu.subject, "GPU %u", i);
		look_gpu(g, &gpu, i, until_ms);
	}
}

static void add_gpus(const struct gate *g, struct tasks *all)
{
	const struct task t = {
		.work = look_gpus, .owner = g, .check = "gpu_held", .limit_ms = g->limit_ms
	};

	tasks_add(all, &t);
}

/* --- processes that could not be ended --- */

static void look_process(const struct task *t, struct task_answer *a)
{
	const struct gate *g = t->owner;
	int64_t until_ms = monotonic_ms() + (int64_t)g->wait_ms;
	struct process p;
	bool there;

	do
		there = process_read((pid_t)t->number, &p) == 0 && p.state != 'Z';
	while (there && may_wait(until_ms));
	if (there)
		findings_add(&a->findings, HEALTH_BAD, t->check, t->subject,
			"it can't be ended, as it hangs in the kernel (state %c); it still has what it "
			"holds",
			p.state);
}

static void add_processes(const struct gate *g, struct tasks *all)
{
	for (unsigned i = 0; i < g->in->left_count; i++) {
		struct task t = { .work = look_process,
			.owner = g,
			.number = (unsigned)g->in->left[i],
			.check = "stuck",
			.limit_ms = g->limit_ms };
		char command[16];

		process_command(g->in->left[i], command);
		(void)snprintf(t.subject, sizeof t.subject, "process %u (%s)", t.number, command);
		tasks_add(all, &t);
	}
}

/* --- file systems --- */

static void look_space(const struct task *t, struct task_answer *a)
{
	const struct gate *g = t->owner;
	const struct disk_space *before = g->in->spaces ? &g->in->spaces[t->number] : NULL;
	int64_t until_ms = monotonic_ms() + (int64_t)g->wait_ms;
	struct text why = { 0 };
	enum health health;
	struct statvfs fs;
	int rc;

	do {
		text_done(&why);
		task_step(a, "statvfs");
		rc = statvfs_above(g->dirs[t->number], &fs);
		health = rc < 0 ? HEALTH_GOOD : space_judge(&fs, before, &why);
	} while (health == HEALTH_BAD && may_wait(until_ms));
	if (rc < 0)
		findings_add(&a->findings, rc == -EACCES ? HEALTH_UNKNOWN : HEALTH_BAD, t->check,
			t->subject, "%s", strerror(-rc));
	else if (health != HEALTH_GOOD)
		findings_add(&a->findings, health, t->check, t->subject, "%s", text_string(&why));
	text_done(&why);
}

static void add_spaces(const struct gate *g, struct tasks *all)
{
	for (unsigned i = 0; i < SPACES; i++) {
		struct task t = { .work = look_space,
			.owner = g,
			.number = i,
			.check = "space",
			.limit_ms = g->limit_ms,
			.asks = true };

		if (!g->dirs[i])
			continue;
		text_fit(t.subject, sizeof t.subject, g->dirs[i]);
		tasks_add(all, &t);
	}
}

/* --- the phase --- */

/* The quick phase runs it, where there is one. */
static bool runs_command(const struct settings *s)
{
	return settings_text(s, SET_CHECK_COMMAND) && settings_is(s, SET_PREFLIGHT, "none");
}

static int look(const struct gate *g, struct findings *ret)
{
	struct tasks *all = calloc(1, sizeof *all);
	int rc = all ? tasks_init(all) : -ENOMEM;

	if (rc == 0) {
		add_gpus(g, all);
		add_processes(g, all);
		add_spaces(g, all);
		command_check_add(&g->quick, all);
		tasks_run(all, ret);
		tasks_done(all);
	}
	free(all);
	return rc;
}

static int measure(const struct phase_input *in, struct text *ret, struct failure *why)
{
	static struct findings found;
	uint64_t left_ms = (uint64_t)monotonic_left_ms(in->until_ms);
	uint64_t last_ms = left_ms / LAST_LOOK_PART;
	uint64_t wait_ms = left_ms - (last_ms < LAST_LOOK_MAX_MS ? last_ms : LAST_LOOK_MAX_MS);
	struct gate gate = { .in = in,
		.wait_ms = in->gate_ms < wait_ms ? in->gate_ms : wait_ms,
		.limit_ms = left_ms };
	struct arena arena = { 0 };
	int rc = quick_input_make(in->settings, in->env, true, false, &arena, &gate.quick, why);

	if (rc < 0)
		return rc;
	spaces_list(in->settings, in->env, gate.dirs);
	if (!runs_command(in->settings))
		gate.quick.command = NULL;
	if (gate.quick.command_limit_ms > left_ms)
		gate.quick.command_limit_ms = left_ms;
	rc = look(&gate, &found);
	if (rc < 0)
		return failure_set(why, rc, "the gate can't look: %s", strerror(-rc));
	findings_json(&found, NULL, ret);
	arena_done(&arena);
	return 0;
}

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	static struct findings found;

	(void)why;
	for (unsigned node = 0; node < in->nnodes; node++) {
		struct finding f = { .health = HEALTH_UNKNOWN, .check = "gate" };
		struct failure unread = { 0 };

		if (!told[node])
			continue;
		if (findings_parse(told[node], strlen(told[node]), &found, &unread) < 0) {
			text_fit(f.text, sizeof f.text, unread.text);
			charges_add(ret, node, &f);
			continue;
		}
		for (unsigned i = 0; i < found.count; i++)
			if (found.at[i].health != HEALTH_GOOD)
				charges_add(ret, node, &found.at[i]);
	}
	return 0;
}

const struct phase gate_phase = {
	.name = "gate",
	.strict = true,
	.measure = measure,
	.judge = judge,
};
