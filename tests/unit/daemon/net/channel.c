/* channel.c - see channel.h */
#include "tests/unit/daemon/net/channel.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

static unsigned count(const struct end *ends, enum channel_goal goal)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CHANNEL_ENDS; i++)
		n += goal == CHANNEL_READY     ? ends[i].ready :
			goal == CHANNEL_SILENT ? ends[i].silent :
						 ends[i].closed;
	return n;
}

static bool is_reached(const struct channel *c)
{
	unsigned hubs = count(c->hub, c->goal), dialers = count(c->dialer, c->goal);

	switch (c->goal) {
	case CHANNEL_READY:
	case CHANNEL_CLOSED:
		return hubs >= c->goal_count && dialers >= c->goal_count;
	case CHANNEL_HUBS_CLOSED:
		return hubs >= c->goal_count;
	case CHANNEL_DIALERS_CLOSED:
		return dialers >= c->goal_count;
	case CHANNEL_SILENT:
		return hubs + dialers >= c->goal_count;
	case CHANNEL_MESSAGES:
		return c->hub[0].messages >= c->goal_count;
	case CHANNEL_PINGED:
		return c->hub[0].ready && c->hub[0].link.pings == 0;
	case CHANNEL_NEVER:
		break;
	}
	return false;
}

static void on_ready(struct link *l)
{
	struct end *e = l->owner;
	struct channel *c = e->channel;

	e->ready++;
	if (c->beats)
		assert_int_equal(beat_watch(l->is_hub ? &c->hub_beat : &c->dialer_beat, l), 0);
	if (c->on_ready)
		c->on_ready(e);
}

static struct link *find(struct link *l, uint64_t session)
{
	return beat_find(&((struct end *)l->owner)->channel->hub_beat, session);
}

static void on_closed(struct link *l, const char *why)
{
	struct end *e = l->owner;

	e->closed++;
	(void)snprintf(e->why, sizeof e->why, "%s", why);
	if (is_reached(e->channel)) /* closing comes after checking in a round of the loop */
		uv_stop(&e->channel->loop);
}

void end_make(struct channel *c, struct end *e)
{
	*e = (struct end){ .channel = c, .on_message = c->on_message };
	e->link = (struct link){ .on_ready = on_ready,
		.on_message = c->heard,
		.on_closed = on_closed,
		.find = find,
		.owner = e,
		.timeout_ms = c->timeout_ms };
}

static struct link *on_accept(struct listener *li)
{
	struct channel *c = li->owner;

	if (c->accepted == CHANNEL_ENDS)
		return NULL;
	end_make(c, &c->hub[c->accepted]);
	return &c->hub[c->accepted++].link;
}

static void on_check(uv_check_t *h)
{
	if (is_reached(h->data))
		uv_stop(h->loop);
}

static void on_guard(uv_timer_t *t)
{
	const struct channel *c = t->data;

	for (unsigned i = 0; i < CHANNEL_ENDS; i++)
		print_message("# %u: hub %d \"%s\", dialer %d \"%s\"\n", i,
			(int)c->hub[i].link.state, c->hub[i].why, (int)c->dialer[i].link.state,
			c->dialer[i].why);
	fail_msg("nothing has happened for 60 s");
}

static void auth_make(struct channel *c, struct link_auth *a, const char *key)
{
	struct failure why = { 0 };

	if (!key)
		return;
	assert_int_equal(sodium_load(&c->sodium, &why), 0);
	a->keyed = true;
	a->sodium = &c->sodium;
	memset(a->key, *key, sizeof a->key);
}

void channel_make(struct channel *c, const char *hub_key, const char *dialer_key,
	void (*heard)(struct link *, unsigned, const unsigned char *, size_t))
{
	struct addresses at = { .count = 1 };
	struct failure why = { 0 };

	*c = (struct channel){ .heard = heard, .raw = -1 };
	assert_int_equal(uv_loop_init(&c->loop), 0);
	auth_make(c, &c->hub_auth, hub_key);
	auth_make(c, &c->dialer_auth, dialer_key);
	assert_int_equal(address_parse("127.0.0.1", 0, &at.at[0]), 0);
	c->listener = (struct listener){ .on_accept = on_accept, .owner = c, .auth = &c->hub_auth };
	if (listener_open(&c->listener, &c->loop, &at, 0, &why) < 0)
		fail_msg("%s", why.text);
	c->listener_open = true;
	c->address = at.at[0];
	address_set_port(&c->address, c->listener.port);
	(void)uv_timer_init(&c->loop, &c->timer);
	(void)uv_timer_init(&c->loop, &c->guard);
	(void)uv_check_init(&c->loop, &c->check);
	c->timer.data = c->guard.data = c->check.data = c;
	uv_unref((uv_handle_t *)&c->guard);
	(void)uv_check_start(&c->check, on_check);
	uv_unref((uv_handle_t *)&c->check);
}

