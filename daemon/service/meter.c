/* meter.c - see meter.h */
#include "daemon/service/meter.h"

#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/os/replace.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"

enum { EVERY_MS = 1000 };

void meter_render(struct meter *me, struct text *out)
{
	struct metrics_moment now = { .output = me->bytes };

	if (me->member)
		sight_take(me->member, &me->sight);
	else
		me->sight.trip_count = 0;
	if (me->output)
		now.output = output_counts(me->output);
	now.sight = &me->sight;
	metrics_render(&me->counted, &now, out);
}

void meter_write(void *owner, const char *at, size_t len)
{
	struct meter *me = owner;
	/* the thread may wait for a disk, and is left behind then; the last page has no thread */
	int rc = me->output ? file_replace(me->path, at, len, REPLACE_FOR_ALL) :
			      file_replace_last(me->path, at, len, REPLACE_FOR_ALL);
	struct text line = { 0 };

	if (rc == 0 || me->told)
		return;
	me->told = true;
	text_printf(&line, "--metrics-file: %s can't be written: %s", me->path, file_error(rc));
	say("warning", text_string(&line));
	text_done(&line);
}

/* The loop may not wait for a disk, the thread may. */
static void write_page(struct meter *me)
{
	struct text page = { 0 };

	meter_render(me, &page);
	if (!page.failed && me->output)
		output_page(me->output, text_string(&page), page.len);
	else if (!page.failed)
		meter_write(me, text_string(&page), page.len);
	text_done(&page);
}

static void on_soon(uv_timer_t *t)
{
	struct meter *me = t->data;

	me->written_ms = uv_now(t->loop);
	write_page(me);
}

/* What happens together is written together: in the loop's next turn at the earliest. */
static void write_soon(struct meter *me)
{
	uint64_t now, due = me->written_ms + EVERY_MS;

	if (!me->path || !me->in_loop || uv_is_active((uv_handle_t *)&me->soon))
		return;
	uv_update_time(me->soon.loop);
	now = uv_now(me->soon.loop);
	(void)uv_timer_start(
		&me->soon, on_soon, me->written_ms > 0 && due > now ? due - now : 0, 0);
}

static void count(void *owner, const struct event *e)
{
	struct meter *me = owner;
	/* an event may be told some time after it happened */
	int64_t ago_ns = (int64_t)(uv_hrtime() - e->at_ns);

	metrics_hear(&me->counted, e, utc_now_ns() - ago_ns);
}

static void on_event(void *owner, const struct event *e)
{
	count(owner, e);
	write_soon(owner);
}

static void on_job_started(void *owner, const struct event *e)
{
	const struct plan *p = e->job_started.plan;
	struct meter *me = owner;

	count(me, e);
	me->path = p->metrics_path;
	me->sight.trips = arena_alloc(me->counted.arena, p->nnodes * sizeof *me->sight.trips);
	me->sight.room = me->sight.trips ? p->nnodes : 0;
}

/* The member is still there, and will not be when the last page is written. */
static void on_verdict(void *owner, const struct event *e)
{
	struct meter *me = owner;

	on_event(me, e);
	if (me->member)
		sight_take(me->member, &me->sight);
	me->member = NULL;
}

static void on_job_ended(void *owner, const struct event *e)
{
	struct meter *me = owner;

	count(me, e);
	if (me->path && !me->output) /* else its thread is stuck in a disk */
		write_page(me);
}

static const struct observer meter = {
	.on = {
		[EVENT_JOB_STARTED] = on_job_started,
		[EVENT_ATTEMPT_STARTED] = count, /* its workers follow at once */
		[EVENT_WORKER_STARTED] = on_event,
		[EVENT_WORKER_ENDED] = on_event,
		[EVENT_STOP] = on_event,
		[EVENT_NODE_JOINED] = on_event,
		[EVENT_NODE_LOST] = on_event,
		[EVENT_RESTART] = on_event,
		[EVENT_HANG] = on_event,
		[EVENT_STEP] = on_event,
		[EVENT_VERDICT] = on_verdict,
		[EVENT_JOB_ENDED] = on_job_ended,
	},
};

static void on_asked(void *owner, struct text *ret)
{
	meter_render(owner, ret);
}

void meter_start(struct meter *me, const struct plan *plan, struct arena *arena, struct bus *b)
{
	*me = (struct meter){
		.counted = { .arena = arena, .job_name = plan->job_name },
		.server = { .page = on_asked, .owner = me, .listening = -1 },
	};
	bus_add(b, &meter, me);
}

int meter_listen(struct meter *me, const struct address *at, struct failure *why)
{
	return address_size(at) > 0 ? http_server_open(&me->server, at, why) : 0;
}

int meter_enter(struct meter *me, uv_loop_t *loop, const struct member *member, struct failure *why)
{
	(void)uv_timer_init(loop, &me->soon); /* can't fail */
	me->soon.data = me;
	me->member = member;
	me->in_loop = true;
	return me->server.listening < 0 ? 0 : http_server_enter(&me->server, loop, why);
}

void meter_leave(struct meter *me)
{
	http_server_close(&me->server);
	if (!me->in_loop)
		return;
	if (uv_is_active((uv_handle_t *)&me->soon))
		write_page(me); /* the last one waits for whoever reads the workers' output */
	uv_close((uv_handle_t *)&me->soon, NULL);
	me->member = NULL;
	me->in_loop = false;
}
