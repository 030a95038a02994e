/* back.c - see back.h */
#include "daemon/output/back.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/patience.h"
#include "common/sm.h"
#include "daemon/os/journal_socket.h"
#include "daemon/os/rehearsal.h"
#include "daemon/output/console/shown.h"
#include "daemon/output/console/status.h"
#include "daemon/output/host.h"
#include "daemon/output/journaling.h"
#include "daemon/output/log_tree.h"
#include "daemon/output/logs.h"
#include "daemon/output/merge/merge.h"
#include "daemon/output/post.h"
#include "daemon/output/step_lines.h"

enum {
	AGAIN_ROOM = 2 * STREAM_READ,
	DRAIN_MS = 1000, /* for pipes that a worker's helpers keep open */
	HURRY_MS = 1000,
	AS_GOOD_AS_NONE = 4096, /* bytes in all its time: that reader would need hours */
	EVENTS_AGAIN_MS = 100,
};

struct back {
	struct post *post;
	struct output_host host;
	enum back_state state;
	bool is_open; /* the loop is there, with all handles and consoles */
	uv_loop_t loop;
	uv_check_t turn;
	uv_idle_t again;         /* runs while a console has more to show at once */
	uv_timer_t drain, hurry; /* while pipes are drained; in a hurry */
	uv_timer_t events_again; /* runs while lines of --events wait for a reader */
	uv_timer_t bars;         /* runs while a progress bar has something new */
	uv_poll_t request;       /* for a hurry; in the loop once there is an order to end */
	struct console consoles[2];
	unsigned console_count; /* 1: stdout and stderr are one */
	struct console *console_of[2];
	struct console_end stderr_ends;
	bool drop; /* see struct console */
	enum journal_use journal_use;
	struct journaling journal; /* open where it is used */
	int events_fd; /* of --events: lines for 1 and 2 stand between those of workers; -1: a file
			*/
	struct filer filer;
	struct busy busy;
	struct stream_host shared; /* by all streams */
	struct tally tally;
	struct merge *merge;
	struct status status;
	struct logs *logs; /* all attempts that are not done, the youngest first */
	struct arena memory;
	struct log_tree tree;
	long nap_ns;          /* between two turns: see gather() */
	uint64_t patience_ms; /* for a reader, at the end */
	uint64_t written;     /* by the consoles, when on_hurry() looked last */
};

static const struct sm_state states[BACK_STATES] = {
	[BACK_RUNNING] = { "running", SM_TO(BACK_ENDING) },
	[BACK_ENDING] = { "ending",
		SM_TO(BACK_HURRIED) | SM_TO(BACK_PRESSED) | SM_TO(BACK_CLOSED) },
	[BACK_HURRIED] = { "hurried", SM_TO(BACK_CLOSED) },
	[BACK_PRESSED] = { "pressed", SM_TO(BACK_CLOSED) },
	[BACK_CLOSED] = { "closed", 0 },
};

const struct sm back_life = { "output", states, BACK_STATES };