static void on_silent(struct beat *b, struct link *l, uint64_t silent_ms)
{
	struct end *e = l->owner;

	(void)b;
	e->silent++;
	e->silent_ms = silent_ms;
	e->silent_at = uv_hrtime();
}

void channel_beat(struct channel *c, uint32_t timeout_ms)
{
	c->beats = true;
	c->timeout_ms = timeout_ms;
	c->hub_beat = (struct beat){ .on_silent = on_silent, .timeout_ms = timeout_ms };
	c->dialer_beat = c->hub_beat;
	beat_open(&c->hub_beat, &c->loop);
	beat_open(&c->dialer_beat, &c->loop);
	beat_hear(&c->hub_beat, &c->listener);
}

void channel_dial(struct channel *c, unsigned i)
{
	struct failure why = { 0 };

	end_make(c, &c->dialer[i]);
	if (link_dial(&c->dialer[i].link, &c->loop, &c->address, &c->dialer_auth, &why) < 0)
		fail_msg("%s", why.text);
}

void channel_run(struct channel *c)
{
	(void)uv_timer_start(&c->guard, on_guard, 60000, 0);
	(void)uv_run(&c->loop, UV_RUN_DEFAULT);
	(void)uv_timer_stop(&c->guard);
}

void channel_run_until(struct channel *c, enum channel_goal goal, unsigned goal_count)
{
	c->goal = goal;
	c->goal_count = goal_count;
	if (!is_reached(c))
		channel_run(c);
	if (!is_reached(c))
		fail_msg("the loop has ended before the goal %d", (int)goal);
	c->goal = CHANNEL_NEVER;
}

static void on_over(uv_timer_t *t)
{
	uv_stop(t->loop);
}

void channel_run_ms(struct channel *c, uint64_t ms)
{
	uv_update_time(&c->loop);
	(void)uv_timer_start(&c->timer, on_over, ms, 0);
	channel_run(c);
	(void)uv_timer_stop(&c->timer);
}

void channel_stop(struct channel *c)
{
	uv_stop(&c->loop);
}

void channel_done(struct channel *c)
{
	for (unsigned i = 0; i < CHANNEL_ENDS; i++) {
		link_close(&c->hub[i].link, false, NULL);
		link_close(&c->dialer[i].link, false, NULL);
	}
	if (c->listener_open)
		listener_close(&c->listener);
	beat_close(&c->hub_beat);
	beat_close(&c->dialer_beat);
	uv_close((uv_handle_t *)&c->timer, NULL);
	uv_close((uv_handle_t *)&c->guard, NULL);
	uv_close((uv_handle_t *)&c->check, NULL);
	(void)uv_run(&c->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&c->loop), 0);
}

void channel_mute(struct channel *c)
{
	(void)uv_timer_stop(&c->dialer_beat.timer);
	for (unsigned i = 0; i < CHANNEL_ENDS; i++)
		if (c->dialer[i].link.has_udp)
			(void)uv_udp_recv_stop(&c->dialer[i].link.udp);
}

void channel_hear_nothing(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	(void)l, (void)type, (void)payload, (void)len;
}

void channel_make_beating(struct channel *c, const char *key)
{
	channel_make(c, key, key, channel_hear_nothing);
	channel_beat(c, CHANNEL_TIMEOUT_MS);
	channel_dial(c, 0);
	channel_run_until(c, CHANNEL_READY, 1);
}

void assert_nobody_silent(const struct channel *c)
{
	assert_int_equal(c->hub[0].silent, 0);
	assert_int_equal(c->dialer[0].silent, 0);
}
