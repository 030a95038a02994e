/* hang_judge.c - see hang_judge.h */
#include "daemon/run/hang_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/text.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/sight.h"
#include "daemon/observe/bus.h"
#include "daemon/plan/plan.h"

enum { RAS_TICKS = 4, POLL_RECENT_MS = 3000, POLL_LATE_MS = 6000 };

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

/* --- telling --- */

static void order(struct hang_judge *j, enum hang_order what, const char *text)
{
	struct message_hang m = { .attempt = j->attempt, .order = what };

	text_fit(m.text, sizeof m.text, text);
	j->order(j->owner, &m);
}

static void emit(
	struct hang_judge *j, const char *state, const struct hang_finding *f, const char *text)
{
	bus_emit(j->bus,
		&(struct event){
			.kind = EVENT_HANG,
			.hang = { state, hang_class_word(f->class), f->ranks,
				f->count < FINDING_RANKS ? f->count : FINDING_RANKS,
				detector_quiet_ms(&j->detector, now_ms()), text },
		});
}

static void say(
	const struct hang_judge *j, enum note_level level, const char *how, const char *text)
{
	struct text line = { 0 };

	text_printf(&line, "%s%s", how, text);
	bus_note(j->bus, level, text_string(&line));
	text_done(&line);
}

/* "rank 3 is stopped: by SIGSTOP ...; rank 3 is on gpu07 (node 1)" */
static void describe(const struct hang_judge *j, const struct hang_finding *f, struct text *out)
{
	unsigned nnodes = j->plan->nnodes, before = nnodes;
	struct node_sight *nodes = calloc(nnodes, sizeof *nodes);
	size_t count = nodes ? sight_nodes(j->member, nodes, nnodes) : 0;

	finding_describe(f, out);
	for (unsigned i = 0; i < f->count && i < FINDING_RANKS && nnodes > 1; i++) {
		unsigned node = j->node_of[f->ranks[i]];

		if (node < count && node != before) {
			text_printf(out, "; rank %u is on ", f->ranks[i]);
			text_add_shown(out, nodes[node].name, strlen(nodes[node].name));
			text_printf(out, " (node %u)", node);
		}
		before = node;
	}
	free(nodes);
}

/* --- acting --- */

static void suspect(struct hang_judge *j)
{
	struct text text = { 0 }, how = { 0 };

	describe(j, &j->detector.finding, &text);
	text_printf(&how, "the job may hang, nothing has moved for %u s: ",
		(unsigned)(detector_quiet_ms(&j->detector, now_ms()) / 1000));
	say(j, NOTE_WARNING, text_string(&how), text_string(&text));
	emit(j, "suspect", &j->detector.finding, text_string(&text));
	order(j, HANG_ORDER_SUSPECT, text_string(&text));
	text_done(&how);
	text_done(&text);
}

static void be_certain(struct hang_judge *j)
{
	struct text text = { 0 }, how = { 0 };

	describe(j, &j->detector.finding, &text);
	text_printf(&how, j->plan->hang_modest ? "nothing has moved for %u s: " : "the job hangs: ",
		(unsigned)(detector_quiet_ms(&j->detector, now_ms()) / 1000));
	say(j, NOTE_WARNING, text_string(&how), text_string(&text));
	emit(j, "certain", &j->detector.finding, text_string(&text));
	order(j, HANG_ORDER_CERTAIN, text_string(&text));
	if (j->plan->on_hang == ON_HANG_STOP || j->plan->on_hang == ON_HANG_RESTART)
		j->end(j->owner, text_string(&text));
	text_done(&how);
	text_done(&text);
}

static void clear(struct hang_judge *j, const struct hang_finding *was)
{
	static const char text[] = "the job moves again";

	say(j, NOTE_INFO, text, "");
	emit(j, "cleared", was, text);
	order(j, HANG_ORDER_CLEARED, "");
}

/* Whether it can't be a healthy job's wait for the outside world, or for a time: the rank is
 * stopped itself, or stuck in the kernel, or it waits for one of its own threads while others wait
 * for it. Who sleeps, polls, reads a pipe, has a child that may do so, or uses a GPU that nobody
 * asks may be well. */