static void close_handle(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

/* Ends the loop: closes all that it has, whose owners are freed afterwards. */
static void close_all(struct back *b)
{
	status_close(&b->status);
	uv_walk(&b->loop, close_handle, NULL);
}

static uint64_t written(const struct back *b)
{
	return b->consoles[0].written + b->consoles[1].written + b->journal.console.written;
}

static void on_hurry(uv_timer_t *t);

static void back_goto(struct back *b, enum back_state next)
{
	b->state = sm_go(&back_life, b->state, next);
	if (next == BACK_ENDING || next == BACK_HURRIED || next == BACK_PRESSED) {
		uint64_t ms = next == BACK_ENDING ? b->patience_ms : HURRY_MS;

		b->written = written(b);
		(void)uv_timer_start(&b->hurry, on_hurry, ms, ms);
	} else if (next == BACK_CLOSED) {
		close_all(b);
	}
}

/* Also the streams' and the merge's, whose owner is the struct back. */
static void say(void *owner, bool warning, const char *text)
{
	const struct back *b = owner;

	b->host.say(b->host.owner, warning, text);
}

/* Another turn follows at once. */
static void on_again(uv_idle_t *i)
{
	(void)i;
}

static void stir(void *owner)
{
	struct back *b = owner;

	(void)uv_idle_start(&b->again, on_again);
}

static void on_bars(uv_timer_t *t)
{
	const struct back *b = t->data;

	for (struct logs *l = b->logs; l; l = l->next)
		logs_show_bars(l);
}

static void await_bars(void *owner)
{
	struct back *b = owner;

	if (uv_is_active((uv_handle_t *)&b->bars) || uv_is_closing((uv_handle_t *)&b->bars))
		return;
	uv_update_time(&b->loop);
	(void)uv_timer_start(&b->bars, on_bars, STREAM_BAR_MS, 0);
}

static bool waits_for_reader(const struct back *b)
{
	bool waits = console_is_waiting(&b->journal.console);

	for (unsigned i = 0; i < b->console_count; i++)
		waits = waits || console_is_waiting(&b->consoles[i]);
	return waits;
}

static bool is_given_up(const struct back *b)
{
	uint64_t taken = written(b) - b->written;

	if (b->state == BACK_ENDING)
		return taken < AS_GOOD_AS_NONE && waits_for_reader(b);
	return b->state == BACK_PRESSED || taken == 0;
}

/* A reader that takes nothing is given up: all is in the files, where there are some. So is any
 * reader when the user has asked launchd once more to end. */
static void on_hurry(uv_timer_t *t)
{
	struct back *b = t->data;

	if (is_given_up(b)) {
		post_hurry(b->post);                 /* what follows waits no longer either */
		if (journaling_leave(&b->journal)) { /* the consoles have their own time */
			stir(b);
			return;
		}
		for (unsigned i = 0; i < b->console_count; i++)
			console_abandon(&b->consoles[i]);
		stir(b);
	}
	b->written = written(b);
}

/* Attempts of which all is where it goes to. */
static void sweep(struct back *b)
{
	for (struct logs **at = &b->logs; *at;) {
		struct logs *l = *at;

		if (l->open > 0 || l->going > 0 || !l->done) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		logs_free(l);
	}
}

/* Lets lines of those that write many come together, up to half of what a pipe holds: every write
 * to an empty one costs the worker more, and every turn us; one that is full it waits for. */
static void gather(struct back *b)
{
	enum {
		LITTLE = FILER_PIECE / 4,
		MUCH = FILER_PIECE / 2,
		SHORT_NS = 20000,
		LONG_NS = 1000000
	};
	struct timespec nap = { .tv_nsec = b->nap_ns };

	if (!b->busy.first || b->state != BACK_RUNNING)
		nap.tv_nsec = 0;
	else if (b->busy.most > MUCH)
		nap.tv_nsec = nap.tv_nsec > SHORT_NS ? nap.tv_nsec / 2 : 0;
	else if (b->busy.most < LITTLE)
		nap.tv_nsec = nap.tv_nsec ? nap.tv_nsec * 2 : SHORT_NS;
	if (nap.tv_nsec > LONG_NS)
		nap.tv_nsec = LONG_NS;
	b->nap_ns = nap.tv_nsec;
	b->busy.most = 0;
	if (nap.tv_nsec > 0)
		(void)nanosleep(&nap, NULL);
}

/* No stream has more for a console, nor for its file. */
static bool is_written(const struct back *b)
{
	for (const struct logs *l = b->logs; l; l = l->next)
		if (l->open > 0)
			return false;
	return true;
}

/* And nothing is in the post: all is where it goes to. */
static bool is_all_written(const struct back *b)
{
	for (unsigned i = 0; i < b->console_count; i++)
		if (!console_is_idle(&b->consoles[i]))
			return false;
	return is_written(b) && journaling_is_idle(&b->journal) && merge_is_idle(b->merge) &&
		post_is_empty(b->post);
}

/* After the pipes were looked at: what came is written. */
static void on_turn(uv_check_t *c)
{
	struct back *b = c->data;
	bool more = streams_read(&b->shared);

	more = merge_flush(b->merge) || more;
	more = journaling_turn(&b->journal) || more;
	for (unsigned i = 0; i < b->console_count; i++)
		more = console_flush(&b->consoles[i]) || more;
	if (more)
		(void)uv_idle_start(&b->again, on_again);
	else
		(void)uv_idle_stop(&b->again);
	merge_turn(b->merge, is_written(b));
	sweep(b);
	gather(b);
	if (b->state != BACK_RUNNING && b->state != BACK_CLOSED && is_all_written(b))
		back_goto(b, BACK_CLOSED);
}

static void on_events_again(uv_timer_t *t);

static void write_events(struct back *b, const char *lines, size_t len)
{
	if (!b->host.write_events(b->host.owner, lines, len))
		(void)uv_timer_stop(&b->events_again);
	else if (!uv_is_active((uv_handle_t *)&b->events_again))
		(void)uv_timer_start(
			&b->events_again, on_events_again, EVENTS_AGAIN_MS, EVENTS_AGAIN_MS);
}

static void on_events_again(uv_timer_t *t)
{
	write_events(t->data, "", 0);
}

static bool events_are_ours(const struct back *b)
{
	return b->events_fd == STDOUT_FILENO || b->events_fd == STDERR_FILENO;
}

static struct console *events_console(const struct back *b)
{
	return events_are_ours(b) ? b->console_of[b->events_fd - 1] : NULL;
}

/* Whole lines for a console, or NULL: for --events elsewhere. */
static void deliver(struct back *b, struct posted *w, struct console *to, const char *what)
{
	char text[96];

	if (to)
		console_say(to, text_string(&w->text), w->text.len);
	else if (w->text.len > 0)
		write_events(b, text_string(&w->text), w->text.len);
	text_done(&w->text);
	if (w->lost == 0)
		return;
	(void)snprintf(text, sizeof text, "%zu bytes of %s were dropped here", w->lost, what);
	say(b, true, text);
}

static void on_status_over(struct status *s)
{
	struct back *b = s->owner;

	post_tell(b->post, NEWS_STATUS_OVER);
}

static void draw_status(struct back *b, const char *text, bool ended)
{
	if (b->status.state == STATUS_NONE && !ended)
		/* the console's own file is non-blocking: a stopped terminal goes without the line
		 */
		status_open(&b->status, &b->loop, b->console_of[1]->fd, on_status_over, b);
	if (ended)
		status_end(&b->status);
	else if (*text)
		status_show(&b->status, text);
}

static void on_drained(struct logs *l);

static bool is_draining(const struct logs *l)
{
	return l->on_ended == on_drained;
}

/* Until the last of them has its words: see on_drain_over(). */
static void stop_draining(struct back *b)
{
	for (const struct logs *l = b->logs; l; l = l->next)
		if (is_draining(l))
			return;
	(void)uv_timer_stop(&b->drain);
}

/* The words are there. Another attempt's are waited for no longer. */
static void on_drained(struct logs *l)
{
	struct back *b = l->owner;

	l->on_ended = NULL;
	stop_draining(b);
	logs_collect(l);
	post_drained(b->post, l->attempt);
}

/* Nothing but pipes is to be looked at: the words are complete before anybody asks. */
static void on_all_ended(struct logs *l)
{
	struct back *b = l->owner;

	l->on_ended = NULL;
	logs_collect(l);
	post_collected(b->post, l);
}

static void start(struct back *b)
{
	struct logs *l = b->logs;

	if (!l->dir)
		l->on_ended = on_all_ended;
	logs_start(l);
}

static void end_logs(struct logs *l)
{
	for (; l; l = l->next)
		logs_end(l);
}

static void on_drain_over(uv_timer_t *t)
{
	const struct back *b = t->data;

	for (struct logs *l = b->logs; l; l = l->next)
		if (is_draining(l))
			logs_end(l);
}

/* Reads what an attempt's workers have left in their pipes, and tells. */
static void drain(struct back *b)
{
	struct logs *l = b->logs;

	if (l->going == 0) {
		on_drained(l);
		return;
	}
	l->on_ended = on_drained;
	logs_drain(l);
	(void)uv_timer_start(&b->drain, on_drain_over, DRAIN_MS, 0);
}

/* For the first attempt, or as somebody has removed it since. */
static int make_run_dir(struct back *b, const struct plan *plan, struct failure *why)
{
	const char *before = b->tree.run_dir;
	struct failure tmp = { 0 };
	struct text note = { 0 };
	int rc = tree_make_run(
		plan->output.log_dir, plan->run_id, plan->env, &b->memory, &b->tree, &tmp);

	if (rc < 0)
		return failure_copy(why, &tmp);
	if (before)
		text_printf(&note, "%s has been removed; ", before);
	else if (tmp.code != 0)
		text_printf(&note, "%s; ", tmp.text);
	text_printf(&note, "workers' log files: %s", b->tree.run_dir); /* nobody could guess it */
	if (before || !plan->output.log_dir)
		say(b, before != NULL, text_string(&note));
	text_done(&note);
	return 0;
}

int back_make_logs(struct back *b, const struct plan *plan, unsigned attempt, struct logs **ret,
	struct failure *why)
{
	struct console *const journal[2] = { &b->journal.console, &b->journal.console };
	struct console *const *remote = merge_consoles(b->merge);
	struct console *const *to = remote ? remote : b->console_of;
	bool there = !plan->output.tree || (b->tree.run_dir && tree_is_there(&b->tree));
	int rc = there ? 0 : make_run_dir(b, plan, why);

	if (rc == 0)
		rc = logs_new(plan, attempt, b->tree.run_dir, b->host.hostname, &b->shared,
			plan->output.journal == JOURNAL_ALL ? journal : to, ret, why);
	if (rc == 0)
		(*ret)->owner = b;
	return rc;
}

/* The event loop has no more to do with the attempts before. */
static void let_go(struct back *b)
{
	for (struct logs *l = b->logs; l; l = l->next)
		l->done = true;
}

static void adopt(struct back *b, struct logs *l)
{
	let_go(b);
	if (!l)
		return;
	l->next = b->logs;
	b->logs = l;
}

/* Opens an attempt's files, and tells. */
static void prepare(struct back *b, const struct plan *plan, unsigned attempt)
{
	struct failure why = { 0 };
	struct logs *l = NULL;

	(void)back_make_logs(b, plan, attempt, &l, &why);
	adopt(b, l);
	post_prepared(b->post, attempt, l, &why);
}

static void on_request(uv_poll_t *p, int status, int events)
{
	struct back *b = p->data;

	(void)status, (void)events;
	(void)uv_poll_stop(p);
	post_hurry(b->post);
	back_goto(b, BACK_PRESSED);
}

/* More than once, where it was asked whether this thread still answers. */
static void end(struct back *b, const struct order_list *p)
{
	if (b->state == BACK_RUNNING) {
		back_goto(b, BACK_ENDING);
		if (p->hurry) {
			back_goto(b, BACK_HURRIED);
		} else if (p->requests >= 0 &&
			uv_poll_init(&b->loop, &b->request, p->requests) == 0) {
			b->request.data = b;
			(void)uv_poll_start(&b->request, UV_READABLE, on_request);
		}
	}
	let_go(b);
	end_logs(b->logs);
	merge_end(b->merge);
	post_answer(b->post);
}

/* Of the attempt that is there, which may have ended. */
static void tell_tails(struct back *b, unsigned lines)
{
	post_tails(b->post, b->logs ? logs_tails(b->logs, lines) : NULL);
}

static bool tell_followers(void *owner, const struct followed_lines *f)
{
	struct back *b = owner;

	return post_followed(b->post, f);
}

static void follow(struct back *b, bool on)
{
	b->shared.is_followed = on;
	for (struct logs *l = b->logs; l && !on; l = l->next)
		logs_unfollow(l);
}

static void on_orders(uv_async_t *a)
{
	struct back *b = a->data;
	struct order_list p = post_take_orders(b->post);

	deliver(b, &p.own, b->console_of[1], "launchd's own messages");
	deliver(b, &p.events, events_console(b), "--events");
	if (p.looks.text.len > 0)
		b->host.write_looks(b->host.owner, p.looks.text.at, p.looks.text.len);
	text_done(&p.looks.text);
	if (p.page.len > 0)
		b->host.write_page(b->host.owner, p.page.at, p.page.len);
	text_done(&p.page);
	if (p.entries.text.len > 0 || p.entries.lost > 0)
		deliver(b, &p.entries, &b->journal.console, "launchd's own messages");
	if (p.made)
		adopt(b, p.made);
	merge_serve(b->merge);
	if (p.what & ORDER_FOLLOW)
		follow(b, p.follow);
	if (p.what & ORDER_START)
		start(b);
	if (p.what & ORDER_DRAIN)
		drain(b);
	if (p.what & ORDER_STATUS)
		draw_status(b, p.status, p.status_ended);
	if (p.what & ORDER_PREPARE)
		prepare(b, p.plan, p.attempt);
	if ((p.what & ORDER_REOPEN) && b->logs)
		logs_reopen(b->logs);
	if (p.what & ORDER_TAILS)
		tell_tails(b, p.tail_lines);
	if (p.what & ORDER_CLOSE)
		end(b, &p);
}

void back_main(void *arg)
{
	struct back *b = arg;

	(void)prctl(PR_SET_TIMERSLACK, 1ul); /* gather() naps for less than the slack of 50 us */
	(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	post_over(b->post);
}

void back_shown(const struct back *b, struct text *out)
{
	shown_copy(&b->stderr_ends, out);
}

struct output_counts back_counts(const struct back *b)
{
	return tally_read(&b->tally);
}

struct step_lines *back_steps(const struct back *b)
{
	return b->shared.steps;
}

struct merge *back_merge(const struct back *b)
{
	return b->merge;
}

/* Standard output and error may be one file, on which lines of both must not mix. */
static bool are_one(void)
{
	char out_path[PATH_MAX], err_path[PATH_MAX];
	bool out_far = file_is_far(STDOUT_FILENO, out_path);
	bool err_far = file_is_far(STDERR_FILENO, err_path);
	struct stat out, err;

	/* what is far is not asked what it is */
	if (out_far || err_far)
		return strcmp(out_path, err_path) == 0;
	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
		out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

static void on_missing(struct console *c)
{
	struct back *b = c->silence.loop->data;
	const char *name = "error";
	char text[160];

	if (c == &b->consoles[0])
		name = b->console_count == 1 ? "output and error" : "output";
	(void)snprintf(text, sizeof text,
		"can't write to standard %s: %s; output is lost until there is room", name,
		strerror(c->error));
	say(b, true, text);
}

static int open_consoles(struct back *b)
{
	unsigned count = b->console_of[0] == b->console_of[1] ? 1 : 2;
	int rc = 0;

	for (unsigned i = 0; i < count && rc == 0; i++) {
		rc = console_open(&b->consoles[i], &b->loop, i ? STDERR_FILENO : STDOUT_FILENO);
		b->consoles[i].on_missing = on_missing;
		b->consoles[i].drops = b->drop;
		b->console_count++;
	}
	b->console_of[1]->ends = &b->stderr_ends;
	if (rc == 0 && b->journal_use != JOURNAL_NONE)
		rc = journaling_open(&b->journal, &b->loop, b->drop);
	return rc;
}

static void wake(void *owner)
{
	struct back *b = owner;

	post_order(b->post, ORDER_NONE);
}

static void tell_lines(void *owner)
{
	struct back *b = owner;

	post_tell(b->post, NEWS_LINES);
}

/* Its expression was compiled before, so all that it can lack is memory. */
static int open_steps(struct back *b, const char *expression)
{
	struct step_lines *s = calloc(1, sizeof *s);
	struct failure ignored = { 0 };

	if (!s || step_lines_open(s, expression, &ignored) < 0) {
		free(s);
		return -ENOMEM;
	}
	b->shared.steps = s;
	return 0;
}

int back_new(const struct plan *plan, const struct output_host *host, struct post *post,
	struct back **ret)
{
	const struct output_plan *p = &plan->output;
	struct back *b = calloc(1, sizeof *b);
	int rc = b ? filer_init(&b->filer) : -ENOMEM;

	if (b)
		b->tree.lock = -1;
	if (rc == 0)
		rc = merge_new(
			&(struct merge_host){
				.loop = &b->loop,
				.consoles = b->console_of,
				.wake = wake,
				.tell = tell_lines,
				.say = say,
				.owner = b,
			},
			&b->merge);
	if (rc < 0) {
		back_free(b);
		return rc;
	}
	b->post = post;
	b->host = *host;
	b->drop = p->drop;
	b->patience_ms = (uint64_t)patience_for_ms(plan->grace_ms);
	b->journal_use = p->journal;
	b->journal.path = JOURNAL_SOCKET;
	b->journal.instead = b->console_of;
	b->journal.say = say;
	b->journal.owner = b;
	b->events_fd = p->events_path ? -1 : p->events_fd;
	b->console_of[0] = &b->consoles[0];
	b->console_of[1] = &b->consoles[are_one() ? 0 : 1];
	b->shared = (struct stream_host){
		.loop = &b->loop,
		.say = say,
		.stir = stir,
		.await_bars = await_bars,
		.follow = tell_followers,
		.owner = b,
		.filer = &b->filer,
		.busy = &b->busy,
		.tally = &b->tally,
	};
	if (plan->progress.by == PROGRESS_LINES) {
		rc = open_steps(b, plan->progress.what);
		if (rc < 0) {
			back_free(b);
			return rc;
		}
	}
	*ret = b;
	return 0;
}

/* Closes the loop, which has ended or never ran, and what was in it. */
static void shut(struct back *b)
{
	if (b->state != BACK_CLOSED) {
		close_all(b);
		(void)uv_run(&b->loop, UV_RUN_DEFAULT);
	}
	(void)uv_loop_close(&b->loop);
	for (; b->console_count > 0; b->console_count--)
		console_done(&b->consoles[b->console_count - 1]);
	journaling_done(&b->journal);
	free(b->shared.again.at);
}

int back_open(struct back *b)
{
	int rc;

	if (b->is_open)
		return 0;
	rc = uv_loop_init(&b->loop);
	if (rc < 0)
		return rc;
	b->loop.data = b;
	(void)uv_check_init(&b->loop, &b->turn); /* these can't fail */
	(void)uv_idle_init(&b->loop, &b->again);
	(void)uv_timer_init(&b->loop, &b->drain);
	(void)uv_timer_init(&b->loop, &b->hurry);
	(void)uv_timer_init(&b->loop, &b->events_again);
	(void)uv_timer_init(&b->loop, &b->bars);
	(void)uv_check_start(&b->turn, on_turn);
	uv_unref((uv_handle_t *)&b->turn);
	b->turn.data = b->drain.data = b->hurry.data = b->events_again.data = b->bars.data = b;
	b->shared.again = (struct outbuf){ .at = malloc(AGAIN_ROOM), .room = AGAIN_ROOM };
	rc = b->shared.again.at ? uv_async_init(&b->loop, &b->post->to_back, on_orders) : -ENOMEM;
	b->post->to_back.data = b;
	if (rc == 0)
		rc = open_consoles(b);
	if (rc < 0) {
		shut(b);
		return rc;
	}
	b->is_open = true;
	post_open(b->post);
	return 0;
}

bool back_end_lines(struct back *b)
{
	enum { PATIENCE_MS = 1000 };
	size_t done;

	if (events_are_ours(b) && b->console_of[b->events_fd - 1]->unended) {
		(void)fd_write_within(b->events_fd, "\n", 1, PATIENCE_MS, &done);
		b->console_of[b->events_fd - 1]->unended = false;
	}
	return b->console_of[1]->unended;
}

void back_free(struct back *b)
{
	if (!b)
		return;
	if (b->is_open)
		shut(b);
	filer_done(&b->filer);
	merge_free(b->merge);
	if (b->shared.steps)
		step_lines_close(b->shared.steps);
	free(b->shared.steps);
	fd_closep(&b->tree.lock);
	arena_done(&b->memory);
	free(b);
}
