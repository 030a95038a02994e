/* back_end.c - the output thread's end: what it waits for, and how long; see post.h */
#include "daemon/output/post.h"

bool writer_has_written(const struct output *o)
{
	for (const struct logs *l = o->logs; l; l = l->next)
		if (l->open > 0)
			return false;
	return true;
}

bool writer_has_all(struct output *o)
{
	bool posted;

	uv_mutex_lock(&o->lock);
	posted = o->words.len > 0 || o->events.len > 0;
	uv_mutex_unlock(&o->lock);
	return !posted && writer_has_written(o) && merge_is_idle(o) &&
		console_is_idle(&o->consoles[0]) && console_is_idle(&o->consoles[1]);
}

static void on_closed(uv_handle_t *h)
{
	(void)h;
}

void writer_close(struct output *o)
{
	if (!o->has_async)
		return;
	uv_close((uv_handle_t *)&o->to_thread, on_closed);
	uv_close((uv_handle_t *)&o->turn, on_closed);
	uv_close((uv_handle_t *)&o->again, on_closed);
	uv_close((uv_handle_t *)&o->drain, on_closed);
	uv_close((uv_handle_t *)&o->events_again, on_closed);
	if (o->has_status)
		status_close(&o->status);
	if (o->has_request)
		uv_close((uv_handle_t *)&o->request, on_closed);
	merge_close(&o->merge);
	console_close(&o->consoles[0]);
	if (o->console_of[1] == &o->consoles[1])
		console_close(&o->consoles[1]);
}

static uint64_t written(const struct output *o)
{
	return o->consoles[0].written + o->consoles[1].written;
}

/* A reader that takes nothing is left to itself: all is in the files, where there are some. So is
 * any reader, where somebody wants launchd to end at last. */
static void on_hurry(uv_timer_t *t)
{
	struct output *o = t->data;

	if (o->requested || written(o) == o->written) {
		console_abandon(&o->consoles[0]);
		if (o->console_of[1] == &o->consoles[1])
			console_abandon(&o->consoles[1]);
		o->shared.stir(o);
	}
	o->written = written(o);
}

static void start_hurry(struct output *o)
{
	enum { HURRY_MS = 1000 };

	if (o->hurrying)
		return;
	o->hurrying = true;
	o->written = written(o);
	(void)uv_timer_start(&o->drain, on_hurry, HURRY_MS, HURRY_MS);
}

static void on_request(uv_poll_t *p, int status, int events)
{
	struct output *o = p->data;

	(void)status, (void)events;
	(void)uv_poll_stop(p);
	o->requested = true;
	start_hurry(o);
}

static void watch_requests(struct output *o)
{
	int fd;

	uv_mutex_lock(&o->lock);
	fd = o->requests;
	uv_mutex_unlock(&o->lock);
	if (fd < 0 || o->has_request || uv_poll_init(&o->loop, &o->request, fd) < 0)
		return;
	o->has_request = true;
	o->request.data = o;
	(void)uv_poll_start(&o->request, UV_READABLE, on_request);
}

void writer_end(struct output *o, bool hurry)
{
	o->closing = true;
	if (hurry)
		start_hurry(o);
	else
		watch_requests(o);
	writer_let_go(o);
	for (struct logs *l = o->logs; l; l = l->next)
		logs_end(l);
	merge_end(o);
	uv_mutex_lock(&o->lock);
	o->answered++;
	uv_mutex_unlock(&o->lock);
}
