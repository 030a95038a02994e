/* answers.c - see answers.h */
#include "daemon/run/answers.h"

#include <signal.h>
#include <string.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/signame.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/cluster/message.h"
#include "daemon/control/ctl_place.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/reporter.h"
#include "daemon/os/process.h"
#include "daemon/os/procfs.h"
#include "daemon/os/rehearsal.h"
#include "daemon/output/followed.h"
#include "daemon/output/front.h"
#include "daemon/output/tail.h"
#include "daemon/run/look.h"
#include "daemon/run/state.h"
#include "daemon/run/stop_request.h"
#include "daemon/service/meter.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/worker.h"

/* For the output thread, which a disk may hold up. */
enum { PATIENCE_MS = 1000, WATCH_AFTER_MS = 15000 };

/* Answers with what was rendered, which is freed. */
static void answer_text(struct ctl_client *c, struct text *result)
{
	if (result->failed)
		ctl_refuse(c, CONTROL_FAILED, "out of memory");
	else
		ctl_answer(c, text_string(result));
	text_done(result);
}

/* {key: value} */
static void answer_string(struct ctl_client *c, const char *key, const char *value)
{
	struct text result = { 0 };
	struct json j = { .out = &result };

	json_object_begin(&j, NULL);
	json_string(&j, key, value);
	json_object_end(&j);
	answer_text(c, &result);
}

/* How this node is, for node rank 0, which may be this one. */
static void answer_query(struct answers *a, unsigned query, const struct tails *tails)
{
	struct text result = { 0 };
	struct message_status told = { .query = query };

	look_add(a->run, a->since_ns, tails, SURVEY_LINE_MAX, &result);
	if (!result.failed && result.len <= MESSAGE_STATUS_MAX) {
		told.at = result.at;
		told.len = result.len;
	}
	if (a->run->member.role == MEMBER_SPOKE)
		member_status(&a->run->member, &told);
	else
		survey_told(&a->survey, 0, &told);
	text_done(&result);
}

static void answer_waiting(struct answers *a, const struct waiting *w, const struct tails *tails)
{
	struct text result = { 0 };

	if (!w->client) {
		answer_query(a, w->query, tails);
	} else if (w->op == OP_STATUS) {
		look_add(a->run, a->since_ns, tails, 0, &result);
		answer_text(w->client, &result);
	} else if (!tails) {
		ctl_refuse(w->client, CONTROL_UNAVAILABLE,
			"what the worker has written is not known now: it writes to launchd's own "
			"standard output, has written nothing yet, or the disk does not respond");
	} else {
		answer_string(w->client, "text",
			w->index < tails->count ? last_lines(tails->of[w->index], w->lines) : "");
	}
}

static void on_patience_over(uv_timer_t *t)
{
	answers_tails(t->data, NULL);
}

/* For as many lines as any of those needs who wait. */
static void ask_output(struct answers *a)
{
	a->lines = 1;
	for (unsigned i = 0; i < a->waiting_count; i++)
		if (a->waiting[i].lines > a->lines)
			a->lines = a->waiting[i].lines;
	a->asked = true;
	uv_update_time(&a->run->loop);
	(void)uv_timer_start(&a->patience, on_patience_over,
		output_ask_tails(a->run->in->output, a->lines) ? PATIENCE_MS : 0, 0);
}

void answers_tails(struct answers *a, const struct tails *tails)
{
	struct waiting now[CONTROL_ALL];
	unsigned count = 0, later = 0;

	if (!a->asked)
		return; /* it was waited for too long */
	a->asked = false;
	(void)uv_timer_stop(&a->patience);
	for (unsigned i = 0; i < a->waiting_count; i++)
		if (tails && a->waiting[i].lines > a->lines) /* who came when it had been asked */
			a->waiting[later++] = a->waiting[i];
		else
			now[count++] = a->waiting[i];
	a->waiting_count = later;
	for (unsigned i = 0; i < count; i++)
		answer_waiting(a, &now[i], tails);
	if (later > 0)
		ask_output(a);
}

