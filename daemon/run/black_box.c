/* black_box.c - see black_box.h */
#include "daemon/run/black_box.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/sm.h"
#include "common/utc.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/keep.h"
#include "daemon/blackbox/quick_look.h"
#include "daemon/blackbox/story.h"
#include "daemon/blackbox/taking.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/message.h"
#include "daemon/job/job_end.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/output/log_tree.h"
#include "daemon/plan/nccl_names.h"
#include "daemon/run/box_parts.h"
#include "daemon/run/gpu_watch.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/worker.h"

enum {
	NS_PER_MS = 1000000,
	LOOK_MS = 10,           /* for /proc, before SIGTERM */
	TAKE_MAX_MS = 120000,   /* for the sources, however long the grace is */
	EVENTS_MAX = 128 << 10, /* bytes; older ones are forgotten */
};

static const struct sm_state states[BOX_STATES] = {
	[BOX_NONE] = { "none", SM_TO(BOX_TAKING) | SM_TO(BOX_CLEARING) },
	[BOX_CLEARING] = { "clearing", SM_TO(BOX_TAKING) | SM_TO(BOX_NONE) },
	[BOX_TAKING] = { "taking",
		SM_TO(BOX_TAKEN) | SM_TO(BOX_WRITING) | SM_TO(BOX_CLEARING) | SM_TO(BOX_NONE) },
	[BOX_TAKEN] = { "taken", SM_TO(BOX_WRITING) | SM_TO(BOX_NONE) },
	[BOX_WRITING] = { "writing", SM_TO(BOX_CLEARING) | SM_TO(BOX_NONE) },
};
const struct sm box_life = { "black box", states, BOX_STATES };

/* What the writing child answers. */
struct written {
	struct helper_answer helper;
	char path[PATH_MAX]; /* of the node's part */
	bool readable;       /* its bundle.json is whole, which is enough for --explain */
	char summary[400];
};

struct sources_answer {
	struct helper_answer helper;
	struct source_finds taken;
};

static void box_goto(struct black_box *b, enum box_state next)
{
	b->state = sm_go(&box_life, b->state, next);
	if (next == BOX_NONE || next == BOX_WRITING)
		(void)uv_timer_stop(&b->timer);
}

static void warn(const struct black_box *b, const char *text)
{
	bus_note(b->bus, NOTE_WARNING, text);
}

/* --- what launchd itself knows --- */

static void on_event(void *owner, const struct event *e)
{
	struct black_box *b = owner;
	struct text *t = &b->events;
	const struct event_frame frame = {
		.node_known = true,
		.node = b->plan->node_rank,
		.now_ns = uv_hrtime(),
		.wall_ns = utc_now_ns(),
	};
	const char *line;

	event_add(t, e, &frame);
	if (t->failed)
		text_done(t);
	if (t->len <= EVENTS_MAX)
		return;
	line = strchr(text_string(t) + t->len - EVENTS_MAX / 2, '\n');
	text_drop(t, line ? (size_t)(line + 1 - text_string(t)) : t->len);
}

static const struct observer observer = { .on = { OBSERVE_EVENTS(on_event) } };

/* --- asking --- */

static void forget(struct black_box *b)
{
	free(b->seen);
	free(b->later);
	free(b->alive);
	free(b->found);
	b->seen = b->later = NULL;
	b->alive = NULL;
	b->found = NULL;
	b->alive_count = 0;
	b->end = (struct box_end){ .words = NULL };
}

static void look_at_all(struct black_box *b)
{
	unsigned count = b->plan->start_count;

	b->seen = calloc(count, sizeof *b->seen);
	b->alive = calloc(count, sizeof *b->alive);
	if (!b->seen || !b->alive)
		return;
	for (unsigned i = 0; i < count; i++) {
		const struct worker *w = &b->pool->workers[i];

		if (!worker_is_alive(w))
			continue;
		b->seen[i].pid = w->outcome.pid;
		b->alive[b->alive_count++] = (struct source_worker){ w->outcome.pid,
			w->outcome.rank, w->outcome.local_rank };
	}
	(void)quick_look(b->seen, count, LOOK_MS * NS_PER_MS);
}

static void name_it(struct black_box *b)
{
	const struct bundle_name name = { b->member->party.job_ms, b->attempt->number,
		b->ends ? 0 : b->looks };

	bundle_name_write(&name, b->name);
	b->began_ns = uv_hrtime();
	b->wall_ms = utc_now_ns() / NS_PER_MS;
}