static bool is_beyond_doubt(const struct rank_sight *r, enum hang_class class)
{
	const struct worker_sample *s = &r->now;

	if (class == HANG_STOPPED)
		return s->state == 'T' || s->state == 't' || s->state == 'D' ||
			s->waits == WAIT_DISK;
	return class == HANG_OUTSIDE && s->waits == WAIT_FUTEX && s->kids == 0 &&
		s->gpu == GPU_NONE;
}

/* In the modest form. */
static bool is_worth_saying(const struct hang_judge *j)
{
	const struct hang_finding *f = &j->detector.finding;
	bool unacked = false;

	for (unsigned i = 0; i < f->count; i++)
		if (i >= FINDING_RANKS ||
			!is_beyond_doubt(&j->detector.sights[f->ranks[i]], f->class))
			return false;
	for (unsigned i = 0; i < j->detector.ranks; i++)
		unacked |= j->detector.sights[i].standing.unacked ||
			j->detector.sights[i].standing.unacked_away;
	return f->count > 0 || (f->class == HANG_ALL_WAIT && unacked);
}

static bool is_silenced(struct hang_judge *j, enum detector_news news)
{
	bool spoke = j->spoke;

	if (!j->plan->hang_modest || news == NEWS_NONE)
		return false;
	j->spoke = news == NEWS_CERTAIN && is_worth_saying(j);
	return news == NEWS_CLEARED ? !spoke : !j->spoke;
}

static void act(struct hang_judge *j, enum detector_news news, const struct hang_finding *was)
{
	if (is_silenced(j, news))
		return;
	switch (news) {
	case NEWS_NONE:
		return;
	case NEWS_SUSPECT:
		suspect(j);
		return;
	case NEWS_CLEARED:
		clear(j, was);
		return;
	case NEWS_CERTAIN:
		be_certain(j);
		return;
	}
}

static void moved_at(struct hang_judge *j, uint64_t at_ms)
{
	const struct hang_finding was = j->detector.finding;
	const struct trace_step step = { .kind = TRACE_MOVED, .at_ms = at_ms };
	enum detector_news news = detector_moved(&j->detector, step.at_ms);

	hang_record(&j->recorder, &step);
	hang_record_news(&j->recorder, &j->detector, news, step.at_ms);
	act(j, news, &was);
}

static void moved(struct hang_judge *j)
{
	moved_at(j, now_ms());
}

/* --- hearing --- */

/* To the detector, and to who records. */
static void take_step(struct hang_judge *j, const struct trace_step *s)
{
	(void)trace_play(&j->detector, s);
	hang_record(&j->recorder, s);
}

/* The signal that a worker is stopped by; what NCCL says. */
static void hear_step(struct hang_judge *j, const char *line)
{
	struct trace_step s;

	if (trace_read(line, strlen(line), &s) == 0 &&
		(s.kind == TRACE_STOPPED || s.kind == TRACE_RAS || s.kind == TRACE_OPS))
		take_step(j, &s);
}

static void forget_ras(struct hang_judge *j)
{
	if (j->detector.ras_bytes > 0)
		take_step(j, &(struct trace_step){ .kind = TRACE_RAS });
}

static void hear_line(struct hang_judge *j, unsigned node, const char *line, size_t len)
{
	struct trace_step s = { .kind = TRACE_SAMPLE };
	char word[128];

	if (sample_read(line, len, &s.sample) == 0) {
		take_step(j, &s);
		j->heard = true;
		if (s.sample.rank < j->detector.ranks)
			j->node_of[s.sample.rank] = node;
		return;
	}
	(void)snprintf(word, sizeof word, "%.*s", (int)len, line);
	if (strcmp(word, "moved") == 0) {
		j->quiet[node] = false;
		moved(j);
	} else if (strcmp(word, "quiet") == 0) {
		j->quiet[node] = true;
	} else if (strcmp(word, "ops moved") == 0) {
		moved(j);
	} else {
		hear_step(j, word);
	}
}

void hang_judge_look(struct hang_judge *j, unsigned node, const struct message_look *told)
{
	const char *at = told->at, *end = told->at + told->len;

	if (!j->quiet || node >= j->plan->nnodes)
		return;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		hear_line(j, node, at, (size_t)(stop - at));
		at = stop + 1;
	}
}