/* A client has one request at a time, so there is room. */
static void await_output(struct answers *a, const struct waiting *w)
{
	a->waiting[a->waiting_count++] = *w;
	if (!a->asked)
		ask_output(a);
}

/* False: a rank of no worker here, and its client is told. */
static bool find_rank(struct answers *a, struct ctl_client *c, unsigned rank, unsigned *ret_index)
{
	const struct plan *p = a->run->plan;
	unsigned first = p->first_rank + p->start_first;
	char text[160];

	if (a->run->state == RUN_MEETING) {
		ctl_refuse(c, CONTROL_NOT_NOW, "the nodes have not met: no worker has a rank yet");
		return false;
	}
	*ret_index = rank - first;
	if (rank >= first && rank < first + p->start_count)
		return true;
	(void)snprintf(text, sizeof text,
		rank < p->world_size ?
			"rank %u runs on another node; this one, node %u, has ranks %u to %u" :
			"there is no rank %u; node %u has ranks %u to %u",
		rank, p->node_rank, first, first + p->start_count - 1);
	ctl_refuse(c, rank < p->world_size ? CONTROL_ELSEWHERE : CONTROL_NO_RANK, text);
	return false;
}

static void answer_tail(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	struct waiting w = { .client = c, .op = OP_TAIL, .lines = d->lines };

	if (find_rank(a, c, d->rank, &w.index))
		await_output(a, &w);
}

/* One that comes before the last was answered takes its place: who asks for that again has given it
 * up. */
void answers_query(struct answers *a, unsigned query)
{
	const struct waiting w = { .query = query, .op = OP_STATUS, .lines = 1 };

	for (unsigned i = 0; i < a->waiting_count; i++)
		if (!a->waiting[i].client) {
			a->waiting[i].query = query;
			return;
		}
	if (a->entered)
		await_output(a, &w);
	else
		answer_query(a, query, NULL); /* nobody else asks here */
}

static void ask_self(void *owner, unsigned query)
{
	answers_query(owner, query);
}

void answers_status(struct answers *a, unsigned node, const struct message_status *told)
{
	survey_told(&a->survey, node, told);
}

static void answer_status(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	const struct waiting w = { .client = c, .op = OP_STATUS, .lines = 1 };

	if (d->all_nodes)
		survey_join(&a->survey, c);
	else
		await_output(a, &w);
}

static const struct worker *running_worker(const struct run *r, unsigned index)
{
	const struct worker *w = r->state == RUN_WORKING ? &r->pool.workers[index] : NULL;

	return w && worker_is_alive(w) ? w : NULL;
}

/* False: one of them can't be signalled, and its client is told. */
static bool check_ranks(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	char text[80];

	for (size_t i = 0; i < d->rank_count; i++) {
		unsigned index;

		if (!find_rank(a, c, d->ranks[i], &index))
			return false;
		if (running_worker(a->run, index))
			continue;
		(void)snprintf(text, sizeof text, "rank %u is not running", d->ranks[i]);
		ctl_refuse(c, CONTROL_NO_RANK, text);
		return false;
	}
	return true;
}

static bool is_meant(const struct demand *d, unsigned rank)
{
	for (size_t i = 0; i < d->rank_count; i++)
		if (d->ranks[i] == rank)
			return true;
	return !d->has_ranks;
}

static void note_signal(const struct answers *a, const struct ctl_client *c, int signal,
	const unsigned *ranks, size_t count)
{
	const struct ctl_peer peer = ctl_peer(c);
	struct text t = { 0 };

	text_printf(&t, "%s is sent to ", signal_name(signal));
	numbers_add(&t, "rank", ranks, count);
	text_printf(&t, ", as pid %d (uid %u) asks", (int)peer.pid, (unsigned)peer.uid);
	bus_note(a->run->in->bus, NOTE_INFO, text_string(&t));
	text_done(&t);
}