static void take(struct helper *h)
{
	const struct black_box *b = h->owner;
	struct arena arena = { 0 }; /* ends with this process */
	struct nccl_names names;
	uint64_t age_ns = b->began_ns - b->started_ns;
	struct taking t = {
		.dir = b->plan->blackbox_dir,
		.name = b->name,
		.node = b->plan->node_rank,
		.input = { .run_dir = b->attempt->run_dir,
			.xids = gpu_watch_xids(b->gpu_watch),
			.visible = plan_check_devices(b->plan, &arena),
			.stack_signal = b->plan->stack_signal,
			.since_ms = b->wall_ms - (int64_t)(age_ns / NS_PER_MS),
			.first_rank = b->plan->first_rank + b->plan->start_first,
			.ranks = b->plan->start_count,
			.workers = b->alive,
			.count = b->alive_count },
	};

	nccl_names_choose(b->plan, b->attempt, &arena, &names);
	t.input.recorder = (struct recorder_files){ names.dumps, names.pipes };
	taking_do(&t, &((struct sources_answer *)h->answer)->taken);
}

/* Copies what the child has found: its memory goes with it. */
static void keep_taken(struct black_box *b, const char *because)
{
	const struct sources_answer *a = (const struct sources_answer *)b->taker.answer;
	unsigned count = b->plan->start_count;

	if (!a || b->found)
		return;
	b->found = calloc(1, sizeof *b->found);
	b->later = a->taken.looked ? calloc(count, sizeof *b->later) : NULL;
	if (b->found) {
		findings_merge(b->found, &a->taken.findings);
		taken_unanswered(&a->taken, because, b->found);
	}
	for (unsigned i = 0, k = 0; b->later && i < count && k < b->alive_count; i++)
		if (b->seen[i].pid == b->alive[k].pid)
			b->later[i] = taken_later(&a->taken)[k++];
}

static void go_on(struct black_box *b);
static void write_it(struct black_box *b);

static void on_taken(struct helper *h, bool succeeded)
{
	struct black_box *b = h->owner;
	struct text t = { 0 };

	keep_taken(b, "in time");
	if (!succeeded && b->found) {
		helper_explain(h, "the sources", &t);
		findings_add(b->found, HEALTH_UNKNOWN, "sources", "", "%s", text_string(&t));
		text_done(&t);
	}
	helper_close(h);
	if (b->state != BOX_TAKING)
		return;
	if (b->ends && !b->finishing)
		box_goto(b, BOX_TAKEN);
	else
		write_it(b);
	pool_release(b->pool);
}

/* A child of what was dropped has gone. */
static void on_closed(struct helper *h)
{
	struct black_box *b = h->owner;

	if (b->state == BOX_CLEARING)
		go_on(b);
}

static void start_taking(struct black_box *b)
{

	b->taker = (struct helper){
		.work = take,
		.on_end = on_taken,
		.on_closed = on_closed,
		.owner = b,
		.name = "black-box",
		.argv = b->argv,
		.group = true,
		.lasting = true,
	};
	if (helper_start(&b->taker, b->loop,
		    sizeof(struct sources_answer) + taken_size(b->alive_count), TAKE_MAX_MS) == 0)
		return;
	/* the rest is worth having */
	if (b->ends && !b->finishing)
		box_goto(b, BOX_TAKEN);
	else
		write_it(b);
	pool_release(b->pool);
}

/* Whatever was dropped is gone: begins. */
static void go_on(struct black_box *b)
{

	if (b->taker.state != HELPER_NONE || b->writer.state != HELPER_NONE)
		return;
	box_goto(b, BOX_TAKING);
	start_taking(b);
}

/* --- writing --- */

static void keep_output(const struct black_box *b, int fd, struct failure *why)
{
	struct arena scratch = { 0 };

	for (unsigned i = 0; i < b->plan->start_count; i++) {
		unsigned local_rank = b->plan->start_first + i;
		unsigned rank = plan_rank(b->plan, local_rank).rank;
		const char *lines = b->end.words ? b->end.words[i].words.lines : NULL;

		for (int s = 1; s < 3 && b->attempt->log_dir; s++)
			(void)keep_tail(fd,
				arena_printf(&scratch, "rank-%u.%s.txt", rank,
					s == 1 ? "stdout" : "stderr"),
				tree_log_path(b->attempt->log_dir, local_rank, s, &scratch), why);
		if (!b->attempt->log_dir && lines && *lines)
			(void)keep_write(fd, arena_printf(&scratch, "rank-%u.output.txt", rank),
				lines, strlen(lines), why);
	}
	arena_done(&scratch);
}

