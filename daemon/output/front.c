/* front.c - the event loop's side of the output thread; see front.h */
#include "daemon/output/front.h"

#include <stdlib.h>
#include <sys/signalfd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/back.h"
#include "daemon/output/logs.h"
#include "daemon/output/post.h"

enum { STACK_BYTES = 256 * 1024 };

/* At the end, for a disk that does not answer; the second one where it did not for a while already.
 */
#define DISK_PATIENCE_NS   (5 * 1000000000ull)
#define DISK_IMPATIENCE_NS (2 * 1000000000ull)

struct output {
	struct post post;
	struct back *back; /* its thread's alone, but for back_make_logs() and back_merge() */
	uv_thread_t thread;
	const struct output_events *on;
	void *owner;
	struct logs *now; /* the attempt that it starts, or has started */
	bool draining;    /* what that came to has not been told yet */
};

int output_open(const struct plan *plan, const struct output_host *host, struct output **ret,
	struct failure *why)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, STACK_BYTES };
	struct output *o = calloc(1, sizeof *o);
	int rc;

	if (!o || post_init(&o->post) < 0) {
		free(o);
		return failure_oom(why);
	}
	rc = back_new(plan, host, &o->post, &o->back);
	if (rc == 0)
		rc = uv_thread_create_ex(&o->thread, &options, back_main, o->back);
	if (rc < 0) {
		back_free(o->back);
		post_done(&o->post);
		free(o);
		return failure_not_started(why, rc, "the output thread");
	}
	*ret = o;
	return 0;
}

void output_await_gate(struct output *o)
{
	post_await_gate(&o->post);
}

void output_start(struct output *o)
{
	post_open_gate(&o->post);
}

struct merge *output_merge(const struct output *o)
{
	return back_merge(o->back);
}

/* From the main loop: what the thread has to tell. */
static void on_told(uv_async_t *a)
{
	struct output *o = a->data;
	struct news n = post_take_news(&o->post);

	if (n.what & NEWS_DRAINED) {
		o->draining = false;
		o->on->drained(o->owner);
	}
	if (n.what & NEWS_STATUS_OVER)
		o->on->status_over(o->owner);
	if (n.what & NEWS_LINES)
		o->on->lines(o->owner);
	if (n.what & NEWS_PREPARED) {
		o->now = n.prepared;
		o->on->prepared(o->owner, n.rc, n.why.text);
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
	return 0;
}

void output_detach(struct output *o)
{
	if (post_detach(&o->post))
		uv_close((uv_handle_t *)&o->post.to_front, NULL);
}

void output_prepare(struct output *o, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL;
	int rc;

	o->now = NULL;
	post_next_attempt(&o->post, plan, attempt);
	if (plan->output.tree || plan->output.merge) {
		post_order(&o->post, ORDER_PREPARE);
		return;
	}
	rc = back_make_logs(o->back, plan, attempt, &l, &why); /* which waits for nothing */
	logs_free(post_made(&o->post, l));
	post_prepared(&o->post, attempt, l, rc, &why);
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

void output_take(struct output *o, unsigned i, int fd, int pipe)
{
	o->now->of[i].pipe[fd - 1] = pipe;
}

void output_started(struct output *o)
{
	post_order(&o->post, ORDER_START);
}

void output_drain(struct output *o)
{
	o->draining = true;
	post_drain(&o->post, o->now);
}

const struct left_words *output_words(const struct output *o, unsigned i)
{
	return &o->now->of[i].words;
}

void output_say(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.own, at, len);
}

void output_events(struct output *o, const char *at, size_t len)
{
	post_add(&o->post, &o->post.orders.events, at, len);
}

void output_status(struct output *o, const char *text)
{
	post_status(&o->post, text);
}

void output_reopen(struct output *o)
{
	post_order(&o->post, ORDER_REOPEN);
}

bool output_close(struct output *o, struct closing *c)
{
	/* -1: nobody can ask */
	autoclose asked = c->asked ? signalfd(-1, c->asked, SFD_CLOEXEC | SFD_NONBLOCK) : -1;

	post_close(&o->post, c->hurry, asked);
	post_open_gate(&o->post);
	c->ret_mid_line = false;
	if (!post_await_end(&o->post, o->draining ? DISK_IMPATIENCE_NS : DISK_PATIENCE_NS)) {
		(void)fd_take(&asked); /* the thread has it still */
		return false;
	}
	(void)uv_thread_join(&o->thread);
	c->hurry = o->post.orders.hurry;
	c->ret_mid_line = back_end_lines(o->back);
	back_free(o->back);
	post_done(&o->post);
	free(o);
	return true;
}
