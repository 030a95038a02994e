/* gpu_phase.c - see gpu_phase.h
 *
 * Ranks are counted through the nodes: each says how many GPUs it has (count/NODE), and node rank 0
 * tells all of them (counts), so that a node that says nothing has none for everybody. */
#include "daemon/check/gpu_phase.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/check/finding_read.h"
#include "daemon/check/gpu_crew.h"
#include "daemon/check/phase.h"
#include "daemon/facts/devices.h"
#include "daemon/facts/gpu.h"
#include "daemon/facts/program.h"
#include "daemon/facts/torch.h"
#include "daemon/os/process.h"
#include "daemon/store/store.h"
#include "daemon/store/visit.h"

enum {
	LIMIT_MS = 300000, /* of all; a good node of 8 GPUs needs about half a minute */
	STEP_S = 40,       /* of each step */
	COUNT_MS = GPUS_LIMIT_MS + 10000, /* until all nodes have said how many GPUs they have */
	REST_MS = 3000,                   /* to tell the result */
	KEY_MAX = 128,
	STORE_BYTES = 64 << 20,
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

static void count_key(const struct phase_input *in, unsigned node, char *ret)
{
	(void)snprintf(ret, KEY_MAX, "%scount/%u", in->keys, node);
}

/* As node rank 0: what all say, "8 8 0 8". */
static int gather_counts(
	const struct phase_input *in, unsigned own, struct text *ret, struct failure *why)
{
	int64_t until_ms = monotonic_ms() + COUNT_MS;

	text_printf(ret, "%u", own);
	for (unsigned node = 1; node < in->nnodes; node++) {
		struct text said = { 0 };
		char key[KEY_MAX];
		uint64_t count = 0;
		int rc;

		count_key(in, node, key);
		rc = visit_get(in->visit, key, monotonic_left_ms(until_ms), &said, why);
		if (rc == 0 && num_parse(text_string(&said), 0, GPU_CREW_MAX, &count) < 0)
			count = 0;
		text_done(&said);
		if (rc < 0 && (rc != -ETIMEDOUT || why->code))
			return rc;
		text_printf(ret, " %u", (unsigned)count);
	}
	return 0;
}

/* This node's first rank, and how many there are, of "8 8 0 8". */
static int place_among(const char *counts, unsigned node, struct gpu_crew *ret, struct failure *why)
{
	const char *at = counts;

	ret->first = ret->ranks = 0;
	for (unsigned n = 0; *at; n++) {
		size_t len = strcspn(at, " ");
		uint64_t count;

		if (num_parse_len(at, len, 0, GPU_CREW_MAX, &count) < 0)
			return failure_set(why, -EPROTO,
				"node rank 0 tells the numbers of GPUs as \"%.100s\"", counts);
		if (n < node)
			ret->first += (unsigned)count;
		else if (n == node)
			ret->count = (unsigned)count;
		ret->ranks += (unsigned)count;
		at += len + (at[len] == ' ');
	}
	return 0;
}

static int agree_on_ranks(const struct phase_input *in, struct gpu_crew *c, struct failure *why)
{
	struct text counts = { 0 };
	char key[KEY_MAX], all[KEY_MAX], own[16];
	int rc, len = snprintf(own, sizeof own, "%u", c->count);

	if (!in->visit) {
		c->ranks = c->count;
		return 0;
	}
	(void)snprintf(all, sizeof all, "%scounts", in->keys);
	count_key(in, in->node, key);
	if (in->node == 0) {
		rc = gather_counts(in, c->count, &counts, why);
		if (rc == 0)
			rc = visit_set(in->visit, all, text_string(&counts), counts.len, why);
	} else {
		rc = visit_set(in->visit, key, own, (size_t)len, why);
		if (rc == 0)
			rc = visit_get(in->visit, all, 2 * COUNT_MS, &counts, why);
		if (rc == -ETIMEDOUT && !why->code)
			rc = failure_set(
				why, rc, "node rank 0 has not said how many GPUs there are");
	}
	if (rc == 0)
		rc = place_among(text_string(&counts), in->node, c, why);
	text_done(&counts);
	return rc;
}

/* --- a store of its own, where no other node has one --- */

/* Serves until it is killed, which its parent's end does as well. */
static _Noreturn void serve(int tell, pid_t parent)
{
	const struct store_config config = {
		.addr = "127.0.0.1", .old = STORE_DIALECT_NONE, .memory_max = STORE_BYTES
	};
	static struct store store;
	static uv_loop_t loop;
	struct failure why = { 0 };
	unsigned port;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
		uv_loop_init(&loop) < 0 || store_open(&store, &loop, &config, &why) < 0)
		_exit(1);
	port = store_port(&store);
	(void)fd_write_all(tell, (const char *)&port, sizeof port);
	fd_closep(&tell);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	_exit(1);
}

