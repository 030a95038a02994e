/* absent.c - see absent.h */
#include "daemon/job/absent.h"

#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"

enum { ABSENT_NAMED = 16 };

/* Those that did not come, in order of rank; of more than there is room for only the number. */
struct absent {
	const struct outcome *first;
	unsigned ranks[ABSENT_NAMED];
	size_t count;
	bool more; /* they name others, too */
};

typedef bool is_absent(const struct result *r, const struct outcome *o);

static bool has_waited(const struct outcome *o)
{
	return o->blames == BLAMES_A_WAIT;
}

static bool absent_is_named(const struct result *r, const struct outcome *o)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct waited *w = &r->outcomes[i].waited;

		for (unsigned k = 0; has_waited(&r->outcomes[i]) && k < w->count; k++)
			if (w->ranks[k] == o->rank && (!w->dials || o->unjoined))
				return true;
	}
	return false;
}

/* Where all others are in the store, whoever isn't is the one that they wait for there. */
static bool is_outside_store(const struct result *r, const struct outcome *o)
{
	bool in_store = false, joined = false;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *other = &r->outcomes[i];

		in_store |= has_waited(other) && other->waited.in_store && !other->waited.dials;
		joined |= !other->unjoined;
	}
	return in_store && joined && o->unjoined;
}

static bool is_suspect(const struct result *r, const struct outcome *o)
{
	for (size_t i = 0; i < r->suspect_count; i++)
		if (r->suspects[i] == o->rank)
			return true;
	return false;
}

static bool absent_is_over(const struct outcome *o)
{
	return o->asked == ASKED_NOTHING && ending_is_success(&o->end);
}

/* A worker that has ended does not come any more. Where others neither waited nor have ended, they
 * may be those that are waited for, in a group without it. */
static bool absent_has_ended(const struct result *r, const struct outcome *o)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *other = &r->outcomes[i];

		if (other->blames < BLAMES_A_PEER && !absent_is_over(other))
			return false;
	}
	return absent_is_over(o);
}

/* A worker that has timed out, or lost a peer, was there. If all workers match, the way tells
 * nothing. */
static struct absent find_absent(const struct result *r, is_absent *is)
{
	struct absent a = { .count = 0 };
	size_t others = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (has_waited(o) || o->blames == BLAMES_A_PEER || !is(r, o)) {
			others++;
			continue;
		}
		a.first = a.count ? a.first : o;
		if (a.count < ABSENT_NAMED)
			a.ranks[a.count] = o->rank;
		a.count++;
	}
	for (size_t i = 0; i < r->count && is == absent_is_named; i++)
		a.more |= has_waited(&r->outcomes[i]) && r->outcomes[i].waited.more;
	return others ? a : (struct absent){ .count = 0 };
}

/* "ranks 0, 2": the workers that timed out, also after our signal. */
static void absent_add_waiting(const struct result *r, struct text *out)
{
	unsigned ranks[ABSENT_NAMED] = { 0 };
	size_t count = 0, more = 0;

	for (size_t i = 0; i < r->count; i++)
		if (has_waited(&r->outcomes[i]) && count < ABSENT_NAMED)
			ranks[count++] = r->outcomes[i].rank;
		else if (has_waited(&r->outcomes[i]))
			more++;
	numbers_add(out, "rank", ranks, count);
	if (more)
		text_printf(out, " and %zu more", more);
}

static void describe_absent(
	const struct result *r, const struct absent *a, char ret[CAUSE_DETAIL_SIZE])
{
	struct text out = { 0 };

	if (a->count == 0) {
		text_add(&out, "timed out waiting for another rank (");
		absent_add_waiting(r, &out);
		text_add(&out, " waited)");
	} else {
		if (absent_is_over(a->first))
			text_add(&out, "it had ended with exit code 0, and ");
		absent_add_waiting(r, &out);
		text_add(&out, " timed out waiting for ");
		if (a->count == 1)
			text_add(&out, "it");
		else if (a->count <= ABSENT_NAMED)
			numbers_add(&out, "rank", a->ranks, a->count);
		else
			text_printf(&out, "it and %zu more", a->count - 1);
		text_add(&out, a->more ? " and others" : "");
	}
	text_fit(ret, CAUSE_DETAIL_SIZE, text_string(&out));
	text_done(&out);
}

/* Finds the first of those that failed before launchd asked them to end. */
static const struct outcome *first_victim(const struct result *r)
{
	const struct outcome *first = NULL;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];
		bool failed = o->asked == ASKED_NOTHING && o->end.how != ENDED_NONE &&
			!ending_is_success(&o->end);

		if (failed && o->blames >= BLAMES_A_PEER &&
			(!first || o->ended_ns < first->ended_ns))
			first = o;
	}
	return first;
}

static bool has_any_waited(const struct result *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (has_waited(&r->outcomes[i]))
			return true;
	return false;
}

bool absent_blame(struct result *r)
{
	is_absent *const ways[] = { absent_is_named, is_outside_store, is_suspect,
		absent_has_ended };
	const struct outcome *victim = first_victim(r);
	struct absent a = { .count = 0 };
	struct cause *c = &r->cause;

	if (!victim || !has_any_waited(r))
		return false;
	for (size_t i = 0; i < sizeof ways / sizeof *ways && a.count == 0; i++)
		a = find_absent(r, ways[i]);
	*c = (struct cause){ .kind = CAUSE_TIMEOUT,
		.victim = *victim,
		.at_ns = victim->ended_ns,
		.has_culprit = a.count > 0,
		.node = a.count ? a.first->node : victim->node };
	if (a.count)
		c->culprit = *a.first;
	describe_absent(r, &a, c->detail);
	return true;
}
