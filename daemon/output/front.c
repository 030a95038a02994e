/* front.c - the event loop's side of the output thread; see front.h */
#include "daemon/output/front.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/patience.h"
#include "daemon/os/shed.h"
#include "daemon/output/back.h"
#include "daemon/output/followed.h"
#include "daemon/output/logs.h"
#include "daemon/output/post.h"
#include "daemon/output/tail.h"

enum { STACK_BYTES = 256 * 1024, NS_PER_MS = 1000000 };

/* At the end, for a disk that does not answer; the second one where it did not for a while already.
 */
#define DISK_PATIENCE_NS   (5 * 1000000000ull)
#define DISK_IMPATIENCE_NS (2 * 1000000000ull)

/* Workers' pipes as long as there is no thread: nothing has come by them yet. */
struct quiet {
	int epoll;        /* has all of them; -1: nothing is in the loop */
	uv_poll_t poll;   /* of that */
	uv_timer_t again; /* runs after the thread could not be started */
	unsigned open;    /* pipes that have not ended, also one that can't be watched */
	bool started;     /* the thread has yet to hear that the workers are, */
	bool drained;     /* and that all have ended */
};

struct output {
	struct post post;
	struct back *back; /* while the thread runs, its alone, but for back_make_logs() and
			      back_merge() */
	uv_thread_t thread;
	bool may_run; /* see output_start() */
	bool runs;    /* the thread does */
	struct quiet quiet;
	const struct output_events *on;
	void *owner;
	struct logs *now; /* the attempt that it starts, or has started */
	bool draining;    /* what that came to has not been told yet */
	bool gave_up;     /* see output_give_up() */
};

int output_open(const struct plan *plan, const struct output_host *host, struct output **ret,
	struct failure *why)
{
	struct output *o = calloc(1, sizeof *o);

	if (!o || post_init(&o->post) < 0) {
		free(o);
		return failure_oom(why);
	}
	if (back_new(plan, host, &o->post, &o->back) < 0) {
		post_done(&o->post);
		free(o);
		return failure_oom(why);
	}
	o->quiet.epoll = -1;
	*ret = o;
	return 0;
}

static void stop_watching(struct quiet *q)
{
	if (q->epoll < 0)
		return;
	uv_close((uv_handle_t *)&q->poll, NULL);
	uv_close((uv_handle_t *)&q->again, NULL);
	fd_closep(&q->epoll); /* libuv polls it no more */
}

/* What happened before there was a thread. */
static void hand_over(struct output *o)
{
	struct quiet *q = &o->quiet;

	stop_watching(q);
	if (q->started)
		post_order(&o->post, ORDER_START);
	if (q->drained)
		post_drain(&o->post, o->now);
	q->started = q->drained = false;
}

static int start_thread(struct output *o)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, STACK_BYTES };
	int rc = back_open(o->back);

	if (rc < 0)
		return rc;
	o->runs = true; /* the thread looks at this */
	rc = uv_thread_create_ex(&o->thread, &options, back_main, o->back);
	shed_loader(); /* it has made the thread's variables, and is needed no more */
	if (rc == 0)
		hand_over(o);
	else
		o->runs = false;
	return rc;
}

/* The thread is started by the first thing that there is for it to do: a job whose workers print
 * nothing is over sooner without it, by 0.4 of 1.7 ms. */
static int need_thread(struct output *o)
{
	if (o->runs)
		return 0;
	return o->may_run ? start_thread(o) : -EAGAIN;
}

static void on_again(uv_timer_t *t);

/* If it can't be started now, the workers may have taken the last processes: their output stays in
 * the pipes until it can. */
static void try_thread(struct output *o)
{
	enum { AGAIN_MS = 100 };

	if (need_thread(o) == 0 || o->quiet.epoll < 0)
		return;
	(void)uv_poll_stop(&o->quiet.poll);
	(void)uv_timer_start(&o->quiet.again, on_again, AGAIN_MS, 0);
}

static void on_again(uv_timer_t *t)
{
	try_thread(t->data);
}

/* Closes the pipes that have ended. Whether something has come by one. */
static bool has_come(struct quiet *q)
{
	enum { AT_ONCE = 64 };
	struct epoll_event got[AT_ONCE];
	int n;

	do {
		n = epoll_wait(q->epoll, got, AT_ONCE, 0);
		for (int i = 0; i < n; i++) {
			if (got[i].events & EPOLLIN)
				return true;
			fd_closep(got[i].data.ptr);
			q->open--;
		}
	} while (n == AT_ONCE);
	return false;
}

