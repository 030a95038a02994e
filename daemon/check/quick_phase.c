/* quick_phase.c - see quick_phase.h */
#include "daemon/check/quick_phase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/check/compare.h"
#include "daemon/check/finding_read.h"
#include "daemon/check/phase.h"
#include "daemon/check/quick.h"
#include "daemon/check/xid_check.h"

enum {
	US_PER_S = 1000000,
	NS_PER_US = 1000,
};

static int64_t micros(clockid_t which)
{
	struct timespec t;

	(void)clock_gettime(which, &t);
	return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / NS_PER_US;
}

/* What is sent: the time of day at a moment of CLOCK_MONOTONIC, which the judge can compare, how
 * exactly that is known, and the findings: "1764097384000000 812000000 2 {...}". */
static int measure(const struct phase_input *in, struct text *ret, struct failure *why)
{
	static struct findings found;
	struct arena arena = { 0 };
	struct quick_input quick;
	int64_t before, wall, after;
	int rc = quick_input_make(
		in->settings, in->env, in->attempt > 0, false, &arena, &quick, why);

	if (rc < 0)
		return rc;
	quick.xids = in->xids;
	rc = quick_check(&quick, &found);
	if (rc < 0)
		return failure_set(why, rc, "the quick check can't run: %s", strerror(-rc));
	if (in->ret_gpus)
		*in->ret_gpus = xid_was_checked(&found);
	before = micros(CLOCK_MONOTONIC);
	wall = micros(CLOCK_REALTIME);
	after = micros(CLOCK_MONOTONIC);
	text_printf(ret, "%" PRId64 " %" PRId64 " %" PRId64 " ", wall,
		before + (after - before) / 2, after - before + 1);
	findings_json(&found, NULL, ret);
	arena_done(&arena);
	return 0;
}

/* --- on node rank 0 --- */

/* What nodes are compared by. They must be alike, each for a reason of its own: NCCL's versions of
 * kernels, the ring's slowest member, ranks without a GPU. */
static const char *const alike[] = { "driver_version", "gpu_model", "gpu_count" };
enum { ALIKE = sizeof alike / sizeof *alike };

struct judging {
	const struct phase_input *in;
	struct charges *ret;
	struct compared_clock *clocks;
	const char **values[ALIKE];
	int64_t wall_us, mono_us; /* node rank 0's */
	struct findings found;    /* the node's that is looked at */
};

static bool is_count(const char *text)
{
	return (*text >= '0' && *text <= '9') || strncmp(text, "none ", 5) == 0;
}

/* Of "8 GPUs (0-7)" the number alone. f NULL: the finding was left out, because no GPU is here. */
static char *value_of(const struct finding *f, size_t what)
{
	bool counts = strcmp(alike[what], "gpu_count") == 0;
	size_t len = f ? strnlen(f->text, sizeof f->text) : 0;

	if (counts && !f)
		return strdup("none");
	if (!f || (f->health != HEALTH_GOOD && (!counts || !is_count(f->text))))
		return NULL;

	if (counts)
		len = strcspn(f->text, " ");
	return strndup(f->text, len);
}

static void take_findings(struct judging *j, unsigned node)
{
	for (unsigned i = 0; i < j->found.count; i++)
		if (j->found.at[i].health != HEALTH_GOOD)
			charges_add(j->ret, node, &j->found.at[i]);
	for (size_t k = 0; k < ALIKE; k++) {
		const struct finding *f = findings_find(&j->found, alike[k], "");

		j->values[k][node] = value_of(f, k);
	}
}

static void take_clock(struct judging *j, unsigned node, const int64_t said[3])
{
	const struct phase_clock *c = j->in->clocks ? &j->in->clocks[node] : NULL;

	if (node == 0) {
		j->wall_us = said[0];
		j->mono_us = said[1];
	}
	if (!c || !c->known || j->mono_us == 0)
		return;
	j->clocks[node] = (struct compared_clock){
		.known = true,
		.ahead_us =
			said[0] - j->wall_us - (said[1] - c->offset_ns / NS_PER_US - j->mono_us),
		.error_us = c->error_ns / NS_PER_US + (uint64_t)said[2],
	};
}

static void take(struct judging *j, unsigned node, const char *told)
{
	struct finding f = { .health = HEALTH_UNKNOWN, .check = "quick" };
	struct failure why = { 0 };
	int64_t said[3];
	int at = 0;

	if (sscanf(told, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &said[0], &said[1], &said[2],
		    &at) < 3 ||
		at == 0)
		(void)failure_set(&why, -EINVAL, "it told something else than findings");
	else if (findings_parse(told + at, strlen(told + at), &j->found, &why) == 0)
		take_findings(j, node);
	if (at > 0)
		take_clock(j, node, said);
	if (why.code == 0)
		return;
	text_fit(f.text, sizeof f.text, why.text);
	charges_add(j->ret, node, &f);
}

static int judge(const struct phase_input *in, const char *const *told, struct charges *ret,
	struct failure *why)
{
	static struct judging j;
	bool room = true;

	j = (struct judging){ .in = in, .ret = ret };
	j.clocks = calloc(in->nnodes, sizeof *j.clocks);
	for (size_t k = 0; k < ALIKE; k++) {
		j.values[k] = calloc(in->nnodes, sizeof *j.values[k]);
		room = room && j.values[k];
	}
	if (!j.clocks || !room)
		return failure_oom(why);
	for (unsigned i = 0; i < in->nnodes; i++)
		if (told[i])
			take(&j, i, told[i]);
	for (size_t k = 0; k < ALIKE; k++)
		compare_values(alike[k], (const char *const *)j.values[k], in->nnodes, ret);
	compare_clocks(
		j.clocks, in->nnodes, settings_number(in->settings, SET_CHECK_CLOCK) * 1000, ret);
	return 0;
}

/* A command of the user's own has a time of its own. */
static uint64_t more_ms(const struct settings *s)
{
	return settings_text(s, SET_CHECK_COMMAND) ? settings_number(s, SET_CHECK_TIMEOUT) : 0;
}

const struct phase quick_phase = {
	.name = "quick",
	.limit_ms = QUICK_LIMIT_MS,
	.more_ms = more_ms,
	.measure = measure,
	.judge = judge,
};
