/* gpu_phase.c - see gpu_phase.h
 *
 * Ranks are counted through the nodes: each has a line with its number of GPUs, and one without a
 * line has none for everybody. What launchd-nodecheck's processes say to one another goes by a
 * store of node rank 0's, at any free port: NCCL needs such ports as well. */
#include "daemon/check/gpu_phase.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/check/finding_read.h"
#include "daemon/check/gpu_crew.h"
#include "daemon/check/meet.h"
#include "daemon/check/phase.h"
#include "daemon/facts/devices.h"
#include "daemon/facts/gpu.h"
#include "daemon/facts/program.h"
#include "daemon/facts/torch.h"
#include "daemon/os/process.h"
#include "daemon/store/store.h"

enum {
	LIMIT_MS = 300000, /* of all; a good node of 8 GPUs needs about half a minute */
	STEP_S = 40,       /* of each step */
	COUNT_MS = GPUS_LIMIT_MS + 10000, /* until all nodes have said how many GPUs they have */
	REST_MS = 3000,                   /* to tell the result */
	STORE_BYTES = 64 << 20,
	STORE_MS = 10000, /* to open it */
};

int gpu_phase_program(
	const char *const *env, struct arena *arena, const char **ret, struct failure *why)
{
	static const char name[] = "launchd-nodecheck";
	const char *self, *beside = NULL;

	if (program_self(arena, &self) == 0) {
		const char *slash = strrchr(self, '/');

		beside = slash ? arena_printf(arena, "%.*s/%s", (int)(slash - self), self, name) :
				 NULL;
	}
	if (beside && access(beside, X_OK) == 0) {
		*ret = beside;
		return 0;
	}
	if (program_search(arena, env, name, ret) == 0)
		return 0;
	return failure_usage(why,
		"--preflight: there is no %s beside launchd or on PATH: it is built where CUDA's nvcc and "
		"NCCL's header are",
		name);
}

/* --- the store where launchd-nodecheck's processes meet --- */

/* Serves until it is killed, which its parent's end does as well. */
static _Noreturn void serve(const struct phase_input *in, volatile unsigned *ret_port, pid_t parent)
{
	const struct store_config config = {
		.addr = in->meet ? NULL : "127.0.0.1",
		.old = STORE_DIALECT_NONE,
		.memory_max = STORE_BYTES,
	};
	static struct store store;
	static uv_loop_t loop;
	struct failure why = { 0 };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
		uv_loop_init(&loop) < 0 || store_open(&store, &loop, &config, &why) < 0)
		_exit(1);
	for (unsigned i = 0; in->meet && i < in->nnodes; i++)
		if (address_size(&in->addresses[i]) > 0)
			(void)store_allow(&store, &in->addresses[i]);
	*ret_port = store_port(&store);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	_exit(1);
}

/* It tells its port in memory: libuv closes two descriptors of the launcher's in each child that is
 * forked, by numbers which this process has given to others. */
