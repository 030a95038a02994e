/* front.c - see front.h */
#include "daemon/output/front.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/output/post.h"

enum { STACK_BYTES = 256 * 1024, WORDS_MAX = 256 * 1024 };

/* At the end, for a disk that does not answer; the second one where it did not for a while already.
 */
#define DISK_PATIENCE_NS   (5 * 1000000000ull)
#define DISK_IMPATIENCE_NS (2 * 1000000000ull)

static void done(struct output *o)
{
	if (o->has_loop)
		(void)uv_loop_close(&o->loop); /* it has run until no handle was left */
	console_done(&o->consoles[0]);
	if (o->console_of[1] == &o->consoles[1])
		console_done(&o->consoles[1]);
	filer_done(&o->filer);
	fd_closep(&o->requests);
	free(o->shared.again.at);
	text_done(&o->words);
	text_done(&o->events);
	merge_done(&o->merge);
	arena_done(&o->memory);
	uv_mutex_destroy(&o->lock);
	uv_cond_destroy(&o->gate);
	uv_cond_destroy(&o->ended);
	free(o);
}

int output_open(const struct plan *plan, const struct output_host *host, struct output **ret,
	struct failure *why)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, STACK_BYTES };
	struct output *o = calloc(1, sizeof *o);
	int rc;

	if (!o || uv_mutex_init(&o->lock) < 0 || uv_cond_init(&o->gate) < 0 ||
		uv_cond_init(&o->ended) < 0) {
		free(o);
		return failure_oom(why);
	}
	for (int i = 0; i < 2; i++)
		o->consoles[i] = (struct console){ .fd = -1, .epoll = -1 };
	o->requests = -1;
	o->host = *host;
	o->events_fd = plan->output.events_path ? -1 : plan->output.events_fd;
	rc = writer_open(o);
	o->consoles[0].drops = o->consoles[1].drops = plan->output.drop;
	if (rc == 0)
		rc = uv_thread_create_ex(&o->thread, &options, writer_main, o);
	if (rc < 0) {
		writer_close(o);
		if (o->has_loop)
			(void)uv_run(&o->loop, UV_RUN_DEFAULT);
		done(o);
		return failure_not_started(why, rc, "the output thread");
	}
	uv_mutex_lock(&o->lock);
	while (!o->at_gate)
		uv_cond_wait(&o->gate, &o->lock);
	uv_mutex_unlock(&o->lock);
	*ret = o;
	return 0;
}

void output_start(struct output *o)
{
	uv_mutex_lock(&o->lock);
	o->started = true;
	uv_cond_signal(&o->gate);
	uv_mutex_unlock(&o->lock);
}

void output_order(struct output *o, enum post_order what)
{
	uv_mutex_lock(&o->lock);
	o->orders |= what;
	if (!o->over)
		(void)uv_async_send(&o->to_thread); /* fails for a closing handle only */
	uv_mutex_unlock(&o->lock);
}

void output_tell_lines(struct output *o)
{
	if (o->told_lines)
		return;
	o->told_lines = true;
	if (o->attached)
		(void)uv_async_send(&o->to_main);
}

/* From the main loop: what the thread has to tell. */
static void on_told(uv_async_t *a)
{
	struct output *o = a->data;
	bool prepared, drained, status, lines;

	uv_mutex_lock(&o->lock);
	status = o->told_status;
	prepared = o->told_prepared;
	drained = o->told_drained;
	lines = o->told_lines;
	o->told_prepared = o->told_drained = o->told_status = o->told_lines = false;
	uv_mutex_unlock(&o->lock);
	if (drained) {
		o->draining = false;
		o->on->drained(o->owner);
	}
	if (status)
		o->on->status_over(o->owner);
	if (lines)
		o->on->lines(o->owner);
	if (prepared) {
		o->now = o->prepared;
		o->on->prepared(o->owner, o->prepared_rc, o->prepared_why.text);
	}
}

int output_attach(struct output *o, uv_loop_t *loop, const struct output_events *on, void *owner,
	struct failure *why)
{
	int rc = uv_async_init(loop, &o->to_main, on_told);

	if (rc < 0)
		return failure_set(why, rc, "uv_async_init: %s", uv_strerror(rc));
	o->to_main.data = o;
	o->on = on;
	o->owner = owner;
	uv_mutex_lock(&o->lock);
	o->attached = true;
	uv_mutex_unlock(&o->lock);
	return 0;
}