/* What is worth most is written last, and there is room for it. */
static void write_part(const struct black_box *b, int fd, struct written *ret, struct failure *why)
{
	struct arena arena = { 0 };
	struct text json = { 0 }, story = { 0 }, line = { 0 };
	struct bundle part;
	uint64_t own;

	box_bundle(b, &arena, &part);
	bundle_json(&part, &json);
	story_add(NULL, &part, 1, &story);
	box_summary(&part, &line);
	(void)snprintf(ret->summary, sizeof ret->summary, "%s", text_string(&line));
	keep_output(b, fd, why);
	own = json.len + story.len + b->events.len;
	(void)keep_within(fd, own < KEEP_MAX_BYTES ? KEEP_MAX_BYTES - own : 0);
	(void)keep_write(fd, "events.jsonl", text_string(&b->events), b->events.len, why);
	ret->readable = keep_write(fd, BUNDLE_JSON, text_string(&json), json.len, why) == 0;
	(void)keep_write(fd, BUNDLE_STORY, text_string(&story), story.len, why);
	text_done(&json);
	text_done(&story);
	text_done(&line);
	arena_done(&arena);
}

static void write_bundle(struct helper *h)
{
	const struct black_box *b = h->owner;
	struct written *ret = (struct written *)h->answer;
	struct failure why = { 0 };
	autoclose failure_fd = keep_open_failure(b->plan->blackbox_dir, b->name, &why);
	autoclose fd = failure_fd < 0 ? -1 : keep_open_node(failure_fd, b->plan->node_rank, &why);

	if (fd < 0)
		helper_fail(h, "%s", why.text);
	if (keep_path(fd, ret->path, sizeof ret->path) < 0)
		(void)snprintf(ret->path, sizeof ret->path, "%s/%s/node-%u", b->plan->blackbox_dir,
			b->name, b->plan->node_rank);
	write_part(b, fd, ret, &why);
	if (ret->readable) /* else the older ones are all that there is */
		(void)keep_newest(b->plan->blackbox_dir, b->plan->blackbox_keep, b->name);
	if (why.code < 0)
		helper_fail(h, "%s", why.text);
}

/* Node rank 0, which this may be, hears of it. */
static void tell(struct black_box *b, const char *path, const char *text)
{
	struct message_bundle m = { .attempt = b->attempt->number };

	(void)snprintf(m.path, sizeof m.path, "%s", path);
	text_fit(m.text, sizeof m.text, text);
	if (b->plan->node_rank == 0)
		black_box_told(b, 0, &m);
	else
		member_bundle(b->member, &m);
}

/* The attempt's end was taken, or could not be: it is told now. */
static void finish(struct black_box *b)
{
	bool finishing = b->finishing;

	if (b->state != BOX_NONE)
		box_goto(b, BOX_NONE);
	forget(b);
	b->finishing = false;
	if (finishing)
		b->on_kept(b->owner);
}

/* Of a job that goes on no report says where it is; each node has one, and one line is enough. */
static void say_look(const struct black_box *b, const char *path)
{
	struct text line = { 0 };
	const char *slash = strrchr(path, '/');
	char failure[sizeof b->failure_path];

	(void)snprintf(failure, sizeof failure, "%.*s", slash ? (int)(slash - path) : 0, path);
	text_add(&line, "evidence: launchd --explain ");
	text_add_shell(&line, failure);
	bus_note(b->bus, b->plan->node_rank == 0 ? NOTE_INFO : NOTE_VERBOSE, text_string(&line));
	text_done(&line);
}

static void on_written(struct helper *h, bool succeeded)
{
	struct black_box *b = h->owner;
	const struct written *w = (const struct written *)h->answer;
	char path[sizeof w->path], summary[sizeof w->summary];
	struct text t = { 0 };

	(void)snprintf(
		path, sizeof path, "%.*s", (int)sizeof w->path - 1, w->readable ? w->path : "");
	(void)snprintf(summary, sizeof summary, "%.*s", (int)sizeof w->summary - 1, w->summary);
	if (!succeeded) {
		helper_explain(h, "writing a bundle of the failure", &t);
		warn(b, text_string(&t));
	}
	helper_close(h);
	if (b->state != BOX_WRITING) {
		text_done(&t);
		return;
	}
	bus_emit(b->bus,
		&(struct event){ .kind = EVENT_BLACKBOX,
			.blackbox = { b->attempt->number, *path ? path : NULL,
				succeeded ? NULL : text_string(&t) } });
	if (b->ends) {
		b->kept = true;
		(void)snprintf(b->path, sizeof b->path, "%s", path);
		tell(b, path, succeeded ? summary : text_string(&t));
	} else if (*path) {
		say_look(b, path);
	}
	text_done(&t);
	finish(b);
}

