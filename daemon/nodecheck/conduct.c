/* conduct.c - see conduct.h
 *
 * Keys: here/RANK     "node first count host", when a rank has come
 *       step/N        what is to be done, in the words of check_step.h
 *       saw/N/RANK    what a rank saw in it, in those of sighting.h
 *       found/FIRST   all findings of the node whose first rank that is, at the end
 *       N/GROUP/...   a group's own (reduce_probe.c) */
#include "daemon/nodecheck/conduct.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/nodecheck/part.h"
#include "daemon/nodecheck/roll_call.h"
#include "daemon/store/visit.h"

enum {
	ANSWER_MS = 10000, /* of the store, and what a rank may need besides its part */
	KEY_MAX = 160,
	/* Rank 0 may have a step of its own to wait for, and another one that is seen again. */
	PATIENCE = 3,
};

struct key_text {
	char text[KEY_MAX];
};

__attribute__((format(printf, 2, 3))) static struct key_text key_of(
	const struct conduct *c, const char *fmt, ...)
{
	struct key_text key;
	int len = snprintf(key.text, sizeof key.text, "%s", c->o->keys);
	va_list ap;

	va_start(ap, fmt);
	if (len > 0 && (size_t)len < sizeof key.text)
		(void)vsnprintf(key.text + len, sizeof key.text - (size_t)len, fmt, ap);
	va_end(ap);
	return key;
}

static int put(struct visit *v, struct key_text key, const struct text *value, struct failure *why)
{
	return visit_set(v, key.text, text_string(value), value->len, why);
}

/* Waits up to until_ms. -ETIMEDOUT: nothing is said. */
static int get(struct visit *v, struct key_text key, int64_t until_ms, struct text *ret,
	struct failure *why)
{
	return visit_get(v, key.text, monotonic_left_ms(until_ms), ret, why);
}

static int come(const struct conduct *c, struct visit *v, struct failure *why)
{
	const struct check_place *p = c->place;
	struct roll_entry self = {
		.node = p->node,
		.first = p->rank - p->local_rank,
		.count = p->local_ranks,
	};
	struct text t = { 0 };
	int rc = visit_open(v, p->host, p->port, ANSWER_MS, why);

	if (rc < 0) {
		struct failure first = *why;

		*why = (struct failure){ 0 };
		return failure_set(
			why, rc, "%.600s; launchd hosts one with --store agent", first.text);
	}
	if (gethostname(self.host, sizeof self.host - 1) < 0 || !*self.host)
		(void)snprintf(self.host, sizeof self.host, "?");
	roll_entry_write(&self, &t);
	rc = put(v, key_of(c, "here/%u", p->rank), &t, why);
	text_done(&t);
	return rc;
}

/* --- rank 0 --- */

/* Waits until all ranks have come, or the limit is over. */
static int gather(struct conduct *c, struct visit *v, struct case_node *nodes, unsigned *ret_count,
	struct failure *why)
{
	int64_t until_ms = monotonic_ms() + (int64_t)c->o->demands.limit_ms;
	unsigned ranks = c->place->ranks;
	struct roll_entry *by_rank = arena_alloc(c->arena, ranks * sizeof *by_rank);
	int rc = by_rank ? 0 : failure_oom(why);

	for (unsigned rank = 0; rc == 0 && rank < ranks; rank++) {
		struct text said = { 0 };

		rc = get(v, key_of(c, "here/%u", rank), until_ms, &said, why);
		if (rc == 0) /* what can't be read has not come */
			(void)roll_entry_read(text_string(&said), rank, ranks, &by_rank[rank]);
		else if (rc == -ETIMEDOUT && !why->code)
			rc = 0;
		text_done(&said);
	}
	if (rc == 0)
		*ret_count = roll_call(by_rank, ranks, c->arena, nodes);
	return rc;
}

/* This process alone is the job. */
static unsigned only_node(struct conduct *c, struct case_node *ret)
{
	char host[64] = "";

	if (gethostname(host, sizeof host - 1) < 0)
		(void)snprintf(host, sizeof host, "?");
	*ret = (struct case_node){
		.number = c->place->node,
		.count = 1,
		.host = arena_strdup(c->arena, host),
	};
	return 1;
}

/* What the other ranks saw in a step. */
static int collect(struct conduct *c, struct visit *v, const struct check_step *step,
	unsigned number, int64_t until_ms, struct gpu_sight *by_rank, struct failure *why)
{
	for (size_t i = 0; i < step->count; i++)
		for (unsigned k = 0, size = rank_group_size(&step->groups[i]); k < size; k++) {
			unsigned rank = rank_group_at(&step->groups[i], k);
			struct text line = { 0 };
			int rc;

			if (rank == c->place->rank)
				continue;
			by_rank[rank] = (struct gpu_sight){ .what = SIGHT_NONE };
			rc = get(v, key_of(c, "saw/%u/%u", number, rank), until_ms, &line, why);
			if (rc == 0 && sighting_read(text_string(&line), &by_rank[rank]) < 0)
				(void)snprintf(by_rank[rank].text, sizeof by_rank[rank].text,
					"rank %u tells what can't be read", rank);
			text_done(&line);
			if (rc == -ETIMEDOUT && !why->code)
				(void)snprintf(by_rank[rank].text, sizeof by_rank[rank].text,
					"rank %u did not answer in time", rank);
			else if (rc < 0)
				return rc;
		}
	return 0;
}

