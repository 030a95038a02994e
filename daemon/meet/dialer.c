/* dialer.c - see dialer.h */
#include "daemon/meet/dialer.h"

#include <stdio.h>

#include "common/failure.h"
#include "common/sm.h"
#include "common/text.h"

enum {
	NEXT_ADDRESS_MS = 250, /* RFC 8305, 8: "Connection Attempt Delay" */
	ROUND_FIRST_MS = 50,   /* doubled from round to round, up to the next one */
	ROUND_MAX_MS = 2000,
};

static const struct sm_state states[DIALER_STATES] = {
	[DIALER_NONE] = { "none", SM_TO(DIALER_DIALING) },
	[DIALER_DIALING] = { "dialing",
		SM_TO(DIALER_DIALING) | SM_TO(DIALER_PAUSED) | SM_TO(DIALER_READY) |
			SM_TO(DIALER_STOPPED) | SM_TO(DIALER_CLOSED) },
	[DIALER_PAUSED] = { "paused",
		SM_TO(DIALER_DIALING) | SM_TO(DIALER_READY) | SM_TO(DIALER_STOPPED) |
			SM_TO(DIALER_CLOSED) },
	[DIALER_READY] = { "ready", SM_TO(DIALER_STOPPED) | SM_TO(DIALER_CLOSED) },
	[DIALER_STOPPED] = { "stopped", SM_TO(DIALER_PAUSED) | SM_TO(DIALER_CLOSED) },
	[DIALER_CLOSED] = { "closed", 0 },
};
const struct sm dialer_life = { "dialer", states, DIALER_STATES };

static void dial_next(struct dialer *d);
static void on_clock_closed(uv_handle_t *h);

static void handle_closed(struct dialer *d)
{
	if (--d->handles == 0)
		d->on_closed(d);
}

static bool any_busy(const struct dialer *d)
{
	for (unsigned i = 0; i < ADDRESSES_MAX; i++)
		if (d->lanes[i].busy)
			return true;
	return false;
}

static void close_lanes(struct dialer *d)
{
	for (unsigned i = 0; i < ADDRESSES_MAX; i++)
		if (d->lanes[i].busy && &d->lanes[i] != d->ready)
			link_close(&d->lanes[i].link, false, NULL);
}

/* Whether links are still wanted. */
static bool is_dialing(const struct dialer *d)
{
	return d->state == DIALER_DIALING || d->state == DIALER_PAUSED;
}

static void dialer_goto(struct dialer *d, enum dialer_state next)
{
	d->state = sm_go(&dialer_life, d->state, next);
	if (is_dialing(d))
		return;
	(void)uv_timer_stop(&d->clock);
	close_lanes(d);
	if (next == DIALER_CLOSED)
		uv_close((uv_handle_t *)&d->clock, on_clock_closed);
}

void dialer_stop(struct dialer *d)
{
	if (is_dialing(d))
		dialer_goto(d, DIALER_STOPPED);
}

static void start_clock(struct dialer *d, uv_timer_cb then, uint64_t ms)
{
	uv_update_time(d->loop);
	(void)uv_timer_start(&d->clock, then, ms, 0);
}

static void begin_round(struct dialer *d)
{
	dialer_goto(d, DIALER_DIALING);
	d->next = 0;
	*d->refusal = '\0';
	dial_next(d);
}

static void on_pause_over(uv_timer_t *t)
{
	struct dialer *d = t->data;

	d->on_round(d);
	if (is_dialing(d))
		begin_round(d);
}

static void pause_round(struct dialer *d)
{
	uint64_t ms = ROUND_FIRST_MS;

	dialer_goto(d, DIALER_PAUSED);
	for (unsigned i = 0; i < d->rounds && ms < ROUND_MAX_MS; i++)
		ms *= 2;
	d->rounds++;
	start_clock(d, on_pause_over, ms < ROUND_MAX_MS ? ms : ROUND_MAX_MS);
}

/* All addresses of this round have failed, one of them so that it will again. */
static bool is_hopeless(const struct dialer *d)
{
	return *d->refusal && d->next >= d->to.count && !any_busy(d);
}

static void give_up(struct dialer *d)
{
	dialer_goto(d, DIALER_STOPPED);
	d->on_hopeless(d, d->refusal);
}