static int start_store(
	const struct phase_input *in, pid_t *ret, unsigned *ret_port, struct failure *why)
{
	static const struct timespec pause = { 0, 1000000 };
	const pid_t self = getpid();
	int64_t until_ms = monotonic_ms() + STORE_MS;
	volatile unsigned *port =
		mmap(NULL, sizeof *port, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t store = port == MAP_FAILED ? -1 : fork();

	if (store < 0)
		return failure_not_started(why, -errno, "a store");
	if (store == 0)
		serve(in, port, self);
	while (*port == 0 && monotonic_left_ms(until_ms) > 0 && waitpid(store, NULL, WNOHANG) == 0)
		(void)nanosleep(&pause, NULL);
	*ret_port = *port;
	*ret = store;
	return *port ? 0 : failure_set(why, -EIO, "its GPUs have no store to meet in");
}

/* --- who has how many --- */

/* This node's first rank, how many there are, and the store's port, of what the nodes say: "8", and
 * node rank 0 "8 41234". */
static void place_among(const struct phase_input *in, struct gpu_crew *ret)
{
	ret->first = ret->ranks = 0;
	for (unsigned node = 0; node < in->nnodes; node++) {
		unsigned count = 0, port = 0;
		char line[MEET_LINE_MAX];

		meet_line(in->meet, node, line);
		(void)sscanf(line, "%u %u", &count, &port);
		count = count < GPU_CREW_MAX ? count : GPU_CREW_MAX;
		if (node == 0)
			ret->store_port = port <= UINT16_MAX ? port : 0;
		if (node < in->node)
			ret->first += count;
		else if (node == in->node)
			ret->count = count;
		ret->ranks += count;
	}
}

static int agree_on_ranks(
	const struct phase_input *in, struct gpu_crew *c, pid_t *ret_store, struct failure *why)
{
	char line[MEET_LINE_MAX];

	c->ranks = c->count;
	if (in->node == 0 && (in->meet || c->count > 1) &&
		start_store(in, ret_store, &c->store_port, why) < 0)
		return why->code;
	if (!in->meet)
		return 0;
	(void)snprintf(line, sizeof line, in->node == 0 ? "%u %u" : "%u", c->count, c->store_port);
	if (meet_others(in->meet, line, in->until_ms) < 0)
		return failure_set(
			why, -ETIMEDOUT, "node rank 0 has not said how many GPUs there are");
	place_among(in, c);
	return 0;
}

/* --- the phase --- */

/* Where the NCCL is that the job's own torch was installed with, unless the user says where; NULL:
 * it has none of its own. */
static const char *nccl_of_torch(const struct phase_input *in, struct arena *arena)
{
	struct failure ignored = { 0 };
	struct program program;
	const char *place, *home;

	if (env_get(in->env, "NCCL_HOME") || settings_flag(in->settings, SET_NO_PYTHON) ||
		program_find(in->settings, in->env, arena, &program, &ignored) < 0)
		return NULL;
	place = torch_place_read(in->env, program.path, arena);
	home = place ? arena_printf(arena, "%s/nvidia/nccl", place) : NULL;
	return home && access(arena_printf(arena, "%s/lib/libnccl.so.2", home), R_OK) == 0 ? home :
											     NULL;
}

static void add_unknown(struct text *ret, const char *text)
{
	static struct findings found;

	found.count = found.left_out = 0;
	findings_add(&found, HEALTH_UNKNOWN, "gpu", "", "%s", text);
	findings_json(&found, NULL, ret);
}

static int run_crew(const struct phase_input *in, const struct gpu_crew *c, struct text *ret,
	struct failure *why)
{
	char host[ADDRESS_TEXT], scoped[ADDRESS_TEXT + 16];
	unsigned scope = in->hub.any.sa_family == AF_INET6 ? in->hub.v6.sin6_scope_id : 0;
	struct gpu_crew crew = *c;
	struct text said = { 0 };
	size_t before = ret->len;
	int rc;

	address_host_text(&in->hub, host);
	(void)snprintf(scoped, sizeof scoped, scope ? "%s%%%u" : "%s", host, scope);
	crew.store_host = in->meet ? scoped : "127.0.0.1";
	rc = gpu_crew_run(&crew, ret, &said, why);
	if (rc == 0 && ret->len == before)
		rc = failure_set(why, -EIO, "launchd-nodecheck has found nothing: %.300s",
			said.len ? text_string(&said) : "it said nothing");
	text_done(&said);
	return rc;
}

static bool are_of_one_model(const struct gpus *gpus)
{
	for (unsigned i = 1; i < gpus->count && i < GPUS_MAX; i++)
		if (strcmp(gpus->at[i].name, gpus->at[0].name) != 0)
			return false;
	return true;
}

/* The name of the first GPU that CUDA shows; NULL: which that is isn't known, or only a part of one
 * is shown (MIG), which has no rates of its own. */
static const char *model_of(
	const struct gpus *gpus, const char *list, const char *order, struct arena *arena)
{
	const char *first = list ? devices_nth(arena, list, 0) : NULL;
	uint64_t number = 0;

	if (first && num_parse(first, 0, gpus->count - 1, &number) < 0) {
		number = GPUS_MAX;
		for (unsigned i = 0; i < gpus->count && i < GPUS_MAX; i++)
			if (strncmp(gpus->at[i].uuid, first, strlen(first)) == 0)
				number = i;
	} else if (!are_of_one_model(gpus) && !devices_are_by_bus(order)) {
		return NULL;
	}
	return number < GPUS_MAX ? gpus->at[number].name : NULL;
}

/* How many the workers see; 0: none, or NVML can't tell, for which why has a sentence. *ret_model:
 * what NVML calls them, "" where it doesn't say; NULL: it isn't known which they are. */
static unsigned visible_gpus(
	const char *const *env, struct arena *arena, const char **ret_model, struct failure *why)
{
	const char *list = env_get(env, CUDA_DEVICES);
	struct gpus gpus = { 0 };
	unsigned count;

	if (gpus_read(true, GPUS_LIMIT_MS, arena, &gpus, why) < 0)
		return 0;
	if (!gpus.known || gpus.count == 0) {
		(void)failure_set(why, -ENODEV, "%s", gpus.said);
		return 0;
	}
	count = devices_visible(list, gpus.count);
	if (count > 0)
		*ret_model = model_of(&gpus, list, env_get(env, CUDA_ORDER), arena);
	return count < GPU_CREW_MAX ? count : GPU_CREW_MAX;
}

/* "node=400,nics=18.5": what the settings demand of this model; NULL: nothing. */
static const char *least_of(const struct settings *s, const char *model, struct arena *arena)
{
	static const struct {
		enum setting_id id;
		const char *name; /* as launchd-nodecheck has it */
	} rates[] = {
		{ SET_CHECK_LEAST_MEMORY, "memory" },
		{ SET_CHECK_LEAST_COMPUTE, "compute" },
		{ SET_CHECK_LEAST_NODE, "node" },
		{ SET_CHECK_LEAST_NICS, "nics" },
		{ SET_CHECK_LEAST_PAIRS, "pairs" },
		{ SET_CHECK_LEAST_JOB, "job" },
	};
	const char *list = NULL;

	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		const struct value *v = settings_of_model(s, rates[i].id, model);

		if (v->text)
			list = arena_printf(arena, "%s%s%s=%s", list ? list : "", list ? "," : "",
				rates[i].name, v->text);
	}
	return list;
}

