/* output.c - see output.h */
#include "daemon/output/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/logs.h"
#include "daemon/output/tree.h"

enum {
	STACK_BYTES = 256 * 1024,
	DRAIN_MS = 1000, /* for pipes that somebody keeps open */
	WORDS_MAX = 256 * 1024,
	AGAIN_ROOM = 2 * STREAM_READ,
};

/* At the end, for a disk that does not answer. */
#define DISK_PATIENCE_NS (5 * 1000000000ull)

/* What the thread is to do; of several at once in this order. */
enum order {
	ORDER_START = 1,
	ORDER_DRAIN = 2,
	ORDER_PREPARE = 4,
	ORDER_REOPEN = 8,
	ORDER_CLOSE = 16,
};

struct output {
	/* both threads', under the lock */
	uv_mutex_t lock;
	uv_cond_t ended;
	unsigned orders;
	const struct plan *next_plan; /* ORDER_PREPARE */
	unsigned next_attempt;
	struct text words; /* launchd's own, for stderr */
	size_t unsaid;     /* bytes of them that found no room */
	bool attached, over;
	bool told_prepared, told_drained; /* events that the main loop has yet to hear */
	int prepared_rc;
	struct failure prepared_why;
	struct logs *prepared;
	unsigned asked, answered; /* at the end: whether the thread is stuck in a disk */

	/* the main thread's */
	uv_thread_t thread;
	uv_async_t to_main;
	const struct output_events *on;
	void *owner;
	struct logs *now; /* the attempt that it starts, or has started */

	/* the output thread's */
	uv_loop_t loop;
	uv_async_t to_thread;
	uv_check_t turn;
	uv_idle_t again; /* runs while a console has more to show at once */
	uv_timer_t drain;
	bool has_loop, has_async;
	const char *hostname;
	struct console consoles[2];
	struct console *console_of[2]; /* stdout and stderr may be one */
	struct stream_host host;
	struct logs *logs; /* all attempts that are not done, the youngest first */
	struct arena memory;
	const char *run_dir; /* NULL: not made, or none */
	bool closing;
};

/* --- the output thread --- */