static void lane_closed(struct link *l, const char *why)
{
	struct dialer_lane *lane = (struct dialer_lane *)l;
	struct dialer *d = lane->dialer;
	bool was_ready = lane == d->ready;

	lane->busy = false;
	if (was_ready) {
		d->ready = NULL;
		if (d->state == DIALER_READY)
			dialer_goto(d, DIALER_STOPPED);
		d->on_lost(d, l, why);
	} else if (is_dialing(d)) {
		(void)snprintf(d->last, sizeof d->last, "%s", why);
		if (d->final & 1U << l->end)
			(void)snprintf(d->refusal, sizeof d->refusal, "%s", why);
		if (d->next < d->to.count)
			dial_next(d); /* its moment is over */
		else if (is_hopeless(d))
			give_up(d);
	}
	handle_closed(d);
}

static void lane_ready(struct link *l)
{
	struct dialer *d = ((struct dialer_lane *)l)->dialer;

	d->ready = (struct dialer_lane *)l;
	dialer_goto(d, DIALER_READY);
	d->on_ready(d, l);
}

static struct dialer_lane *free_lane(struct dialer *d, const struct address *to)
{
	struct dialer_lane *found = NULL;

	for (unsigned i = 0; i < ADDRESSES_MAX; i++) {
		struct dialer_lane *lane = &d->lanes[i];

		if (!lane->busy)
			found = lane;
		else if (address_same(&lane->to, to))
			return NULL;
	}
	return found;
}

/* False: it is being dialled already, or can't be now. */
static bool dial(struct dialer *d, const struct address *to)
{
	struct dialer_lane *lane = free_lane(d, to);
	struct failure why = { 0 };

	if (!lane)
		return false;
	*lane = (struct dialer_lane){ .dialer = d,
		.to = *to,
		.link = { .owner = d->owner,
			.on_ready = lane_ready,
			.on_message = d->on_message,
			.on_closed = lane_closed,
			.on_idle = d->on_idle,
			.timeout_ms = d->timeout_ms } };
	if (link_dial(&lane->link, d->loop, to, d->auth, &why) < 0) {
		(void)snprintf(d->last, sizeof d->last, "%.*s", (int)sizeof d->last - 1, why.text);
		return false;
	}
	lane->busy = true;
	d->handles++;
	return true;
}

static void on_moment_over(uv_timer_t *t)
{
	dial_next(t->data);
}

/* The next address, and after the last one a pause. */
static void dial_next(struct dialer *d)
{
	bool dialed = false;

	while (!dialed && d->next < d->to.count)
		dialed = dial(d, &d->to.at[d->next++]);
	if (d->next < d->to.count)
		start_clock(d, on_moment_over, NEXT_ADDRESS_MS);
	else if (is_hopeless(d))
		give_up(d);
	else
		pause_round(d);
}

void dialer_start(struct dialer *d, uv_loop_t *loop, const struct addresses *to)
{
	d->loop = loop;
	d->to = *to;
	(void)uv_timer_init(loop, &d->clock); /* can't fail */
	d->clock.data = d;
	d->handles = 1;
	begin_round(d);
}

void dialer_use(struct dialer *d, const struct addresses *to)
{
	bool news = to->count != d->to.count;

	for (unsigned i = 0; i < to->count; i++)
		news = news || !addresses_have(&d->to, &to->at[i]);
	if (!news)
		return; /* in another order, perhaps: this round goes on */
	d->to = *to;
	if (is_dialing(d))
		begin_round(d);
}

void dialer_again(struct dialer *d, const char *why)
{
	(void)snprintf(d->last, sizeof d->last, "%s", why);
	d->next = d->to.count;
	pause_round(d);
}

void dialer_explain(const struct dialer *d, struct text *t)
{
	const struct dialer_lane *lane = NULL;

	for (unsigned i = 0; i < ADDRESSES_MAX; i++)
		if (d->lanes[i].busy)
			lane = &d->lanes[i];
	if (*d->last || !lane)
		text_add(t, *d->last ? d->last : "no address was dialled");
	else
		text_printf(t, "%s %s", lane->link.peer,
			lane->link.state == LINK_CONNECTING ? "does not answer" :
							      "does not complete the handshake");
	if (d->to.count > 1)
		text_printf(t, " (%u addresses were dialled)", d->to.count);
}

static void on_clock_closed(uv_handle_t *h)
{
	handle_closed(h->data);
}

void dialer_close(struct dialer *d)
{
	if (d->state != DIALER_CLOSED)
		dialer_goto(d, DIALER_CLOSED);
}
