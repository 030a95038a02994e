/* post.h - what the event loop's side (front.c) and the output thread (back.c) hand one another:
 * orders one way, news the other.
 *
 * All of it is under the lock, which is held for as long as it takes to copy; neither side sees
 * anything else of the other. What only one thread calls says so. */
#ifndef LAUNCHD_DAEMON_OUTPUT_POST_H
#define LAUNCHD_DAEMON_OUTPUT_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/failure.h"
#include "common/text.h"

struct followed_lines;
struct logs;
struct plan;
struct sm;
struct tails;

/* The thread's side: there is no loop yet that could be woken; there is one; it is over. */
enum post_state { POST_MADE, POST_OPEN, POST_OVER, POST_STATES };

extern const struct sm post_life;

/* What the thread is to do; several at once are done in this order. */
enum post_order {
	ORDER_NONE = 0, /* only to look at what was posted */
	ORDER_START = 1 << 0,
	ORDER_DRAIN = 1 << 1,
	ORDER_STATUS = 1 << 2,
	ORDER_PREPARE = 1 << 3,
	ORDER_REOPEN = 1 << 4,
	ORDER_CLOSE = 1 << 5,
	ORDER_TAILS = 1 << 6,
	ORDER_FOLLOW = 1 << 7,
};

/* Whole lines, from more than one place in the event loop. */
struct posted {
	struct text text;
	size_t lost; /* bytes that found no room */
};

struct order_list {
	unsigned what;
	struct logs *made; /* by the event loop itself, to be adopted before all else; or NULL */
	struct posted own, events; /* launchd's own, for stderr; of --events */
	struct text page;          /* of metrics, the latest; "": none */
	struct posted entries;     /* records for the journal */
	struct posted looks;       /* of --hang-trace */
	const struct plan *plan;   /* ORDER_PREPARE: of this attempt */
	unsigned attempt;          /* likewise */
	char status[80];           /* ORDER_STATUS; "": none yet */
	bool status_ended;         /* likewise: it is taken away for good */
	bool hurry;                /* ORDER_CLOSE: no reader is waited for that takes nothing */
	unsigned tail_lines;       /* ORDER_TAILS: of each worker at the most */
	bool follow;               /* ORDER_FOLLOW: workers' lines are wanted */
	int requests;              /* signalfd(2) by which a hurry is asked for later; -1 */
};

enum post_news {
	NEWS_PREPARED = 1 << 0,
	NEWS_DRAINED = 1 << 1,
	NEWS_STATUS_OVER = 1 << 2,
	NEWS_LINES = 1 << 3,
	NEWS_TAILS = 1 << 4,
	NEWS_FOLLOWED = 1 << 5,
};

struct news {
	unsigned what;
	struct logs *prepared; /* NEWS_PREPARED; NULL: they could not be, for that reason */
	struct failure why;
	struct tails *tails;  /* NEWS_TAILS; NULL: there is no memory */
	struct text followed; /* NEWS_FOLLOWED: for followed_next() */
};

struct post {
	uv_mutex_t lock;
	uv_cond_t over; /* the state is */
	enum post_state state;
	uv_async_t to_back, to_front; /* in the loops that they wake */
	bool attached;                /* the event loop has to_front */
	bool unanswered;              /* ORDER_CLOSE: the thread may be stuck in a disk */
	const struct logs *collected; /* have ended before that was asked for */
	struct order_list orders;
	struct news news;
};

/* -ENOMEM: there is nothing to be freed. */
int post_init(struct post *p);
void post_done(struct post *p);

/* to_back is there: from now on an order wakes the thread, and those before do it now. */
void post_open(struct post *p);

/* The thread's: it is over. */
void post_over(struct post *p);

/* The event loop's: waits for that. False: the thread has not answered ORDER_CLOSE for so long. */
bool post_await_end(struct post *p, uint64_t patience_ns);

/* Adds an order and wakes the thread. */
void post_order(struct post *p, enum post_order what);

/* The event loop's; `to` is the post's orders' own, events, entries or looks. */
void post_add(struct post *p, struct posted *to, const char *at, size_t len);
void post_page(struct post *p, const char *at, size_t len); /* drops one that waits still */
void post_status(struct post *p, const char *text);
void post_close(struct post *p, bool hurry, int requests);

/* The event loop's: from now on this attempt's news are told, and no other's. Drops an order to
 * prepare an earlier one. */
void post_next_attempt(struct post *p, const struct plan *plan, unsigned attempt);

/* Its logs were made already: the thread adopts them with its next order. Returns those that it has
 * not adopted yet, as their attempt was never started. */
struct logs *post_made(struct post *p, struct logs *made);

/* The event loop's: NEWS_DRAINED is wanted of these; they may have ended already. */
void post_drain(struct post *p, const struct logs *l);

/* The thread's: takes all that is there, texts and all. */
struct order_list post_take_orders(struct post *p);

/* No text waits to be taken. */
bool post_is_empty(struct post *p);

/* The thread's: ORDER_CLOSE was obeyed; from now on it is in a hurry. */
void post_answer(struct post *p);
void post_hurry(struct post *p);

/* Adds news and wakes the event loop, if it listens. */
void post_tell(struct post *p, enum post_news what);

/* An attempt's logs are prepared, drained, or have ended by themselves. */
void post_prepared(struct post *p, unsigned attempt, struct logs *l, const struct failure *why);
void post_drained(struct post *p, unsigned attempt);
void post_collected(struct post *p, const struct logs *l);

/* The event loop's: asks for the last lines of workers. The thread's: here they are; or NULL. */
void post_ask_tails(struct post *p, unsigned lines);
void post_tails(struct post *p, struct tails *t);

/* The event loop's: whether workers' lines are wanted. The thread's: here are some; false: those
 * before have not been taken, and there is no room, which there always is for a mere count. */
void post_follow(struct post *p, bool on);
bool post_followed(struct post *p, const struct followed_lines *f);

/* The next ones of what was taken, from *at on, which moves past them. False: there are none. */
bool followed_next(const struct text *taken, size_t *at, struct followed_lines *ret);

/* The event loop's: listens by to_front, which is in its loop; stops. False: it did not listen. */
void post_attach(struct post *p);
bool post_detach(struct post *p);
struct news post_take_news(struct post *p);

#endif