/* Sends it to those that are meant, whose ranks are written to ret. How many. */
static size_t send_signal(struct answers *a, const struct demand *d, unsigned *ret)
{
	struct run *r = a->run;
	size_t count = 0;

	for (unsigned i = 0; r->state == RUN_WORKING && i < r->plan->start_count; i++) {
		struct worker *w = &r->pool.workers[i];

		if (!worker_is_alive(w) || !is_meant(d, w->outcome.rank))
			continue;
		worker_signal(w, d->signal, r->plan->signal_scope);
		ret[count++] = w->outcome.rank;
	}
	return count;
}

static void answer_signal(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	struct arena scratch = { 0 };
	struct text result = { 0 };
	struct json j = { .out = &result };
	unsigned *sent = arena_alloc(&scratch, a->run->plan->start_count * sizeof *sent);
	size_t count = 0;

	if (!check_ranks(a, c, d)) {
		arena_done(&scratch);
		return;
	}
	if (sent)
		count = send_signal(a, d, sent);
	json_object_begin(&j, NULL);
	json_array_begin(&j, "sent");
	for (size_t i = 0; i < count; i++)
		json_number(&j, NULL, sent[i]);
	json_array_end(&j);
	json_object_end(&j);
	if (count > 0)
		note_signal(a, c, d->signal, sent, count);
	if (count > 0)
		answer_text(c, &result);
	else
		ctl_refuse(c, CONTROL_NOT_NOW, "no worker is running");
	text_done(&result);
	arena_done(&scratch);
}

/* Who asks, as reports name it. */
static struct sender sender_of(const struct ctl_client *c)
{
	const struct ctl_peer peer = ctl_peer(c);
	struct sender sender = { .pid = peer.pid, .uid = peer.uid };

	process_command(peer.pid, sender.command);
	return sender;
}

/* The answer first: it may be the last one. */
static void answer_stop(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	const struct sender sender = sender_of(c);
	bool now = d->now;

	ctl_answer(c, NULL);
	run_stop(a->run, &sender, now);
}

static void answer_restart(struct answers *a, struct ctl_client *c)
{
	const struct sender sender = sender_of(c);

	if (a->run->state == RUN_MEETING || a->run->state == RUN_OVER) {
		ctl_refuse(c, CONTROL_NOT_NOW, "no attempt is running");
		return;
	}
	ctl_answer(c, NULL);
	run_restart(a->run, &sender);
}

static void answer_reopen(struct answers *a, struct ctl_client *c)
{
	output_reopen(a->run->in->output);
	ctl_answer(c, NULL);
}

/* Its environment as it is made for this attempt, in no order. */
static void add_environment(const struct run *r, unsigned index, struct json *j)
{
	struct arena memory = { 0 };
	struct env_edits edits = { 0 };
	struct vec list = { 0 };

	plan_environment(r->plan, r->plan->start_first + index, &r->attempt, &memory, &edits);
	plan_untouched(r->plan, &edits, &memory, &list);
	for (size_t i = 0; i < edits.count; i++)
		if (edits.at[i].value)
			vec_add(&memory, &list,
				arena_printf(
					&memory, "%s=%s", edits.at[i].name, edits.at[i].value));
	json_strings(j, "env", &list);
	if (arena_failed(&memory))
		j->out->failed = true;
	arena_done(&memory);
}

static void answer_env(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	struct text result = { 0 };
	struct json j = { .out = &result };
	unsigned index;

	if (!find_rank(a, c, d->rank, &index))
		return;
	json_object_begin(&j, NULL);
	add_environment(a->run, index, &j);
	json_object_end(&j);
	answer_text(c, &result);
}

static void answer_metrics(struct answers *a, struct ctl_client *c)
{
	struct text page = { 0 };

	meter_render(a->run->in->meter, &page);
	if (page.failed)
		ctl_refuse(c, CONTROL_FAILED, "out of memory");
	else
		answer_string(c, "text", text_string(&page));
	text_done(&page);
}

static void answer_loglevel(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	struct reporter *reporter = a->run->in->reporter;

	if (d->has_level)
		reporter_set_least(reporter, d->level);
	answer_string(c, "level", control_level_name(reporter_least(reporter)));
}