/* Whose client of the store that is, by the port of its connection: of two workers with the same
 * one, on two nodes, it is neither's. False: nobody's. */
static bool find_client(const struct hang_judge *j, const struct address *client, unsigned *ret)
{
	unsigned port = ntohs(
		client->any.sa_family == AF_INET ? client->v4.sin_port : client->v6.sin6_port);
	unsigned found = 0;

	for (unsigned i = 0; i < j->detector.ranks; i++)
		if (port > 0 && j->detector.sights[i].now.store_port == port) {
			*ret = i;
			found++;
		}
	return found == 1;
}

static void see_waiting(void *to, const struct address *client, struct span key)
{
	struct hang_judge *j = to;
	unsigned rank;
	char name[STORE_KEY_SHOWN + 1];

	(void)snprintf(name, sizeof name, "%.*s", (int)(key.len < 256 ? key.len : 256),
		(const char *)key.at);
	if (find_client(j, client, &rank))
		detector_awaits(&j->detector, rank, *name ? name : "?");
}

static void see_polling(void *to, const struct address *client, unsigned polls)
{
	struct hang_judge *j = to;
	struct polled *p;
	unsigned rank;

	if (!find_client(j, client, &rank))
		return;
	p = &j->polled[rank];
	if (p->count == polls)
		return;
	p->count = polls;
	p->at_ms = now_ms();
}

/* Who did, and does no more while most of them do. */
static void look_at_polls(struct hang_judge *j)
{
	uint64_t now = now_ms();
	unsigned all = 0, recent = 0;

	sight_store_polls(j->member, see_polling, j);
	for (unsigned i = 0; i < j->detector.ranks; i++) {
		all += j->polled[i].count >= 2;
		recent += j->polled[i].count >= 2 && now - j->polled[i].at_ms < POLL_RECENT_MS;
	}
	for (unsigned i = 0; i < j->detector.ranks; i++)
		detector_late(&j->detector, i,
			j->polled[i].count >= 2 && 2 * recent >= all &&
				now - j->polled[i].at_ms >= POLL_LATE_MS);
}

static void look_at_store(struct hang_judge *j)
{
	uint64_t changes = sight_store_changes(j->member);

	if (changes != j->store_changes) {
		j->store_changes = changes;
		moved(j);
	}
	for (unsigned i = 0; i < j->detector.ranks; i++)
		detector_awaits(&j->detector, i, "");
	sight_store_waits(j->member, see_waiting, j);
	look_at_polls(j);
}

/* A node whose workers have ended says nothing any more. */
static bool all_are_quiet(const struct hang_judge *j)
{
	unsigned nnodes = j->plan->nnodes;
	struct node_sight *nodes = calloc(nnodes, sizeof *nodes);
	size_t count = nodes ? sight_nodes(j->member, nodes, nnodes) : 0;
	bool quiet = nodes != NULL;

	for (size_t i = 0; i < count; i++)
		quiet = quiet && (j->quiet[i] || nodes[i].state != NODE_JOINED);
	free(nodes);
	return quiet;
}

static bool is_blind(const struct hang_judge *j)
{
	for (unsigned i = 0; i < j->detector.ranks; i++)
		if (j->detector.sights[i].now.gpu == GPU_UNKNOWN)
			return true;
	return false;
}

/* Once, where workers use GPUs; when NCCL has had the time to answer. */
static void say_if_blind(struct hang_judge *j)
{
	const bool counts = j->detector.ras_bytes > 0;
	struct sight sight = { .room = 0 };
	struct text t = { 0 };

	if (j->said_blind || ++j->looked < RAS_TICKS || !is_blind(j))
		return;
	j->said_blind = true;
	sight_take(j->member, &sight);
	text_printf(&t,
		"--on-hang: what the workers' GPUs do can't be told, as NVML tells nothing or too "
		"little of their work was seen yet%s%s: of hangs only those are noticed that show in "
		"processes, in TCP connections between workers%s%s",
		counts ? "" : "; NCCL's RAS does not answer",
		sight.has_store ? "" : "; the store is not launchd's (--store agent)",
		sight.has_store ? ", in the store" : "", counts ? ", or in what NCCL counts" : "");
	say(j, NOTE_INFO, "", text_string(&t));
	text_done(&t);
}