/* What is sent: the findings of this node. */
static int measure(const struct phase_input *in, struct text *ret, struct failure *why)
{
	struct gpu_crew c = { .env = in->env,
		.keys = "nodecheck/",
		.node = in->node,
		.limit_s = STEP_S,
		.until_ms = in->until_ms - REST_MS };
	struct arena arena = { 0 };
	struct failure none = { 0 };
	const char *model = "";
	pid_t store = 0;
	unsigned gpus = visible_gpus(in->env, &arena, &model, &none);
	int rc;

	/* who has none says so all the same: the others wait for the number */
	if (gpus > 0 && gpu_phase_program(in->env, &arena, &c.program, &none) == 0)
		c.count = gpus;
	c.least = model ? least_of(in->settings, model, &arena) : NULL;
	c.nccl_home = c.count > 0 ? nccl_of_torch(in, &arena) : NULL;
	rc = agree_on_ranks(in, &c, &store, why);
	if (rc == 0 && c.count == 0)
		add_unknown(ret, none.code ? none.text : "NVML shows no GPU");
	else if (rc == 0)
		rc = run_crew(in, &c, ret, why);
	if (store > 0 && !in->meet)
		process_undo(store);
	arena_done(&arena);
	return rc;
}

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	static struct findings found;

	for (unsigned node = 0; node < in->nnodes; node++) {
		int rc = told[node] ? findings_parse(told[node], strlen(told[node]), &found, why) :
				      -ENOENT;

		if (rc < 0 && told[node])
			return rc;
		for (unsigned i = 0; rc == 0 && i < found.count; i++)
			if (found.at[i].health != HEALTH_GOOD)
				charges_add(ret, node, &found.at[i]);
	}
	return ret->failed ? failure_oom(why) : 0;
}

const struct phase gpu_phase = {
	.name = "gpu",
	.limit_ms = LIMIT_MS,
	.meet_ms = COUNT_MS,
	.serves = true,
	.measure = measure,
	.judge = judge,
};