static void say_to_console(void *owner, const char *text)
{
	struct output *o = owner;
	struct text line = { 0 };

	text_printf(&line, "launchd: warning: %s\n", text);
	console_say(o->console_of[1], text_string(&line), line.len);
	text_done(&line);
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

static void on_closed(uv_handle_t *h)
{
	(void)h;
}

static bool has_all(const struct output *o)
{
	for (const struct logs *l = o->logs; l; l = l->next)
		if (l->open > 0)
			return false;
	return console_is_idle(&o->consoles[0]) && console_is_idle(&o->consoles[1]);
}

static void close_all(struct output *o)
{
	uv_close((uv_handle_t *)&o->to_thread, on_closed);
	uv_close((uv_handle_t *)&o->turn, on_closed);
	uv_close((uv_handle_t *)&o->again, on_closed);
	uv_close((uv_handle_t *)&o->drain, on_closed);
	console_close(&o->consoles[0]);
	if (o->console_of[1] == &o->consoles[1])
		console_close(&o->consoles[1]);
}

/* After the pipes were looked at: what came is written. */
static void on_turn(uv_check_t *c)
{
	struct output *o = c->data;
	bool more = console_flush(&o->consoles[0]);

	if (o->console_of[1] == &o->consoles[1])
		more = console_flush(&o->consoles[1]) || more;
	if (more)
		(void)uv_idle_start(&o->again, on_again);
	else
		(void)uv_idle_stop(&o->again);
	sweep(o);
	if (o->closing && has_all(o) && !uv_is_closing((uv_handle_t *)c))
		close_all(o);
}

/* The words are there. */
static void on_drained(struct logs *l)
{
	struct output *o = l->owner;

	l->on_ended = NULL;
	(void)uv_timer_stop(&o->drain);
	logs_collect(l);
	uv_mutex_lock(&o->lock);
	o->told_drained = true;
	if (o->attached)
		(void)uv_async_send(&o->to_main);
	uv_mutex_unlock(&o->lock);
}

static void on_drain_over(uv_timer_t *t)
{
	struct output *o = t->data;

	if (o->logs)
		logs_end(o->logs);
}

static void drain(struct output *o)
{
	struct logs *l = o->logs;

	if (l->going == 0) {
		on_drained(l);
		return;
	}
	l->on_ended = on_drained;
	logs_drain(l);
	(void)uv_timer_start(&o->drain, on_drain_over, DRAIN_MS, 0);
}

static int make_logs(struct output *o, const struct plan *plan, unsigned attempt, struct logs **ret,
	struct failure *why)
{
	struct logs *l = calloc(1, sizeof *l);
	int rc = 0;

	if (!l)
		return failure_oom(why);
	if (plan->output.tree && !o->run_dir)
		rc = tree_make_run(plan->output.log_dir, plan->run_id, plan->env, &o->memory,
			&o->run_dir, why);
	if (rc == 0)
		rc = logs_init(
			l, plan, attempt, o->run_dir, o->hostname, &o->host, o->console_of, why);
	if (rc < 0) {
		logs_done(l);
		free(l);
		return rc;
	}
	l->owner = o;
	*ret = l;
	return 0;
}

/* No logs but the current ones are in the main thread's hands. */
static void let_go(struct output *o)
{
	for (struct logs *l = o->logs; l; l = l->next)
		l->done = true;
}

static void prepare(struct output *o, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL;
	int rc = make_logs(o, plan, attempt, &l, &why);

	let_go(o);
	if (rc == 0) {
		l->next = o->logs;
		o->logs = l;
	}
	uv_mutex_lock(&o->lock);
	o->prepared = l;
	o->prepared_rc = rc;
	o->prepared_why = why;
	o->told_prepared = true;
	if (o->attached)
		(void)uv_async_send(&o->to_main);
	uv_mutex_unlock(&o->lock);
}

static void start_closing(struct output *o)
{
	o->closing = true;
	let_go(o);
	for (struct logs *l = o->logs; l; l = l->next)
		logs_end(l);
	uv_mutex_lock(&o->lock);
	o->answered++;
	uv_mutex_unlock(&o->lock);
}

static void say_words(struct output *o, const struct text *words, size_t unsaid)
{
	char text[80];

	console_say(o->console_of[1], text_string(words), words->len);
	if (unsaid == 0)
		return;
	(void)snprintf(
		text, sizeof text, "%zu bytes of launchd's own words were lost here", unsaid);
	say_to_console(o, text);
}

static void on_orders(uv_async_t *a)
{
	struct output *o = a->data;
	unsigned orders;
	struct text words;
	size_t unsaid;

	uv_mutex_lock(&o->lock);
	orders = o->orders;
	words = o->words;
	unsaid = o->unsaid;
	o->orders = 0;
	o->words = (struct text){ 0 };
	o->unsaid = 0;
	uv_mutex_unlock(&o->lock);
	say_words(o, &words, unsaid);
	text_done(&words);
	if (orders & ORDER_START)
		logs_start(o->logs);
	if (orders & ORDER_DRAIN)
		drain(o);
	if (orders & ORDER_PREPARE)
		prepare(o, o->next_plan, o->next_attempt);
	if ((orders & ORDER_REOPEN) && o->logs)
		logs_reopen(o->logs);
	if (orders & ORDER_CLOSE)
		start_closing(o);
}

static void thread_main(void *arg)
{
	struct output *o = arg;

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

static int open_loop(struct output *o)
{
	int rc = uv_loop_init(&o->loop);

	if (rc < 0)
		return rc;
	o->has_loop = true;
	rc = uv_async_init(&o->loop, &o->to_thread, on_orders);
	if (rc < 0)
		return rc;
	o->has_async = true;
	(void)uv_check_init(&o->loop, &o->turn); /* these can't fail */
	(void)uv_check_start(&o->turn, on_turn);
	uv_unref((uv_handle_t *)&o->turn);
	(void)uv_idle_init(&o->loop, &o->again);
	(void)uv_timer_init(&o->loop, &o->drain);
	o->to_thread.data = o->turn.data = o->again.data = o->drain.data = o;
	rc = console_open(&o->consoles[0], &o->loop, STDOUT_FILENO);
	o->console_of[0] = o->console_of[1] = &o->consoles[0];
	if (rc < 0 || are_one())
		return rc;
	o->console_of[1] = &o->consoles[1];
	return console_open(&o->consoles[1], &o->loop, STDERR_FILENO);
}

/* --- the main thread --- */

static void done(struct output *o)
{
	if (o->has_loop)
		(void)uv_loop_close(&o->loop); /* it has run until no handle was left */
	console_done(&o->consoles[0]);
	if (o->console_of[1] == &o->consoles[1])
		console_done(&o->consoles[1]);
	free(o->host.read_buf);
	free(o->host.again.at);
	text_done(&o->words);
	arena_done(&o->memory);
	uv_mutex_destroy(&o->lock);
	uv_cond_destroy(&o->ended);
	free(o);
}

int output_open(
	const struct plan *plan, const char *hostname, struct output **ret, struct failure *why)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, STACK_BYTES };
	struct output *o = calloc(1, sizeof *o);
	int rc;

	if (!o || uv_mutex_init(&o->lock) < 0 || uv_cond_init(&o->ended) < 0) {
		free(o);
		return failure_oom(why);
	}
	o->hostname = hostname;
	o->host = (struct stream_host){
		.loop = &o->loop,
		.read_buf = malloc(STREAM_READ),
		.again = { .at = malloc(AGAIN_ROOM), .room = AGAIN_ROOM },
		.drop = plan->output.drop,
		.say = say_to_console,
		.stir = stir,
		.owner = o,
	};
	rc = o->host.read_buf && o->host.again.at ? open_loop(o) : -ENOMEM;
	if (rc == 0)
		rc = uv_thread_create_ex(&o->thread, &options, thread_main, o);
	if (rc < 0) {
		if (o->has_async)
			close_all(o);
		if (o->has_loop)
			(void)uv_run(&o->loop, UV_RUN_DEFAULT);
		done(o);
		return failure_set(why, rc, "can't start the output thread: %s", uv_strerror(rc));
	}
	*ret = o;
	return 0;
}