/* Whether launchd reads anything that these workers write. */
static bool is_read(const struct plan *p, const struct demand *d)
{
	for (unsigned i = p->start_first; i < p->start_first + p->start_count; i++)
		for (int fd = 1; fd <= 2; fd++)
			if (is_meant(d, plan_rank(p, i).rank) &&
				plan_stream(p, i, fd).way == STREAM_PIPE)
				return true;
	return false;
}

static void answer_logs(struct answers *a, struct ctl_client *c, const struct demand *d)
{
	unsigned index;

	for (size_t i = 0; i < d->rank_count; i++)
		if (!find_rank(a, c, d->ranks[i], &index))
			return;
	if (!is_read(a->run->plan, d)) {
		ctl_refuse(c, CONTROL_UNAVAILABLE,
			"launchd reads nothing of what the workers write: it goes to launchd's own "
			"standard output; --log-dir with --tee has log files, too");
		return;
	}
	output_follow(a->run->in->output, true);
	ctl_follow_lines(c, d->ranks, d->rank_count);
}

static void add_line(struct text *out, const struct followed_lines *f, const char *at, size_t len)
{
	struct json j = { .out = out };
	struct text line = { 0 };

	text_add_bytes(&line, at, len);
	for (size_t i = 0; i < line.len; i++)
		line.at[i] = line.at[i] ? line.at[i] : '?'; /* as in the last lines */
	json_object_begin(&j, NULL);
	json_number(&j, "rank", f->rank);
	json_string(&j, "stream", f->fd == 1 ? "stdout" : "stderr");
	json_string(&j, "line", text_string(&line));
	json_object_end(&j);
	out->failed = out->failed || line.failed;
	text_done(&line);
}

/* Pieces of one that is too long are lines here. */
static uint64_t count_lines(const struct followed_lines *f)
{
	uint64_t count = f->len > 0 && f->at[f->len - 1] != '\n';

	for (size_t i = 0; i < f->len; i++)
		count += f->at[i] == '\n';
	return count;
}

void answers_followed(struct answers *a, const struct followed_lines *f)
{
	const char *at = f->at, *end = at + f->len;

	if (a->server.line_followers == 0) {
		output_follow(a->run->in->output, false);
		return;
	}
	if (f->lost > 0)
		ctl_lose_lines(&a->server, f->rank, f->lost);
	if (!ctl_takes_lines(&a->server, f->rank)) {
		ctl_lose_lines(&a->server, f->rank, count_lines(f));
		return;
	}
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);
		struct text event = { 0 };

		add_line(&event, f, at, len);
		if (event.failed)
			ctl_lose_lines(&a->server, f->rank, 1);
		else
			ctl_tell_line(&a->server, f->rank, event.at, event.len);
		text_done(&event);
		at += len + (stop != NULL);
	}
}

static void on_asked(void *owner, struct ctl_client *c, const struct demand *d)
{
	struct answers *a = owner;

	switch (d->op) {
	case OP_STATUS:
		answer_status(a, c, d);
		return;
	case OP_TAIL:
		answer_tail(a, c, d);
		return;
	case OP_SIGNAL:
		answer_signal(a, c, d);
		return;
	case OP_STOP:
		answer_stop(a, c, d);
		return;
	case OP_RESTART:
		answer_restart(a, c);
		return;
	case OP_REOPEN:
		answer_reopen(a, c);
		return;
	case OP_ENV:
		answer_env(a, c, d);
		return;
	case OP_EVENTS:
		ctl_follow(c);
		return;
	case OP_METRICS:
		answer_metrics(a, c);
		return;
	case OP_LOGLEVEL:
		answer_loglevel(a, c, d);
		return;
	case OP_LOGS:
		answer_logs(a, c, d);
		return;
	case OPS:
		break;
	}
	__builtin_unreachable();
}

static void on_directory(void *owner)
{
	answers_renew(owner);
}

static void watch_directory(struct answers *a)
{
	a->watch.on_change = on_directory;
	a->watch.owner = a;
	ctl_watch_start(&a->watch, &a->run->loop, &a->run->in->guard->shared->control);
}

