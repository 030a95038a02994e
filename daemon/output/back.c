/* back.c - the output thread; see post.h */
#include "daemon/output/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	AGAIN_ROOM = 2 * STREAM_READ,
};

void writer_say(void *owner, bool warning, const char *text)
{
	struct output *o = owner;

	o->host.say(o->host.owner, warning, text);
}

/* Another turn follows at once. */
static void on_again(uv_idle_t *i)
{
	(void)i;
}

static void stir(void *owner)
{
	struct output *o = owner;

	(void)uv_idle_start(&o->again, on_again);
}

/* Attempts of which all is where it goes to. */
static void sweep(struct output *o)
{
	for (struct logs **at = &o->logs; *at;) {
		struct logs *l = *at;

		if (l->open > 0 || l->going > 0 || !l->done) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		logs_done(l);
		free(l);
	}
}

/* Lets lines of those that write many come together, up to half of what a pipe holds: every write
 * to an empty one costs the worker more, and every turn us; one that is full it waits for. */
static void gather(struct output *o)
{
	enum {
		LITTLE = FILER_PIECE / 4,
		MUCH = FILER_PIECE / 2,
		SHORT_NS = 20000,
		LONG_NS = 1000000
	};
	struct timespec nap = { .tv_nsec = o->nap_ns };

	if (!o->busy.first || o->closing)
		nap.tv_nsec = 0;
	else if (o->busy.most > MUCH)
		nap.tv_nsec = nap.tv_nsec > SHORT_NS ? nap.tv_nsec / 2 : 0;
	else if (o->busy.most < LITTLE)
		nap.tv_nsec = nap.tv_nsec ? nap.tv_nsec * 2 : SHORT_NS;
	if (nap.tv_nsec > LONG_NS)
		nap.tv_nsec = LONG_NS;
	o->nap_ns = nap.tv_nsec;
	o->busy.most = 0;
	if (nap.tv_nsec > 0)
		(void)nanosleep(&nap, NULL);
}

/* After the pipes were looked at: what came is written. */
static void on_turn(uv_check_t *c)
{
	struct output *o = c->data;
	bool more = streams_read(&o->shared);

	more = merge_flush(o) || more;
	more = console_flush(&o->consoles[0]) || more;
	if (o->console_of[1] == &o->consoles[1])
		more = console_flush(&o->consoles[1]) || more;
	if (more)
		(void)uv_idle_start(&o->again, on_again);
	else
		(void)uv_idle_stop(&o->again);
	merge_turn(o, writer_has_written(o));
	sweep(o);
	gather(o);
	if (o->closing && writer_has_all(o) && !uv_is_closing((uv_handle_t *)c))
		writer_close(o);
}

static void say_lost(struct output *o, size_t bytes, const char *of)
{
	char text[96];

	(void)snprintf(text, sizeof text, "%zu bytes of %s were lost here", bytes, of);
	writer_say(o, true, text);
}

static void on_status_over(struct status *s)
{
	struct output *o = s->owner;

	uv_mutex_lock(&o->lock);
	o->told_status = true;
	if (o->attached)
		(void)uv_async_send(&o->to_main);
	uv_mutex_unlock(&o->lock);
}

static void draw_status(struct output *o, const char *text, bool ended)
{
	if (!o->has_status && !ended) {
		/* the console's own is non-blocking: a stopped terminal goes without the line */
		status_init(&o->status, &o->loop, o->console_of[1]->fd);
		o->status.owner = o;
		o->status.on_over = on_status_over;
		o->has_status = true;
		if (o->status.over)
			on_status_over(&o->status);
	}
	if (ended && o->has_status)
		status_end(&o->status);
	else if (*text)
		status_show(&o->status, text);
}

/* The texts that were posted, and their new, empty memory. */
struct post {
	struct text words, events;
	size_t unsaid, untold;
};

static void on_events_again(uv_timer_t *t);

static void write_events(struct output *o, const char *lines, size_t len)
{
	enum { AGAIN_MS = 100 };

	if (!o->host.write_events(o->host.owner, lines, len))
		(void)uv_timer_stop(&o->events_again);
	else if (!uv_is_active((uv_handle_t *)&o->events_again))
		(void)uv_timer_start(&o->events_again, on_events_again, AGAIN_MS, AGAIN_MS);
}

static void on_events_again(uv_timer_t *t)
{
	write_events(t->data, "", 0);
}

struct console *writer_events_console(const struct output *o)
{
	bool is_ours = o->events_fd == STDOUT_FILENO || o->events_fd == STDERR_FILENO;

	return is_ours ? o->console_of[o->events_fd - 1] : NULL;
}