static void order(struct output *o, enum order what)
{
	uv_mutex_lock(&o->lock);
	o->orders |= what;
	if (!o->over)
		(void)uv_async_send(&o->to_thread); /* fails for a closing handle only */
	uv_mutex_unlock(&o->lock);
}

/* From the main loop: what the thread has to tell. */
static void on_told(uv_async_t *a)
{
	struct output *o = a->data;
	bool prepared, drained;

	uv_mutex_lock(&o->lock);
	prepared = o->told_prepared;
	drained = o->told_drained;
	o->told_prepared = o->told_drained = false;
	uv_mutex_unlock(&o->lock);
	if (drained)
		o->on->drained(o->owner);
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
	o->told_drained = false; /* of the attempt before, too late */
	uv_mutex_unlock(&o->lock);
	order(o, ORDER_PREPARE);
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
	order(o, ORDER_START);
}

void output_drain(struct output *o)
{
	order(o, ORDER_DRAIN);
}

const struct last_words *output_words(const struct output *o, unsigned i)
{
	return &o->now->of[i].words;
}

void output_say(struct output *o, const char *at, size_t len)
{
	uv_mutex_lock(&o->lock);
	if (o->words.len + len <= WORDS_MAX)
		text_add_bytes(&o->words, at, len);
	else
		o->unsaid += len;
	uv_mutex_unlock(&o->lock);
	order(o, 0);
}

void output_reopen(struct output *o)
{
	order(o, ORDER_REOPEN);
}

/* Waits for the thread's end; false: it does not answer any more. */
static bool wait_for_end(struct output *o)
{
	bool over;

	uv_mutex_lock(&o->lock);
	while (!o->over) {
		if (uv_cond_timedwait(&o->ended, &o->lock, DISK_PATIENCE_NS) == 0)
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

bool output_close(struct output *o)
{
	uv_mutex_lock(&o->lock);
	o->asked++;
	uv_mutex_unlock(&o->lock);
	order(o, ORDER_CLOSE);
	if (!wait_for_end(o))
		return false;
	(void)uv_thread_join(&o->thread);
	done(o);
	return true;
}