static void write_it(struct black_box *b)
{

	box_goto(b, BOX_WRITING);
	b->writer = (struct helper){
		.work = write_bundle,
		.on_end = on_written,
		.on_closed = on_closed,
		.owner = b,
		.name = "black-box",
		.argv = b->argv,
		.lasting = true,
	};
	if (helper_start(&b->writer, b->loop, sizeof(struct written), BOX_FILES_MS) == 0)
		return;
	warn(b, "--blackbox: no process can be started to write a bundle of the failure");
	finish(b);
}

/* --- when --- */

/* A failure that is worth a bundle: not what somebody wanted. */
static bool is_wanted(const struct cause *c)
{
	return c->kind == CAUSE_FAILURE || c->kind == CAUSE_NODE_LOST || c->kind == CAUSE_HANG ||
		c->kind == CAUSE_TIMEOUT || c->kind == CAUSE_MAX_RUNTIME;
}

static void on_timer(uv_timer_t *timer)
{
	struct black_box *b = timer->data;

	if (b->state == BOX_NONE) { /* the first signals are out */
		box_goto(b, BOX_TAKING);
		start_taking(b);
	} else if (b->state == BOX_TAKING) { /* the workers have ended a while ago */
		keep_taken(b, "when the workers had ended");
		helper_close(&b->taker);
		write_it(b);
	} else if (b->state == BOX_CLEARING) {
		warn(b,
			"--blackbox: a process that looked at the workers does not end, so there is "
			"no bundle of the failure");
		finish(b);
	}
}

static void after(struct black_box *b, uint64_t ms)
{
	uv_update_time(b->loop);
	(void)uv_timer_start(&b->timer, on_timer, ms, 0); /* has a callback */
}

uint64_t black_box_first_sign(struct black_box *b)
{
	const struct pool *p = b->pool;
	struct text why = { 0 };

	if (!b->open || !is_wanted(&p->cause))
		return 0;
	forget(b);
	b->ends = true;
	name_it(b);
	look_at_all(b);
	cause_brief_add(&p->cause, b->plan->max_runtime_ms, &why);
	if (*p->cause.detail)
		text_printf(&why, ": %s", p->cause.detail);
	(void)snprintf(b->why, sizeof b->why, "%s", text_string(&why));
	text_done(&why);
	b->held = b->plan->blackbox_hold_ms > 0 && p->alive > 0 && p->state <= POOL_RUNNING &&
		!(p->culprit && ending_is_unstarted(&p->culprit->outcome.end));
	if (b->taker.state == HELPER_NONE && b->writer.state == HELPER_NONE &&
		b->state == BOX_NONE) {
		after(b, 0);
	} else {
		box_goto(b, BOX_CLEARING);
		helper_close(&b->taker);
		helper_close(&b->writer);
		go_on(b);
	}
	return b->held ? b->plan->blackbox_hold_ms : 0;
}

void black_box_take(struct black_box *b, const char *why)
{

	if (!b->open || b->pool->state != POOL_RUNNING || b->state != BOX_NONE ||
		b->taker.state != HELPER_NONE || b->writer.state != HELPER_NONE)
		return;
	forget(b);
	b->ends = b->held = false;
	b->looks++;
	name_it(b);
	(void)snprintf(b->why, sizeof b->why, "%s", why);
	look_at_all(b);
	after(b, 0);
}

/* One of an attempt that went on, and is over now. */
static void drop_look(struct black_box *b)
{
	(void)uv_timer_stop(&b->timer);
	helper_close(&b->taker);
	helper_close(&b->writer);
	if (b->state != BOX_NONE)
		box_goto(b, BOX_NONE);
	forget(b);
}

void black_box_finish(struct black_box *b, const struct box_end *end)
{
	bool is_due = uv_is_active((const uv_handle_t *)&b->timer);

	if (b->open && !b->ends)
		drop_look(b);
	if (!b->open || !b->ends || (b->state == BOX_NONE && !is_due)) {
		b->on_kept(b->owner);
		return;
	}
	b->finishing = true;
	b->end = *end;
	if (b->state == BOX_NONE) { /* it was to begin just now */
		box_goto(b, BOX_TAKING);
		start_taking(b);
	}
	if (b->state == BOX_TAKEN)
		write_it(b);
	else if (b->state == BOX_TAKING || b->state == BOX_CLEARING)
		after(b, BOX_SOURCES_MS);
}