static void on_pipes(uv_poll_t *p, int status, int events)
{
	struct output *o = p->data;

	(void)status, (void)events;
	if (has_come(&o->quiet))
		try_thread(o);
}

static int watch(struct output *o, uv_loop_t *loop)
{
	struct quiet *q = &o->quiet;
	int rc;

	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = q->epoll < 0 ? -errno : uv_poll_init(loop, &q->poll, q->epoll);
	if (rc < 0) {
		fd_closep(&q->epoll);
		return rc;
	}
	(void)uv_poll_start(&q->poll, UV_READABLE, on_pipes); /* these can't fail */
	(void)uv_timer_init(loop, &q->again);
	q->poll.data = q->again.data = o;
	return 0;
}

/* False: one of the attempt's pipes can't be. */
static bool watch_pipes(struct quiet *q, const struct logs *l)
{
	q->open = 0;
	for (unsigned i = 0; i < l->plan->start_count; i++)
		for (int stream = 0; stream < 2; stream++) {
			int *pipe = &l->of[i].pipe[stream];
			struct epoll_event e = { .events = EPOLLIN, .data.ptr = pipe };

			if (*pipe < 0)
				continue;
			q->open++;
			if (epoll_ctl(q->epoll, EPOLL_CTL_ADD, *pipe, &e) < 0)
				return false;
		}
	return true;
}

void output_start(struct output *o)
{
	o->may_run = true;
	if (!post_is_empty(&o->post))
		try_thread(o);
}

struct merge *output_merge(const struct output *o)
{
	return back_merge(o->back);
}

static void tell_followed(const struct output *o, const struct text *taken)
{
	struct followed_lines f;

	for (size_t at = 0; followed_next(taken, &at, &f);)
		o->on->followed(o->owner, &f);
}

/* From the main loop: what the thread has to tell. */
static void on_told(uv_async_t *a)
{
	struct output *o = a->data;
	struct news n = post_take_news(&o->post);

	tell_followed(o, &n.followed); /* before it is told that there are no more */
	text_done(&n.followed);
	if (n.what & NEWS_DRAINED) {
		o->draining = false;
		o->on->drained(o->owner);
	}
	if (n.what & NEWS_STATUS_OVER)
		o->on->status_over(o->owner);
	if (n.what & NEWS_LINES)
		o->on->lines(o->owner);
	if (n.what & NEWS_TAILS)
		o->on->tails(o->owner, n.tails);
	tails_free(n.tails);
	if (n.what & NEWS_PREPARED) {
		o->now = n.prepared;
		o->on->prepared(o->owner, &n.why);
	}
}

int output_attach(struct output *o, uv_loop_t *loop, const struct output_events *on, void *owner,
	struct failure *why)
{
	int rc = uv_async_init(loop, &o->post.to_front, on_told);

	if (rc < 0)
		return failure_set(why, rc, "uv_async_init: %s", uv_strerror(rc));
	o->post.to_front.data = o;
	o->on = on;
	o->owner = owner;
	post_attach(&o->post);
	rc = watch(o, loop);
	return rc < 0 ? failure_set(why, rc, "epoll: %s", uv_strerror(rc)) : 0;
}

void output_detach(struct output *o)
{
	stop_watching(&o->quiet);
	if (post_detach(&o->post))
		uv_close((uv_handle_t *)&o->post.to_front, NULL);
}

void output_prepare(struct output *o, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL;
	int rc;

	o->now = NULL;
	o->quiet.started = o->quiet.drained = false;
	post_next_attempt(&o->post, plan, attempt);
	if (plan->output.tree || plan->output.merge || plan->output.journal == JOURNAL_ALL) {
		rc = need_thread(o);
		if (rc == 0) {
			post_order(&o->post, ORDER_PREPARE);
			return;
		}
		(void)failure_not_started(&why, rc, "the output thread");
	} else {
		(void)back_make_logs(o->back, plan, attempt, &l, &why); /* waits for nothing */
		logs_free(post_made(&o->post, l));
	}
	post_prepared(&o->post, attempt, l, &why);
}

uint64_t output_patience_ms(const struct output *o)
{
	return o->gave_up ? PATIENCE_ASKED_MS : PATIENCE_MOST_MS;
}

void output_give_up(struct output *o)
{
	o->gave_up = true;
}

const char *output_log_dir(const struct output *o)
{
	return o->now ? o->now->dir : NULL;
}

struct stdio output_stdio(const struct output *o, unsigned i, int fd)
{
	const struct worker_logs *w = &o->now->of[i];