static int lead_step(struct conduct *c, struct visit *v, const struct check_step *step,
	unsigned number, struct gpu_sight *by_rank, struct failure *why)
{
	int64_t until_ms = monotonic_ms() + (int64_t)step->limit_ms + PART_GRACE_MS + ANSWER_MS;
	struct text line = { 0 };
	struct step_part part;
	int rc = 0;

	check_step_write(step, &line);
	if (v->fd >= 0)
		rc = put(v, key_of(c, "step/%u", number), &line, why);
	if (rc == 0 && check_step_read(text_string(&line), c->place->rank, &part) == 0)
		part_run(c->argv, &part, number, &by_rank[c->place->rank]);
	text_done(&line);
	return rc < 0 ? rc : collect(c, v, step, number, until_ms, by_rank, why);
}

/* Tells all that it is over, and each node what was found of it. */
static int end_all(struct conduct *c, struct visit *v, unsigned number, const struct check_case *of,
	struct findings *room, struct failure *why)
{
	struct check_step end = { .kind = STEP_END };
	struct text line = { 0 };
	int rc = 0;

	for (unsigned n = 0; rc == 0 && c->o->findings && n < of->node_count; n++) {
		struct text found = { 0 };

		case_findings(of, n, room);
		findings_json(room, of->nodes[n].host, &found);
		rc = put(v, key_of(c, "found/%u", of->nodes[n].first), &found, why);
		text_done(&found);
	}
	check_step_write(&end, &line);
	if (rc == 0)
		rc = put(v, key_of(c, "step/%u", number), &line, why);
	text_done(&line);
	return rc;
}

static int lead(struct conduct *c, struct visit *v, struct check_case *ret, struct failure *why)
{
	unsigned ranks = c->place->ranks, count = 0, number = 0;
	struct case_node *nodes = arena_alloc(c->arena, ranks * sizeof *nodes);
	struct gpu_sight *by_rank = arena_alloc(c->arena, ranks * sizeof *by_rank);
	struct findings *room = arena_alloc(c->arena, sizeof *room);
	struct check_step step;
	int rc = 0;

	if (!nodes || !by_rank || !room)
		return failure_oom(why);
	if (v->fd >= 0)
		rc = gather(c, v, nodes, &count, why);
	else
		count = only_node(c, nodes);
	if (rc < 0)
		return rc;
	if (case_begin(ret, c->arena, nodes, count, ranks, &c->o->demands) < 0)
		return failure_oom(why);
	while (rc == 0 && case_next(ret, &step)) {
		rc = lead_step(c, v, &step, number++, by_rank, why);
		if (rc == 0)
			case_seen(ret, by_rank);
	}
	if (rc == 0 && (ret->failed || arena_failed(c->arena)))
		rc = failure_oom(why);
	if (v->fd >= 0 && rc == 0)
		rc = end_all(c, v, number, ret, room, why);
	return rc;
}

int conduct_lead(struct conduct *c, struct check_case *ret, struct failure *why)
{
	struct visit v = { .fd = -1 };
	int rc = c->place->host ? come(c, &v, why) : 0;

	if (rc == 0)
		rc = lead(c, &v, ret, why);
	visit_close(&v);
	return rc;
}

/* --- the others --- */

static int follow_step(struct conduct *c, struct visit *v, unsigned number,
	const struct step_part *p, struct failure *why)
{
	struct gpu_sight s;
	struct text line = { 0 };
	int rc;

	part_run(c->argv, p, number, &s);
	sighting_write(&s, &line);
	rc = put(v, key_of(c, "saw/%u/%u", number, c->place->rank), &line, why);
	text_done(&line);
	return rc;
}

static int follow(struct conduct *c, struct visit *v, struct failure *why)
{
	int64_t limit_ms = (int64_t)c->o->demands.limit_ms + PART_GRACE_MS + ANSWER_MS;

	for (unsigned number = 0;; number++) {
		struct text line = { 0 };
		struct step_part part = { .kind = STEP_KINDS };
		int rc = get(v, key_of(c, "step/%u", number), monotonic_ms() + PATIENCE * limit_ms,
			&line, why);
		int has = rc == 0 ? check_step_read(text_string(&line), c->place->rank, &part) : rc;

		if (rc == -ETIMEDOUT && !why->code)
			rc = failure_set(why, rc,
				"rank 0 has not said what comes next within %" PRId64 " s",
				PATIENCE * limit_ms / 1000);
		if (rc == 0 && has < 0 && has != -ENOENT)
			rc = failure_set(why, has, "rank 0 says what can't be read: \"%.100s\"",
				text_string(&line));
		text_done(&line);
		if (rc == 0 && has == 0)
			rc = follow_step(c, v, number, &part, why);
		if (rc < 0 || part.kind == STEP_END)
			return rc;
	}
}

int conduct_follow(struct conduct *c, struct text *ret_said, struct failure *why)
{
	struct visit v = { .fd = -1 };
	bool says = c->o->findings && c->place->local_rank == 0;
	int rc = come(c, &v, why);

	if (rc == 0)
		rc = follow(c, &v, why);
	if (rc == 0 && says)
		rc = get(&v, key_of(c, "found/%u", c->place->rank), monotonic_ms() + ANSWER_MS,
			ret_said, why);
	if (rc == -ETIMEDOUT && !why->code)
		rc = failure_set(why, rc, "rank 0 has not said what was found");
	visit_close(&v);
	return rc < 0 ? rc : says;
}