void output_detach(struct output *o)
{
	bool was;

	uv_mutex_lock(&o->lock);
	was = o->attached;
	o->attached = false;
	uv_mutex_unlock(&o->lock);
	if (was)
		uv_close((uv_handle_t *)&o->to_main, NULL);
}

void output_prepare(struct output *o, const struct plan *plan, unsigned attempt)
{
	o->now = NULL;
	uv_mutex_lock(&o->lock);
	o->next_plan = plan;
	o->next_attempt = attempt;
	o->told_prepared = o->told_drained = false; /* of the attempt before, too late */
	o->collected = NULL;
	uv_mutex_unlock(&o->lock);
	if (!writer_prepare_at_once(o, plan, attempt))
		output_order(o, ORDER_PREPARE);
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
	output_order(o, ORDER_START);
}

void output_drain(struct output *o)
{
	bool drained;

	o->draining = true;
	uv_mutex_lock(&o->lock);
	drained = o->collected && o->collected == o->now;
	o->told_drained = drained;
	if (drained && o->attached)
		(void)uv_async_send(&o->to_main);
	uv_mutex_unlock(&o->lock);
	if (!drained)
		output_order(o, ORDER_DRAIN);
}

const struct left_words *output_words(const struct output *o, unsigned i)
{
	return &o->now->of[i].words;
}

static void post(struct output *o, struct text *to, size_t *lost, const char *at, size_t len)
{
	uv_mutex_lock(&o->lock);
	if (to->len + len <= WORDS_MAX)
		text_add_bytes(to, at, len);
	else
		*lost += len;
	uv_mutex_unlock(&o->lock);
	output_order(o, ORDER_NONE);
}

void output_say(struct output *o, const char *at, size_t len)
{
	post(o, &o->words, &o->unsaid, at, len);
}

void output_events(struct output *o, const char *at, size_t len)
{
	post(o, &o->events, &o->untold, at, len);
}

void output_status(struct output *o, const char *text)
{
	uv_mutex_lock(&o->lock);
	(void)snprintf(o->status_text, sizeof o->status_text, "%s", text ? text : "");
	o->status_ended = o->status_ended || !text;
	uv_mutex_unlock(&o->lock);
	output_order(o, ORDER_STATUS);
}

void output_reopen(struct output *o)
{
	output_order(o, ORDER_REOPEN);
}

/* Waits for the thread's end; false: it does not answer any more. */
static bool wait_for_end(struct output *o)
{
	uint64_t patience_ns = o->draining ? DISK_IMPATIENCE_NS : DISK_PATIENCE_NS;
	bool over;

	uv_mutex_lock(&o->lock);
	while (!o->over) {
		if (uv_cond_timedwait(&o->ended, &o->lock, patience_ns) == 0)
			continue;
		if (o->asked != o->answered)
			break;
		o->asked++;
		o->orders |= ORDER_CLOSE;
		(void)uv_async_send(&o->to_thread);
	}
	over = o->over;
	uv_mutex_unlock(&o->lock);
	return over;
}

/* The last event follows, where a last line may have no end. */
static void end_line_for_event(struct output *o)
{
	enum { PATIENCE_MS = 1000 };
	struct console *c = writer_events_console(o);
	size_t done;

	if (!c || !c->unended)
		return;
	(void)fd_write_within(o->events_fd, "\n", 1, PATIENCE_MS, &done);
	c->unended = false;
}

bool output_close(struct output *o, struct closing *c)
{
	uv_mutex_lock(&o->lock);
	o->asked++;
	o->hurry = c->hurry;
	if (c->asked) /* -1: then nobody can ask */
		o->requests = signalfd(-1, c->asked, SFD_CLOEXEC | SFD_NONBLOCK);
	uv_mutex_unlock(&o->lock);
	output_start(o);
	output_order(o, ORDER_CLOSE);
	c->ret_mid_line = false;
	if (!wait_for_end(o))
		return false;
	(void)uv_thread_join(&o->thread);
	c->hurry = o->hurrying;
	end_line_for_event(o);
	c->ret_mid_line = o->console_of[1]->unended;
	done(o);
	return true;
}
