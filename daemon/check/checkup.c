/* checkup.c - see checkup.h */
#include "daemon/check/checkup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/check/task.h"

/* How long a node is waited for beyond its phase's own limit: at first its launcher still opens
 * files when others are ready. */
enum { ARRIVAL_MS = 5000, REST_MS = 2000, JUDGE_MS = 10000 };

/* Where all of it is limited, processes need some time to start, to tell and to be killed. */
enum { STRICT_LEAST_MS = 3000, STRICT_PARTS = 16, STRICT_PART_MAX_MS = 1000 };

static struct checkup_times strict_times(uint64_t limit_ms)
{
	uint64_t all = limit_ms > STRICT_LEAST_MS ? limit_ms : STRICT_LEAST_MS;
	uint64_t part =
		all / STRICT_PARTS < STRICT_PART_MAX_MS ? all / STRICT_PARTS : STRICT_PART_MAX_MS;

	return (struct checkup_times){ all - 3 * part - TASK_KILL_MS, all - 2 * part, all - part,
		all };
}

struct checkup_times checkup_times(const struct phase_input *in, const struct phase *p, bool first)
{
	uint64_t ms = p->limit_ms + (p->more_ms ? p->more_ms(in->settings) : 0);
	uint64_t awaited = ms + (first ? ARRIVAL_MS : 0) + REST_MS;

	if (p->strict)
		return strict_times(in->gate_ms);
	return (struct checkup_times){ ms, ms, awaited, awaited + JUDGE_MS };
}

size_t checkup_verdict_size(unsigned nnodes)
{
	return sizeof(struct checkup_verdict) + nnodes * sizeof(struct checkup_node);
}

void finding_add(struct text *out, const struct finding *f)
{
	const char *of = *f->subject ? f->subject : f->check;
	size_t room = *f->subject ? sizeof f->subject : sizeof f->check;

	text_add_shown(out, of, strnlen(of, room));
	text_add(out, ": ");
	text_add_shown(out, f->text, strnlen(f->text, sizeof f->text));
}

static struct finding unknown(const char *check, const char *text)
{
	struct finding f = { .health = HEALTH_UNKNOWN };

	(void)snprintf(f.check, sizeof f.check, "%s", check);
	text_fit(f.text, sizeof f.text, text);
	return f;
}

/* --- what a node measures --- */

void checkup_measure(const struct phase_input *in, const struct phase *p, struct checkup_told *ret)
{
	struct failure why = { 0 };
	struct text told = { 0 };

	text_add_bytes(&told, &(char){ TOLD_WELL }, 1);
	if (p->measure(in, &told, &why) < 0 || told.failed || told.len > TOLD_MAX) {
		text_done(&told);
		text_add_bytes(&told, &(char){ TOLD_FAILED }, 1);
		text_add(&told, why.code < 0 ? why.text : "it has more to tell than there is room");
	}
	if (!told.failed && told.len <= TOLD_MAX) {
		memcpy(ret->text, told.at, told.len);
		ret->len = told.len;
	}
	text_done(&told);
}

/* --- node rank 0 judges --- */

/* Whether one line tells both: the same of several nodes, or of one thing in several checks. */
static bool is_same_doubt(const struct finding *a, const struct finding *b)
{
	return strcmp(a->text, b->text) == 0 &&
		(strcmp(a->check, b->check) == 0 ||
			(*a->subject && strcmp(a->subject, b->subject) == 0));
}

/* A doubt about several nodes is told once. last: the node that each was counted for last. */
static void add_doubt(
	struct checkup_verdict *ret, unsigned node, const struct finding *f, unsigned *last)
{
	for (unsigned i = 0; i < ret->doubts; i++) {
		struct checkup_doubt *d = &ret->doubt[i];

		if (!is_same_doubt(&d->finding, f))
			continue;
		d->nodes += last[i] != node ? 1 : 0;
		d->first = node < d->first ? node : d->first;
		if (strcmp(d->finding.subject, f->subject) != 0)
			d->finding.subject[0] = '\0';
		last[i] = node;
		return;
	}
	if (ret->doubts == DOUBTS_MAX) {
		ret->doubts_left_out++;
		return;
	}
	last[ret->doubts] = node;
	ret->doubt[ret->doubts++] = (struct checkup_doubt){ 1, node, *f };
}