	switch (w->how[fd - 1].way) {
	case STREAM_INHERIT:
		return (struct stdio){ .how = STDIO_INHERIT };
	case STREAM_DIRECT:
		return (struct stdio){ .how = STDIO_OPEN, .fd = w->direct[fd - 1] };
	case STREAM_PIPE:
		return (struct stdio){ .how = STDIO_PIPE };
	}
	__builtin_unreachable();
}

void output_take(struct output *o, unsigned i, int fd, int pipe, pid_t pid)
{
	o->now->of[i].pid = pid;
	o->now->of[i].pipe[fd - 1] = pipe;
}

void output_started(struct output *o)
{
	o->quiet.started = true;
	if (o->runs)
		hand_over(o);
	else if (!watch_pipes(&o->quiet, o->now))
		try_thread(o);
}

/* There is nothing to be read, and no file to look at. */
static void drain_nothing(struct output *o)
{
	o->quiet.started = false;
	logs_collect(o->now);
	post_drained(&o->post, o->now->attempt);
}

void output_drain(struct output *o)
{
	o->draining = true;
	if (o->runs) {
		post_drain(&o->post, o->now);
	} else if (!has_come(&o->quiet) && o->quiet.open == 0) {
		drain_nothing(o);
	} else {
		o->quiet.drained = true;
		try_thread(o);
	}
}

const struct left_words *output_words(const struct output *o, unsigned i)
{
	return &o->now->of[i].words;
}

void output_say(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.own, at, len);
	try_thread(o);
}

void output_journal(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.entries, at, len);
	try_thread(o);
}

void output_events(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.events, at, len);
	try_thread(o);
}

void output_looks(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.looks, at, len);
	try_thread(o);
}

void output_page(struct output *o, const char *at, size_t len)
{
	post_page(&o->post, at, len);
	try_thread(o);
}

struct output_counts output_counts(const struct output *o)
{
	return back_counts(o->back);
}

struct steps_seen output_steps(const struct output *o)
{
	const struct step_lines *s = back_steps(o->back);

	return s ? step_lines_seen(s) : (struct steps_seen){ 0 };
}

void output_forget_steps(struct output *o)
{
	if (back_steps(o->back))
		step_lines_forget(back_steps(o->back));
}

void output_status(struct output *o, const char *text)
{
	post_status(&o->post, text);
	if (text)
		try_thread(o);
}

bool output_ask_tails(struct output *o, unsigned lines)
{
	if (!o->runs || !o->now)
		return false;
	post_ask_tails(&o->post, lines);
	return true;
}

void output_follow(struct output *o, bool on)
{
	post_follow(&o->post, on);
}

void output_reopen(struct output *o)
{
	if (o->runs) /* else there are no files */
		post_order(&o->post, ORDER_REOPEN);
}

/* There is neither a descriptor nor memory for the thread's loop. --events has to do without. */
static void say_without_loop(struct output *o)
{
	const struct text *own = &o->post.orders.own.text;
	size_t done;

	(void)fd_write_within(
		STDERR_FILENO, text_string(own), own->len, DISK_PATIENCE_NS / NS_PER_MS, &done);
}

/* False: it is stuck. */
static bool end_thread(struct output *o, struct closing *c)
{
	/* -1: nobody can ask */
	autoclose asked = c->asked ? signalfd(-1, c->asked, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	uint64_t patience_ns = o->draining || o->gave_up ? DISK_IMPATIENCE_NS : DISK_PATIENCE_NS;
	bool is_thread = o->runs || start_thread(o) == 0;

	post_close(&o->post, c->hurry, asked);
	if (!is_thread && back_open(o->back) == 0) { /* then this one does its work */
		o->runs = true;
		hand_over(o);
		back_main(o->back);
	} else if (!is_thread) {
		say_without_loop(o);
	}
	if (is_thread && !post_await_end(&o->post, patience_ns)) {
		(void)fd_take(&asked); /* the thread has it still */
		return false;
	}
	if (is_thread)
		(void)uv_thread_join(&o->thread);
	c->hurry = o->post.orders.hurry;
	return true;
}

bool output_close(struct output *o, struct closing *c)
{
	bool is_needed = o->runs || o->quiet.started || !post_is_empty(&o->post);

	c->ret_mid_line = false;
	if (is_needed && !end_thread(o, c))
		return false;
	c->ret_mid_line = back_end_lines(o->back);
	c->ret_counts = back_counts(o->back);
	if (c->shown)
		back_shown(o->back, c->shown);
	logs_free(post_made(&o->post, NULL)); /* which no thread has adopted */
	back_free(o->back);
	post_done(&o->post);
	free(o);
	return true;
}