const char *black_box_path(const struct black_box *b)
{
	return b->kept && *b->path ? b->path : NULL;
}

/* --- the whole job --- */

void black_box_told(struct black_box *b, unsigned node, const struct message_bundle *told)
{

	if (!b->open || node >= b->plan->nnodes)
		return;
	if (!b->told)
		b->told = calloc(b->plan->nnodes, sizeof *b->told);
	if (b->told)
		b->told[node] = *told;
}

static void write_index(struct helper *h)
{
	const struct black_box *b = h->owner;
	struct failure why = { 0 };
	autoclose fd = keep_open_failure(b->plan->blackbox_dir, b->index_name, &why);

	if (fd < 0 || keep_write(fd, BUNDLE_INDEX, text_string(&b->index), b->index.len, &why) < 0)
		helper_fail(h, "%s", why.text);
}

static void on_index(struct helper *h, bool succeeded)
{
	struct black_box *b = h->owner;
	struct text t = { 0 };

	if (!succeeded) {
		helper_explain(h, "writing the index of the failure", &t);
		warn(b, text_string(&t));
	}
	text_done(&t);
	helper_close(h);
}

static void on_index_closed(struct helper *h);

static void start_index(struct black_box *b)
{
	b->index_due = false;
	b->indexer = (struct helper){
		.work = write_index,
		.on_end = on_index,
		.on_closed = on_index_closed,
		.owner = b,
		.name = "black-box",
		.argv = b->argv,
		.lasting = true,
	};
	if (helper_start(&b->indexer, b->loop, sizeof(struct helper_answer), BOX_FILES_MS) < 0)
		warn(b, "--blackbox: no process can be started to write the index of the failure");
}

/* A file server that is slow, and an attempt that failed at once. */
static void on_index_closed(struct helper *h)
{
	struct black_box *b = h->owner;

	if (b->index_due)
		start_index(b);
}

static void make_index(struct black_box *b, const struct job_end *end)
{
	struct arena arena = { 0 };
	struct bundle_index x;
	struct text line = { 0 };

	if (b->index_due) {
		text_printf(&line, "--blackbox: %s has no index: the one before was still written",
			b->index_name);
		warn(b, text_string(&line));
		text_done(&line);
	}
	(void)snprintf(b->index_name, sizeof b->index_name, "%s", b->name);
	box_index(b, end, &arena, &x);
	text_done(&b->index);
	index_json(&x, &b->index);
	arena_done(&arena);
	b->indexed = b->index_due = true;
	if (b->indexer.state == HELPER_NONE)
		start_index(b);
}

/* The directory of the failure that a node's part is in. */
static void find_failure_path(struct black_box *b)
{
	char *slash;

	(void)snprintf(b->failure_path, sizeof b->failure_path, "%s", b->path);
	slash = strrchr(b->failure_path, '/');
	if (slash)
		*slash = '\0';
}

const char *black_box_over(struct black_box *b, const struct job_end *end)
{

	if (!b->open || !b->kept || !*b->path)
		return NULL;
	find_failure_path(b);
	if (b->plan->node_rank == 0 && end->result && !b->indexed)
		make_index(b, end);
	return b->failure_path;
}

/* --- its life --- */

void black_box_start(struct black_box *b)
{

	if (!b->open)
		return;
	b->ends = b->kept = b->indexed = false;
	b->looks = 0;
	b->started_ns = uv_hrtime();
	*b->path = '\0';
	free(b->told);
	b->told = NULL;
}

void black_box_enter(struct black_box *b)
{

	if (!b->plan->blackbox_dir)
		return;
	b->open = true;
	(void)uv_timer_init(b->loop, &b->timer); /* can't fail */
	b->timer.data = b;
	bus_add(b->bus, &observer, b);
}

/* The index may still be written, and the next one behind it: the loop goes on as long. */
void black_box_leave(struct black_box *b)
{

	if (!b->open)
		return;
	helper_close(&b->taker);
	helper_close(&b->writer);
	uv_close((uv_handle_t *)&b->timer, NULL);
	b->open = false;
	bus_remove(b->bus);
}

void black_box_done(struct black_box *b)
{

	forget(b);
	free(b->told);
	text_done(&b->index);
	text_done(&b->events);
}