static void judge(struct hang_judge *j)
{
	const struct hang_finding was = j->detector.finding;
	uint64_t now = now_ms();
	enum detector_news news;

	hang_record_judgement(&j->recorder, &j->detector, now);
	news = detector_judge(&j->detector, now);
	hang_record_news(&j->recorder, &j->detector, news, now);
	act(j, news, &was);
}

/* --- its memory --- */

static void free_detector(struct hang_judge *j)
{
	free(j->detector.sights);
	free(j->detector.room);
	free(j->node_of);
	free(j->polled);
	j->detector = (struct detector){ .ranks = 0 };
	j->node_of = NULL;
	j->polled = NULL;
}

static void make_detector(struct hang_judge *j)
{
	struct detector *d = &j->detector;

	*d = (struct detector){ .ranks = j->plan->world_size,
		.after_ms = j->plan->on_hang_after_ms,
		.no_habits = j->plan->hang_modest };
	d->sights = calloc(d->ranks, sizeof *d->sights);
	d->room = calloc((size_t)d->ranks * TALKS_MAX, sizeof *d->room);
	j->node_of = calloc(d->ranks, sizeof *j->node_of);
	j->polled = calloc(d->ranks, sizeof *j->polled);
	if (!d->sights || !d->room || !j->node_of || !j->polled)
		free_detector(j);
}

static void begin_detector(struct hang_judge *j, uint64_t at_ms)
{
	const struct trace_step step = {
		.kind = TRACE_BEGIN,
		.at_ms = at_ms,
		.ranks = j->detector.ranks,
		.after_ms = j->detector.after_ms,
	};

	memset(j->polled, 0, j->detector.ranks * sizeof *j->polled);
	detector_begin(&j->detector, step.at_ms);
	hang_record(&j->recorder, &step);
}

/* Makes it, if there is none: nothing has moved since then. */
static bool has_detector(struct hang_judge *j, uint64_t at_ms)
{
	if (j->detector.ranks > 0)
		return true;
	make_detector(j);
	if (j->detector.ranks == 0)
		return false;
	begin_detector(j, at_ms);
	return true;
}

/* --- its life --- */

/* While the job moves, looks come now and then. */
void hang_judge_tick(struct hang_judge *j)
{
	bool quiet;

	if (!j->quiet)
		return;
	hang_recorder_flush(&j->recorder);
	look_at_store(j);
	quiet = all_are_quiet(j);
	if (!quiet) {
		forget_ras(j);
		moved_at(j, now_ms() - j->lag_ms);
	} else if (!has_detector(j, now_ms() - j->lag_ms)) {
		return;
	}
	if (j->looks && !j->plan->hang_modest)
		say_if_blind(j);
	if (j->looks || j->heard)
		judge(j);
	j->heard = false;
	quiet = quiet && (j->plan->hang_modest || !detector_hears_talk(&j->detector, now_ms()));
	if (quiet == j->looks)
		return;
	j->looks = quiet;
	j->looked = 0;
	order(j, quiet ? HANG_ORDER_LOOK : HANG_ORDER_REST, "");
}

void hang_judge_start(struct hang_judge *j, unsigned attempt, uint64_t lag_ms)
{
	if (!j->quiet)
		j->quiet = calloc(j->plan->nnodes, sizeof *j->quiet);
	if (!j->quiet)
		return;
	memset(j->quiet, 0, j->plan->nnodes * sizeof *j->quiet);
	j->attempt = attempt;
	j->looks = j->heard = j->spoke = false;
	j->lag_ms = lag_ms;
	j->store_changes = sight_store_changes(j->member);
	j->recorder.on = j->plan->hang_trace_path != NULL;
	j->recorder.output = j->output;
	if (j->detector.ranks > 0)
		begin_detector(j, now_ms());
	else if (!j->plan->hang_modest)
		(void)has_detector(j, now_ms());
}

void hang_judge_stop(struct hang_judge *j)
{
	j->looks = false;
	hang_recorder_flush(&j->recorder);
}

void hang_judge_done(struct hang_judge *j)
{
	free_detector(j);
	free(j->quiet);
	j->quiet = NULL;
}