/* Takes down what is said of the nodes. Whether a node is bad. */
static bool record(struct checkup_verdict *ret, unsigned nnodes, const struct charges *c)
{
	unsigned last[DOUBTS_MAX];
	bool bad = false;

	memset(last, 0xff, sizeof last);
	for (size_t i = 0; i < c->count; i++) {
		const struct charge *one = &c->at[i];
		struct checkup_node *n = &ret->node[one->node];

		if (one->node >= nnodes || one->finding.health == HEALTH_GOOD)
			continue;
		if (one->finding.health == HEALTH_UNKNOWN) {
			add_doubt(ret, one->node, &one->finding, last);
			n->health = n->health == HEALTH_BAD ? HEALTH_BAD : HEALTH_UNKNOWN;
			continue;
		}
		if (n->bad++ == 0)
			n->reason = one->finding;
		n->health = HEALTH_BAD;
		bad = true;
	}
	return bad;
}

/* What a node that has nothing for the judge is charged with. NULL: it has. */
static const char *excuse(const char *told, bool absent, uint64_t awaited_ms, char room[224])
{
	if (told && *told == TOLD_WELL)
		return NULL;
	if (told)
		return told + 1;
	if (absent)
		return "its launchd has not joined the job";
	(void)snprintf(room, 224, "it did not answer within %s s", num_seconds(awaited_ms).text);
	return room;
}

void checkup_judge(const struct phase_input *in, const struct phase *p, const char *const *told,
	const bool *absent, bool stop, struct checkup_verdict *ret)
{
	uint64_t awaited_ms = checkup_times(in, p, false).measure;
	const char **words = calloc(in->nnodes, sizeof *words);
	struct charges charges = { 0 };
	struct failure why = { 0 };
	unsigned mute = 0;
	char room[224];

	for (unsigned i = 0; words && i < in->nnodes; i++) {
		const char *none = excuse(told[i], absent && absent[i], awaited_ms, room);
		struct finding f = unknown(p->name, none ? none : "");

		mute += none ? 1 : 0;
		if (none)
			charges_add(&charges, i, &f);
		else
			words[i] = told[i] + 1;
	}
	if (!words || charges.failed)
		(void)failure_oom(&why);
	else
		(void)p->judge(in, words, &charges, &why);
	for (unsigned i = 0; why.code < 0 && i < in->nnodes; i++) {
		struct finding f = unknown(p->name, why.text);

		charges_add(&charges, i, &f);
	}
	ret->over = record(ret, in->nnodes, &charges) && stop;
	ret->mute = mute > ret->mute ? mute : ret->mute;
	ret->judged++;
	charges_done(&charges);
	free(words);
}

/* --- what the launcher reads --- */

static void trust_finding(struct finding *f)
{
	f->check[sizeof f->check - 1] = '\0';
	f->subject[sizeof f->subject - 1] = '\0';
	f->text[sizeof f->text - 1] = '\0';
}

void checkup_trust(struct checkup_verdict *v, unsigned nnodes)
{
	if (v->doubts > DOUBTS_MAX)
		v->doubts = DOUBTS_MAX;
	for (unsigned i = 0; i < v->doubts; i++) {
		struct checkup_doubt *d = &v->doubt[i];

		if (d->first >= nnodes)
			d->first = 0;
		trust_finding(&d->finding);
	}
	for (unsigned i = 0; i < nnodes; i++) {
		struct checkup_node *n = &v->node[i];

		if (n->health != HEALTH_UNKNOWN && n->health != HEALTH_BAD)
			n->health = HEALTH_GOOD;
		trust_finding(&n->reason);
	}
}