static int start_store(pid_t *ret, unsigned *ret_port, struct failure *why)
{
	const pid_t self = getpid();
	unsigned port = 0;
	int fds[2];
	long got;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return failure_set(why, -errno, "no pipe for a store: %s", strerror(errno));
	*ret = fork();
	if (*ret == 0)
		serve(fds[1], self);
	(void)close(fds[1]);
	got = *ret < 0 ? -errno : fd_read_up_to(fds[0], (char *)&port, sizeof port);
	(void)close(fds[0]);
	*ret_port = port;
	if (*ret < 0)
		return failure_not_started(why, (int)got, "a store");
	if (got == (long)sizeof port)
		return 0;
	process_undo(*ret);
	return failure_set(why, -EIO, "its GPUs have no store to meet in");
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

static int run_crew(
	const struct phase_input *in, struct gpu_crew *c, struct text *ret, struct failure *why)
{
	struct text said = { 0 };
	size_t before = ret->len;
	pid_t store = 0;
	int rc = 0;

	c->store_host = in->visit ? in->store_host : "127.0.0.1";
	c->store_port = in->visit ? in->store_port : 0;
	if (!in->visit && c->count > 1)
		rc = start_store(&store, &c->store_port, why);
	if (rc == 0)
		rc = gpu_crew_run(c, ret, &said, why);
	if (store > 0)
		process_undo(store);
	if (rc == 0 && ret->len == before)
		rc = failure_set(why, -EIO, "launchd-nodecheck has found nothing: %.300s",
			said.len ? text_string(&said) : "it said nothing");
	text_done(&said);
	return rc;
}

/* The name of the first GPU that CUDA shows. */
static const char *model_of(const struct gpus *gpus, const char *list, struct arena *arena)
{
	const char *first = list ? devices_nth(arena, list, 0) : NULL;
	uint64_t number = 0;

	if (first && num_parse(first, 0, gpus->count - 1, &number) < 0)
		for (unsigned i = 0; i < gpus->count; i++)
			if (strncmp(gpus->at[i].uuid, first, strlen(first)) == 0)
				number = i;
	return gpus->at[number].name;
}

/* How many the workers see; 0: none, or NVML can't tell, for which why has a sentence. *ret_model:
 * what NVML calls them, "" where it doesn't say. */
static unsigned visible_gpus(
	const char *const *env, struct arena *arena, const char **ret_model, struct failure *why)
{
	const char *list = env_get(env, CUDA_DEVICES);
	struct gpus gpus = { 0 };
	unsigned count;

	if (gpus_read(true, GPUS_LIMIT_MS, arena, &gpus, why) < 0 || !gpus.known)
		return 0;
	count = devices_visible(list, gpus.count);
	if (count > 0)
		*ret_model = model_of(&gpus, list, arena);
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
		.keys = in->keys ? in->keys : "nodecheck/",
		.node = in->node,
		.limit_s = STEP_S,
		.until_ms = in->until_ms - REST_MS };
	struct arena arena = { 0 };
	struct failure none = { 0 };
	const char *model = "";
	unsigned gpus = visible_gpus(in->env, &arena, &model, &none);
	int rc;

	/* who has none says so all the same: the others wait for the number */
	if (gpus > 0 && gpu_phase_program(in->env, &arena, &c.program, &none) == 0)
		c.count = gpus;
	c.least = least_of(in->settings, model, &arena);
	c.nccl_home = c.count > 0 ? nccl_of_torch(in, &arena) : NULL;
	rc = agree_on_ranks(in, &c, why);
	if (rc == 0 && c.count == 0)
		add_unknown(ret, none.code ? none.text : "NVML shows no GPU");
	else if (rc == 0)
		rc = run_crew(in, &c, ret, why);
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
	.measure = measure,
	.judge = judge,
};
