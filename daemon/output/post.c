/* post.c - see post.h */
#include "daemon/output/post.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/sm.h"
#include "daemon/os/lock.h"
#include "daemon/output/followed.h"
#include "daemon/output/tail.h"

enum { WORDS_MAX = 256 * 1024 };

static const struct sm_state states[POST_STATES] = {
	[POST_MADE] = { "made", SM_TO(POST_OPEN) },
	[POST_OPEN] = { "open", SM_TO(POST_OVER) },
	[POST_OVER] = { "over", 0 },
};

const struct sm post_life = { "output thread", states, POST_STATES };

/* With the lock held, as for what follows. */
static void post_goto(struct post *p, enum post_state next)
{
	p->state = sm_go(&post_life, p->state, next);
	if (next == POST_OVER)
		uv_cond_signal(&p->over);
}

static void order(struct post *p, unsigned what)
{
	p->orders.what |= what;
	if (p->state == POST_OPEN)
		(void)uv_async_send(&p->to_back); /* fails for a closing handle only */
}

static void tell(struct post *p, unsigned what)
{
	p->news.what |= what;
	if (p->attached)
		(void)uv_async_send(&p->to_front);
}

int post_init(struct post *p)
{
	*p = (struct post){ .orders.requests = -1 };
	if (uv_mutex_init(&p->lock) < 0)
		return -ENOMEM;
	if (uv_cond_init(&p->over) == 0)
		return 0;
	uv_mutex_destroy(&p->lock);
	return -ENOMEM;
}

void post_done(struct post *p)
{
	text_done(&p->orders.own.text);
	text_done(&p->orders.events.text);
	text_done(&p->orders.page);
	tails_free(p->news.tails);
	text_done(&p->news.followed);
	text_done(&p->orders.entries.text);
	text_done(&p->orders.looks.text);
	uv_cond_destroy(&p->over);
	uv_mutex_destroy(&p->lock);
}

void post_open(struct post *p)
{
	autolock held = lock_take(&p->lock);

	post_goto(p, POST_OPEN);
	order(p, ORDER_NONE);
}

void post_over(struct post *p)
{
	autolock held = lock_take(&p->lock);

	post_goto(p, POST_OVER);
}

void post_order(struct post *p, enum post_order what)
{
	autolock held = lock_take(&p->lock);

	order(p, what);
}

void post_tell(struct post *p, enum post_news what)
{
	autolock held = lock_take(&p->lock);

	tell(p, what);
}

void post_add(struct post *p, struct posted *to, const char *at, size_t len)
{
	autolock held = lock_take(&p->lock);

	if (to->text.len + len <= WORDS_MAX)
		text_add_bytes(&to->text, at, len);
	else
		to->lost += len;
	order(p, ORDER_NONE);
}

void post_page(struct post *p, const char *at, size_t len)
{
	autolock held = lock_take(&p->lock);

	text_done(&p->orders.page);
	text_add_bytes(&p->orders.page, at, len);
	if (p->orders.page.failed) /* half of it is none */
		text_done(&p->orders.page);
	order(p, ORDER_NONE);
}

void post_status(struct post *p, const char *text)
{
	autolock held = lock_take(&p->lock);

	(void)snprintf(p->orders.status, sizeof p->orders.status, "%s", text ? text : "");
	p->orders.status_ended = p->orders.status_ended || !text;
	order(p, ORDER_STATUS);
}

void post_close(struct post *p, bool hurry, int requests)
{
	autolock held = lock_take(&p->lock);

	p->orders.hurry = hurry;
	p->orders.requests = requests;
	p->unanswered = true;
	order(p, ORDER_CLOSE);
}

bool post_await_end(struct post *p, uint64_t patience_ns)
{
	autolock held = lock_take(&p->lock);

	while (p->state != POST_OVER) {
		if (uv_cond_timedwait(&p->over, &p->lock, patience_ns) == 0)
			continue;
		if (p->unanswered)
			return false;
		p->unanswered = true;
		order(p, ORDER_CLOSE);
	}
	return true;
}

void post_next_attempt(struct post *p, const struct plan *plan, unsigned attempt)
{
	autolock held = lock_take(&p->lock);

	p->orders.plan = plan;
	p->orders.attempt = attempt;
	/* If the previous attempt's order is still pending, the thread would prepare this attempt
	 * twice: now, and at its own order. */
	p->orders.what &= ~(unsigned)ORDER_PREPARE;
	p->news.what &= ~(unsigned)(NEWS_PREPARED | NEWS_DRAINED); /* of the one before: too late */
	p->collected = NULL;
}

