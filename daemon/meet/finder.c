/* finder.c - see finder.h */
#include "daemon/meet/finder.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/sm.h"
#include "daemon/meet/lookup.h"

enum {
	RETRY_MS = 1000,
	NEXT_NOTE_MS = 60000,
};

static const struct sm_state states[FINDER_STATES] = {
	[FINDER_NONE] = { "none", SM_TO(FINDER_ASKING) | SM_TO(FINDER_PAUSED) },
	[FINDER_ASKING] = { "asking",
		SM_TO(FINDER_PAUSED) | SM_TO(FINDER_FOUND) | SM_TO(FINDER_FAILED) |
			SM_TO(FINDER_CLOSED) },
	[FINDER_PAUSED] = { "paused",
		SM_TO(FINDER_ASKING) | SM_TO(FINDER_PAUSED) | SM_TO(FINDER_FOUND) |
			SM_TO(FINDER_FAILED) | SM_TO(FINDER_CLOSED) },
	[FINDER_FOUND] = { "found", SM_TO(FINDER_CLOSED) },
	[FINDER_FAILED] = { "failed", SM_TO(FINDER_CLOSED) },
	[FINDER_CLOSED] = { "closed", 0 },
};
const struct sm finder_life = { "finder", states, FINDER_STATES };

static void on_time(uv_timer_t *t);

static void on_timer_closed(uv_handle_t *h)
{
	struct finder *f = h->data;

	f->on_closed(f);
}

/* timer_ms: when to look again at a finder that asks or pauses. */
static void finder_goto(struct finder *f, enum finder_state next, uint64_t timer_ms)
{
	f->state = sm_go(&finder_life, f->state, next);
	if (next == FINDER_ASKING || next == FINDER_PAUSED)
		(void)uv_timer_start(&f->timer, on_time, timer_ms, 0);
	else
		(void)uv_timer_stop(&f->timer);
	if (next >= FINDER_FAILED && f->asked) {
		lookup_abandon(f->asked);
		f->asked = NULL;
	}
	if (next == FINDER_CLOSED)
		uv_close((uv_handle_t *)&f->timer, on_timer_closed);
}

static uint64_t left_ms(const struct finder *f)
{
	uint64_t now = uv_now(f->loop);

	return f->deadline_ms > now ? f->deadline_ms - now : 0;
}

static void explain(struct finder *f, const char *why)
{
	(void)snprintf(f->why, sizeof f->why, "the name %s can't be resolved: %s", f->name, why);
}

static void fail(struct finder *f)
{
	finder_goto(f, FINDER_FAILED, 0);
	f->on_failed(f, f->why);
}

/* Where no time is left, on_time() tells that it failed: never from within finder_start(). */
static void later(struct finder *f, const char *why)
{
	uint64_t now = uv_now(f->loop), left = left_ms(f);

	explain(f, why);
	finder_goto(f, FINDER_PAUSED, left < RETRY_MS ? left : RETRY_MS);
	if (left > 0 && now >= f->note_ms) {
		f->note_ms = now + NEXT_NOTE_MS;
		f->on_searching(f, f->why);
	}
}

/* Every address once: the resolver may give one for each kind of socket. */
static void keep(struct finder *f, const struct addrinfo *list)
{
	f->found.count = 0;
	for (; list; list = list->ai_next) {
		const struct address a = address_of(list->ai_addr);

		addresses_add(&f->found, &a);
	}
}

/* The resolver's order, but each address of the other family than the one before it, while there
 * are such: where one family leads nowhere, the other one is not far behind. */
static void alternate(struct addresses *list)
{
	for (unsigned i = 1; i < list->count; i++) {
		struct address *at = &list->at[i], moved;
		unsigned j = i;

		while (j < list->count && list->at[j].any.sa_family == at[-1].any.sa_family)
			j++;
		if (j == list->count)
			return;
		moved = list->at[j];
		memmove(at + 1, at, (j - i) * sizeof *at);
		*at = moved;
	}
}

static void on_answer(void *of, const struct addrinfo *list, const char *why)
{
	struct finder *f = of;

	f->asked = NULL;
	if (f->state == FINDER_FOUND && !list)
		return;
	keep(f, list);
	alternate(&f->found);
	if (f->found.count == 0) {
		later(f, why ? why : "it has no addresses");
		return;
	}
	if (f->state != FINDER_FOUND)
		finder_goto(f, FINDER_FOUND, 0);
	f->on_found(f);
}

static void look_up(struct finder *f)
{
	int rc = lookup_start(f->loop, f->name, f->port, on_answer, f, &f->asked);
	struct failure why = { 0 };

	if (rc == 0) {
		finder_goto(f, FINDER_ASKING, left_ms(f));
		return;
	}
	(void)failure_not_started(&why, rc, "a thread");
	later(f, why.text);
}

/* The next try, or the end of the time, which may come before the resolver's answer. */
static void on_time(uv_timer_t *t)
{
	struct finder *f = t->data;

	if (f->numeric) {
		finder_goto(f, FINDER_FOUND, 0);
		f->on_found(f);
	} else if (f->state == FINDER_ASKING || left_ms(f) == 0) {
		fail(f);
	} else {
		look_up(f);
	}
}

/* An address needs no resolver. */
static bool is_numeric(struct finder *f)
{
	const struct addrinfo numeric = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *list;

	if (getaddrinfo(f->name, f->port, &numeric, &list) != 0)
		return false;
	keep(f, list);
	freeaddrinfo(list);
	return true;
}

void finder_start(
	struct finder *f, uv_loop_t *loop, const char *name, unsigned port, uint64_t within_ms)
{
	f->loop = loop;
	f->name = name;
	f->deadline_ms = uv_now(loop) + within_ms;
	f->note_ms = uv_now(loop); /* a mistyped name is said at once */
	(void)snprintf(f->port, sizeof f->port, "%u", port);
	(void)uv_timer_init(loop, &f->timer); /* can't fail */
	f->timer.data = f;
	f->numeric = is_numeric(f);
	explain(f, "the resolver does not answer");
	if (f->numeric)
		finder_goto(f, FINDER_PAUSED, 0);
	else
		look_up(f);
}

void finder_again(struct finder *f)
{
	if (f->state == FINDER_FOUND && !f->numeric && !f->asked) /* else the next time comes */
		(void)lookup_start(f->loop, f->name, f->port, on_answer, f, &f->asked);
}

void finder_close(struct finder *f)
{
	if (f->state != FINDER_CLOSED)
		finder_goto(f, FINDER_CLOSED, 0);
}