/* What was removed until now is made anew. */
static void on_watching(uv_timer_t *t)
{
	struct answers *a = t->data;

	watch_directory(a);
	answers_renew(a);
}

/* A watch takes the kernel 16 ms to end, which a short job doesn't pay. The kernel gives a user 128
 * of them, and --per-process may start as many launchers. */
static void watch_later(struct answers *a)
{
	if (a->run->plan->process.local_rank == 0)
		(void)uv_timer_start(&a->watching, on_watching, WATCH_AFTER_MS, 0);
}

static void open_socket(struct answers *a)
{
	struct run *r = a->run;
	struct failure why = { 0 };
	struct ctl_place *place = &r->in->guard->shared->control;
	int fd = ctl_listen(r->plan->env, r->in->guard->guard, place, &why);

	if (fd >= 0 && a->open)
		ctl_server_move(&a->server, fd);
	else if (fd >= 0)
		a->open = ctl_server_open(&a->server, &r->loop, fd, &why) == 0;
	if (why.code == 0) {
		if (a->watch.fd >= 0)
			watch_directory(a);
		else
			watch_later(a);
		return;
	}
	ctl_forget(place, PATH_SOON_MS);
	bus_note(r->in->bus, NOTE_INFO, why.text);
}

void answers_renew(struct answers *a)
{
	struct ctl_place *place = &a->run->in->guard->shared->control;
	struct failure none = { 0 };

	if (!a->entered || !a->open || path_answers_soon(place->path, &none) < 0 ||
		ctl_is_there(place))
		return;
	ctl_forget(place, PATH_SOON_MS);
	open_socket(a);
}

static void on_workers_started(uv_timer_t *t)
{
	open_socket(t->data);
}

static void on_event(void *owner, const struct event *e)
{
	struct answers *a = owner;
	struct text line = { 0 };
	const struct event_frame frame = {
		.node_known = a->run->state != RUN_MEETING,
		.node = a->run->plan->node_rank,
		.now_ns = uv_hrtime(),
		.wall_ns = utc_now_ns(),
	};

	/* in the loop's next turn: all of them are started in this one */
	if (e->kind == EVENT_WORKER_STARTED && a->entered && !a->tried) {
		a->tried = true;
		(void)uv_timer_start(&a->patience, on_workers_started, 0, 0);
	}
	if (a->server.followers == 0)
		return;
	event_add(&line, e, &frame);
	if (line.len > 0 && !line.failed)
		ctl_tell(&a->server, line.at, line.len - 1); /* without its newline */
	text_done(&line);
}

static const struct observer followers = {
	.on = {
		[EVENT_JOB_STARTED] = on_event,
		OBSERVE_EVENTS(on_event),
	},
};

void answers_init(struct answers *a, struct run *r, struct bus *b)
{
	a->run = r;
	a->since_ns = utc_now_ns();
	a->watch.fd = -1;
	a->server = (struct ctl_server){ .asked = on_asked, .owner = a, .listening = -1 };
	a->survey =
		(struct survey){ .ask_self = ask_self, .owner = a, .run = r, .server = &a->server };
	bus_add(b, &followers, a);
}

void answers_enter(struct answers *a)
{
	if (!a->run->plan->ctl_socket)
		return;
	(void)uv_timer_init(&a->run->loop, &a->patience); /* can't fail */
	(void)uv_timer_init(&a->run->loop, &a->watching);
	a->patience.data = a->watching.data = a;
	survey_enter(&a->survey);
	a->entered = true;
	a->tried = a->run->in->member->way != MEET_NOBODY;
	if (a->tried)
		open_socket(a);
}

void answers_leave(struct answers *a)
{
	if (!a->entered)
		return;
	a->entered = a->asked = false;
	a->waiting_count = 0;
	uv_close((uv_handle_t *)&a->patience, NULL);
	uv_close((uv_handle_t *)&a->watching, NULL);
	ctl_watch_stop(&a->watch);
	survey_leave(&a->survey);
	ctl_server_close(&a->server);
	ctl_forget(&a->run->in->guard->shared->control, 0);
}