static void deliver(struct output *o, struct post *p)
{
	struct console *console = writer_events_console(o);

	console_say(o->console_of[1], text_string(&p->words), p->words.len);
	if (p->unsaid)
		say_lost(o, p->unsaid, "launchd's own words");
	if (p->events.len > 0 && console)
		console_say(console, text_string(&p->events), p->events.len);
	else if (p->events.len > 0)
		write_events(o, text_string(&p->events), p->events.len);
	if (p->untold)
		say_lost(o, p->untold, "--events");
	text_done(&p->words);
	text_done(&p->events);
}

static void on_orders(uv_async_t *a)
{
	struct output *o = a->data;
	char status[sizeof o->status_text];
	const struct plan *plan;
	struct post p;
	unsigned orders, attempt;
	bool hurry, status_ended;

	uv_mutex_lock(&o->lock);
	orders = o->orders;
	plan = o->next_plan;
	attempt = o->next_attempt;
	p = (struct post){ o->words, o->events, o->unsaid, o->untold };
	memcpy(status, o->status_text, sizeof status);
	status_ended = o->status_ended;
	hurry = o->hurry;
	o->orders = 0;
	o->words = o->events = (struct text){ 0 };
	o->unsaid = o->untold = 0;
	uv_mutex_unlock(&o->lock);
	deliver(o, &p);
	if (orders & ORDER_ADOPT)
		writer_adopt(o);
	if (orders & ORDER_SEND)
		merge_send(o);
	if (orders & ORDER_HEAR)
		merge_hear(o);
	if (orders & ORDER_START)
		writer_start(o);
	if (orders & ORDER_DRAIN)
		writer_drain(o);
	if (orders & ORDER_STATUS)
		draw_status(o, status, status_ended);
	if (orders & ORDER_PREPARE)
		writer_prepare(o, plan, attempt);
	if ((orders & ORDER_REOPEN) && o->logs)
		logs_reopen(o->logs);
	if (orders & ORDER_CLOSE)
		writer_end(o, hurry);
}

void writer_main(void *arg)
{
	struct output *o = arg;

	uv_mutex_lock(&o->lock);
	o->at_gate = true;
	uv_cond_signal(&o->gate);
	while (!o->started)
		uv_cond_wait(&o->gate, &o->lock);
	uv_mutex_unlock(&o->lock);
	(void)prctl(PR_SET_TIMERSLACK, 1ul); /* gather() naps for less than the slack of 50 us */
	(void)uv_run(&o->loop, UV_RUN_DEFAULT);
	uv_mutex_lock(&o->lock);
	o->over = true;
	uv_cond_signal(&o->ended);
	uv_mutex_unlock(&o->lock);
}

/* Standard output and error may be one file, on which lines of both must not mix. */
static bool are_one(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
		out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

static void on_missing(struct console *c)
{
	struct output *o = c->silence.loop->data;
	bool out = c == &o->consoles[0];
	char text[160];

	(void)snprintf(text, sizeof text,
		"standard %s can't be written to: %s; what is printed meanwhile is lost there",
		!out                          ? "error" :
			o->console_of[1] == c ? "output and error" :
						"output",
		strerror(c->error));
	writer_say(o, true, text);
}

int writer_open(struct output *o)
{
	int rc = uv_loop_init(&o->loop);

	if (rc < 0)
		return rc;
	o->has_loop = true;
	o->shared.loop = &o->loop;
	o->shared.say = writer_say;
	o->shared.stir = stir;
	o->shared.owner = o;
	o->shared.filer = &o->filer;
	o->shared.busy = &o->busy;
	o->shared.again = (struct outbuf){ .at = malloc(AGAIN_ROOM), .room = AGAIN_ROOM };
	if (filer_init(&o->filer) < 0 || !o->shared.again.at)
		return -ENOMEM;
	rc = uv_async_init(&o->loop, &o->to_thread, on_orders);
	if (rc < 0)
		return rc;
	o->has_async = true;
	(void)uv_check_init(&o->loop, &o->turn); /* these can't fail */
	(void)uv_check_start(&o->turn, on_turn);
	uv_unref((uv_handle_t *)&o->turn);
	(void)uv_idle_init(&o->loop, &o->again);
	(void)uv_timer_init(&o->loop, &o->drain);
	(void)uv_timer_init(&o->loop, &o->events_again);
	o->to_thread.data = o->turn.data = o->again.data = o;
	o->drain.data = o->events_again.data = o;
	o->loop.data = o;
	rc = console_open(&o->consoles[0], &o->loop, STDOUT_FILENO);
	o->consoles[0].on_missing = on_missing;
	o->console_of[0] = o->console_of[1] = &o->consoles[0];
	if (rc < 0 || are_one())
		return rc;
	o->console_of[1] = &o->consoles[1];
	rc = console_open(&o->consoles[1], &o->loop, STDERR_FILENO);
	o->consoles[1].on_missing = on_missing;
	return rc;
}