struct logs *post_made(struct post *p, struct logs *made)
{
	autolock held = lock_take(&p->lock);
	struct logs *before = p->orders.made;

	p->orders.made = made;
	return before;
}

void post_drain(struct post *p, const struct logs *l)
{
	autolock held = lock_take(&p->lock);

	if (p->collected && p->collected == l)
		tell(p, NEWS_DRAINED);
	else
		order(p, ORDER_DRAIN);
}

struct order_list post_take_orders(struct post *p)
{
	autolock held = lock_take(&p->lock);
	struct order_list taken = p->orders;

	p->orders.what = 0;
	p->orders.made = NULL;
	p->orders.own = p->orders.events = (struct posted){ .lost = 0 };
	p->orders.entries = p->orders.looks = (struct posted){ .lost = 0 };
	p->orders.page = (struct text){ .len = 0 };
	return taken;
}

bool post_is_empty(struct post *p)
{
	autolock held = lock_take(&p->lock);

	return p->orders.own.text.len == 0 && p->orders.events.text.len == 0 &&
		p->orders.page.len == 0 && p->orders.entries.text.len == 0 &&
		p->orders.looks.text.len == 0;
}

void post_answer(struct post *p)
{
	autolock held = lock_take(&p->lock);

	p->unanswered = false;
}

void post_hurry(struct post *p)
{
	autolock held = lock_take(&p->lock);

	p->orders.hurry = true;
}

void post_prepared(struct post *p, unsigned attempt, struct logs *l, const struct failure *why)
{
	autolock held = lock_take(&p->lock);

	if (attempt == p->orders.attempt) { /* else the job has gone on to another one meanwhile */
		p->news.prepared = l;
		p->news.why = *why;
		tell(p, NEWS_PREPARED);
	}
}

void post_drained(struct post *p, unsigned attempt)
{
	autolock held = lock_take(&p->lock);

	if (attempt == p->orders.attempt)
		tell(p, NEWS_DRAINED);
}

void post_collected(struct post *p, const struct logs *l)
{
	autolock held = lock_take(&p->lock);

	p->collected = l;
}

void post_ask_tails(struct post *p, unsigned lines)
{
	autolock held = lock_take(&p->lock);

	p->orders.tail_lines = lines;
	order(p, ORDER_TAILS);
}

void post_tails(struct post *p, struct tails *t)
{
	autolock held = lock_take(&p->lock);

	tails_free(p->news.tails); /* nobody has taken them */
	p->news.tails = t;
	tell(p, NEWS_TAILS);
}

void post_follow(struct post *p, bool on)
{
	autolock held = lock_take(&p->lock);

	p->orders.follow = on;
	order(p, ORDER_FOLLOW);
}

bool post_followed(struct post *p, const struct followed_lines *f)
{
	autolock held = lock_take(&p->lock);
	struct text *to = &p->news.followed;
	size_t before = to->len;

	if (f->len > 0 && to->len + sizeof *f + f->len > WORDS_MAX)
		return false;
	text_add_bytes(to, (const char *)f, sizeof *f);
	text_add_bytes(to, f->at, f->len);
	if (to->failed) { /* half of it is none */
		to->len = before;
		to->failed = false;
		return false;
	}
	tell(p, NEWS_FOLLOWED);
	return true;
}

bool followed_next(const struct text *taken, size_t *at, struct followed_lines *ret)
{
	if (*at == taken->len)
		return false;
	memcpy(ret, taken->at + *at, sizeof *ret);
	ret->at = taken->at + *at + sizeof *ret;
	*at += sizeof *ret + ret->len;
	return true;
}

void post_attach(struct post *p)
{
	autolock held = lock_take(&p->lock);

	p->attached = true;
	tell(p, 0); /* what there was to tell before */
}

bool post_detach(struct post *p)
{
	autolock held = lock_take(&p->lock);
	bool was = p->attached;

	p->attached = false;
	return was;
}

struct news post_take_news(struct post *p)
{
	autolock held = lock_take(&p->lock);
	struct news taken = p->news;

	p->news.what = 0;
	p->news.tails = NULL;
	p->news.followed = (struct text){ .len = 0 };
	return taken;
}
