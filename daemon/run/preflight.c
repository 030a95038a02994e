/* preflight.c - see preflight.h */
#include "daemon/run/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/num.h"
#include "common/sm.h"
#include "common/text.h"
#include "common/monotonic.h"
#include "daemon/check/phases.h"
#include "daemon/cluster/message.h"
#include "daemon/cluster/sight.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/os/nvidia.h"
#include "daemon/output/front.h"
#include "daemon/run/check_words.h"
#include "daemon/run/state.h"
#include "daemon/workers/tree.h"

static const struct sm_state states[PREFLIGHT_STATES] = {
	[PREFLIGHT_IDLE] = { "idle", SM_TO(PREFLIGHT_ASKING) },
	[PREFLIGHT_ASKING] = { "asking",
		SM_TO(PREFLIGHT_WAITING) | SM_TO(PREFLIGHT_JUDGING) | SM_TO(PREFLIGHT_ENDING) },
	[PREFLIGHT_WAITING] = { "waiting",
		SM_TO(PREFLIGHT_ASKING) | SM_TO(PREFLIGHT_JUDGING) | SM_TO(PREFLIGHT_ENDING) },
	[PREFLIGHT_JUDGING] = { "judging", SM_TO(PREFLIGHT_ASKING) | SM_TO(PREFLIGHT_ENDING) },
	[PREFLIGHT_ENDING] = { "ending", SM_TO(PREFLIGHT_IDLE) },
};
const struct sm preflight_life = { "preflight", states, PREFLIGHT_STATES };

static struct checkup_told *told_of(const struct preflight *p)
{
	return (struct checkup_told *)p->measurer.answer;
}

static struct checkup_times preflight_times(const struct preflight *p, unsigned phase)
{
	return checkup_times(&p->input, phases[phase], phase == phases_lowest(p->call.phases));
}

/* How much is left of a limit that counts from the phase's beginning. */
static uint64_t preflight_left_ms(const struct run *r, uint64_t limit_ms)
{
	uint64_t spent = uv_now(&r->loop) - r->preflight.phase_ms;

	return spent < limit_ms ? limit_ms - spent : 1;
}

void preflight_forget(struct run *r)
{
	struct preflight *p = &r->preflight;

	check_round_done(&p->round);
	free(p->verdict);
	free(p->absent);
	p->verdict = NULL;
	p->absent = NULL;
}

/* What has left the child's process group is this process's child by now. */
static void preflight_over(struct run *r)
{
	struct preflight *p = &r->preflight;

	if (p->measurer.state != HELPER_NONE || p->judge.state != HELPER_NONE || p->handles > 0)
		return;
	fd_closep(&p->talk[0]);
	fd_closep(&p->talk[1]);
	preflight_forget(r);
	progress_hide(&r->progress);
	if (tree_end_soon(preflight_left_ms(r, preflight_times(p, p->phase).judged)) > 0)
		bus_note(r->in->bus, NOTE_WARNING,
			"a process of the check of this node can't be ended: it hangs in the kernel");
	p->state = sm_go(&preflight_life, p->state, PREFLIGHT_IDLE);
	p->on_over(r);
}

static void on_preflight_handle_closed(uv_handle_t *h)
{
	struct run *r = h->data;

	r->preflight.handles--;
	preflight_over(r);
}

static void measurer_close(struct preflight *p)
{
	p->gpus |= p->measurer.answer && told_of(p)->gpus;
	helper_close(&p->measurer);
}

static void preflight_goto(struct run *r, enum preflight_state next)
{
	struct preflight *p = &r->preflight;

	p->state = sm_go(&preflight_life, p->state, next);
	if (next == PREFLIGHT_JUDGING) {
		(void)uv_timer_stop(&p->clock);
		(void)uv_timer_stop(&p->meeting);
		measurer_close(p);
	} else if (next == PREFLIGHT_ENDING) {
		measurer_close(p);
		helper_close(&p->judge);
		if (p->talk[0] >= 0)
			uv_close((uv_handle_t *)&p->heard, on_preflight_handle_closed);
		uv_close((uv_handle_t *)&p->clock, on_preflight_handle_closed);
		uv_close((uv_handle_t *)&p->meeting, on_preflight_handle_closed);
	}
}

/* Whether this node judges: node rank 0, or one that is checked without the others. */
static bool judges(const struct run *r)
{
	return !r->preflight.call.together || r->plan->node_rank == 0;
}

static void take_verdict(struct run *r)
{
	struct preflight *p = &r->preflight;

	const struct check_words words = { .bus = r->in->bus,
		.arena = r->in->arena,
		.input = &p->input,
		.phases = p->call.phases,
		.node_rank = r->plan->node_rank,
		.nnodes = r->plan->nnodes,
		.hostname = r->in->hostname,
		.began_ns = p->began_ns,
		.together = p->call.together,
		.bad = &p->worst };

	p->bad = check_words_verdict(&words, p->verdict) > 0 && r->plan->stop_for_bad_node;
	preflight_goto(r, PREFLIGHT_ENDING);
}

static void preflight_send(
	struct run *r, unsigned phase, enum check_word word, const char *at, size_t len)
{
	member_check(
		&r->member, &(struct message_check){ r->attempt.number, phase, word, at, len });
}

/* --- node rank 0: all nodes --- */

static void begin_phase(struct run *r, unsigned phase);

static void next_phase(struct run *r)
{
	struct preflight *p = &r->preflight;
	unsigned rest = p->call.phases & ~((2U << p->phase) - 1);

	if (rest == 0 || p->verdict->over) {
		take_verdict(r);
		return;
	}
	p->called_ms = uv_now(&r->loop);
	if (p->call.together)
		preflight_send(r, phases_lowest(rest), CHECK_NEXT, NULL, 0);
	if (check_round_begin(&p->round, p->input.nnodes, p->absent) < 0) {
		check_words_unable(
			r->in->bus, "the check of the nodes did not end", "out of memory");
		take_verdict(r);
		return;
	}
	begin_phase(r, phases_lowest(rest));
}

static void judge_work(struct helper *h)
{
	const struct run *r = h->owner;
	const struct preflight *p = &r->preflight;
	struct checkup_verdict *v = (struct checkup_verdict *)h->answer;
	const char **told = calloc(p->input.nnodes, sizeof *told);

	for (unsigned i = 0; told && i < p->input.nnodes; i++)
		told[i] = check_round_told(&p->round, i);
	if (!told)
		helper_fail(h, "out of memory");
	memcpy((char *)v + sizeof v->helper, (char *)p->verdict + sizeof v->helper,
		checkup_verdict_size(p->input.nnodes) - sizeof v->helper);
	checkup_judge(&p->input, phases[p->phase], told, p->absent, r->plan->stop_for_bad_node, v);
}

static void on_judged(struct helper *h, bool succeeded)
{
	struct run *r = h->owner;
	struct preflight *p = &r->preflight;
	struct text why = { 0 };

	if (succeeded) {
		memcpy(p->verdict, h->answer, checkup_verdict_size(p->input.nnodes));
		checkup_trust(p->verdict, p->input.nnodes);
	} else {
		helper_explain(h, "the judgement", &why);
		check_words_unable(
			r->in->bus, "the check of the nodes did not end", text_string(&why));
		text_done(&why);
	}
	helper_close(h);
	if (succeeded)
		next_phase(r);
	else
		take_verdict(r);
}

static void on_helper_closed(struct helper *h);

static void judge_now(struct run *r)
{
	struct preflight *p = &r->preflight;
	int rc;

	preflight_goto(r, PREFLIGHT_JUDGING);
	p->judge = (struct helper){
		.work = judge_work,
		.on_end = on_judged,
		.on_closed = on_helper_closed,
		.owner = r,
		.name = "node-judge",
		.argv = r->in->member->argv,
		.group = true,
	};
	rc = helper_start(&p->judge, &r->loop, checkup_verdict_size(p->input.nnodes),
		preflight_left_ms(r, preflight_times(p, p->phase).judged));
	if (rc == 0)
		return;
	check_words_unable(
		r->in->bus, "the check of the nodes did not end: no process", strerror(-rc));
	take_verdict(r);
}

static void preflight_hand_over(struct preflight *p, const char *all, size_t len)
{
	if (p->measurer.state == HELPER_RUNNING && !told_of(p)->room.answered)
		(void)meet_answer(&told_of(p)->room, p->talk[0], all, len);
}

static void answer_all(struct run *r)
{
	struct preflight *p = &r->preflight;
	struct text all = { 0 };

	p->round.answered = true;
	check_round_lines(&p->round, &all);
	if (all.len <= MESSAGE_CHECK_MAX) {
		preflight_send(r, p->phase, CHECK_ALL, text_string(&all), all.len);
		preflight_hand_over(p, text_string(&all), all.len);
	}
	text_done(&all);
}

/* Somebody has said or told something, or this node has begun. */
static void consider(struct run *r)
{
	struct preflight *p = &r->preflight;

	if (p->state != PREFLIGHT_ASKING && p->state != PREFLIGHT_WAITING)
		return;
	if (phases[p->phase]->meet_ms > 0 && p->call.together && !p->round.answered &&
		check_round_is_said(&p->round))
		answer_all(r);
	if (check_round_is_told(&p->round))
		judge_now(r);
}

static void on_awaited(uv_timer_t *t)
{
	judge_now(t->data);
}

static void on_meeting_over(uv_timer_t *t)
{
	struct run *r = t->data;

	if (!r->preflight.round.answered)
		answer_all(r);
}

/* --- this node --- */

static void preflight_say_line(struct run *r, const char *line)
{
	struct preflight *p = &r->preflight;

	p->said = true;
	if (p->verdict)
		check_round_say(&p->round, p->input.node, line, strlen(line));
	else
		preflight_send(r, p->phase, CHECK_SAYS, line, strlen(line));
}

static void preflight_tell(struct run *r, const char *at, size_t len)
{
	struct preflight *p = &r->preflight;

	p->told = true;
	preflight_goto(r, PREFLIGHT_WAITING);
	if (p->verdict)
		check_round_tell(&p->round, p->input.node, at, len);
	else
		preflight_send(r, p->phase, CHECK_TOLD, at, len);
}

static void preflight_tell_failure(struct run *r, const char *why)
{
	struct text t = { 0 };

	check_words_unable(r->in->bus, "this node could not be checked", why);
	text_printf(&t, "%c%s", TOLD_FAILED, why);
	preflight_tell(r, text_string(&t), t.len);
	text_done(&t);
}

/* What the child has left, which it may still write; one of the phase before has nothing to say. */
static void look_at_measurer(struct run *r)
{
	struct preflight *p = &r->preflight;
	char line[MEET_LINE_MAX];

	if (!p->measurer.answer || p->told || p->due)
		return;
	if (told_of(p)->room.said && !p->said) {
		(void)snprintf(line, sizeof line, "%.*s", MEET_LINE_MAX - 1, told_of(p)->room.line);
		preflight_say_line(r, line);
	}
	if (told_of(p)->len > 0 && told_of(p)->len <= TOLD_MAX)
		preflight_tell(r, told_of(p)->text, told_of(p)->len);
	if (p->verdict)
		consider(r);
}

static void on_heard(uv_poll_t *h, int status, int events)
{
	struct run *r = h->data;
	char bytes[64];

	(void)status, (void)events;
	while (read(r->preflight.talk[0], bytes, sizeof bytes) > 0)
		;
	look_at_measurer(r);
}

static void on_measured(struct helper *h, bool succeeded)
{
	struct run *r = h->owner;
	struct preflight *p = &r->preflight;
	struct text why = { 0 };

	look_at_measurer(r);
	if (!p->told && p->state == PREFLIGHT_ASKING) {
		if (succeeded)
			text_add(&why, "its process ended early");
		else
			helper_explain(h, "the check", &why);
		preflight_tell_failure(r, text_string(&why));
		text_done(&why);
	}
	measurer_close(p);
	if (p->verdict)
		consider(r);
}

static void measure_work(struct helper *h)
{
	const struct run *r = h->owner;
	const struct preflight *p = &r->preflight;
	const struct phase *phase = phases[p->phase];
	struct checkup_told *ret = (struct checkup_told *)h->answer;
	const struct meet meet = { .room = &ret->room, .fd = STDIN_FILENO };
	struct phase_input in = p->input;

	in.meet = p->call.together ? &meet : NULL;
	in.ret_gpus = &ret->gpus;
	checkup_measure(&in, phase, ret);
	meet_ring(STDIN_FILENO);
	while (phase->serves && in.meet && in.node == 0)
		(void)pause();
}

static void measure_now(struct run *r)
{
	struct preflight *p = &r->preflight;
	struct checkup_times times = preflight_times(p, p->phase);
	int rc = p->talk[1] < 0 ? -EMFILE : 0;

	p->due = false;
	p->input.until_ms = monotonic_ms() + (int64_t)preflight_left_ms(r, times.measure);
	p->measurer = (struct helper){
		.work = measure_work,
		.on_end = on_measured,
		.on_closed = on_helper_closed,
		.owner = r,
		.name = "node-check",
		.argv = r->in->member->argv,
		.input = p->talk[1],
		.group = true,
	};
	if (rc == 0)
		rc = helper_start(&p->measurer, &r->loop, sizeof(struct checkup_told),
			preflight_left_ms(r, times.killed));
	if (rc < 0)
		preflight_tell_failure(r, strerror(-rc));
}

static void on_helper_closed(struct helper *h)
{
	struct run *r = h->owner;

	if (r->preflight.state == PREFLIGHT_ENDING)
		preflight_over(r);
	else if (r->preflight.due && r->preflight.measurer.state == HELPER_NONE)
		measure_now(r);
	if (r->preflight.verdict)
		consider(r);
}

static void begin_phase(struct run *r, unsigned phase)
{
	struct preflight *p = &r->preflight;

	uv_update_time(&r->loop);
	if (p->state != PREFLIGHT_ASKING)
		preflight_goto(r, PREFLIGHT_ASKING);
	p->phase = phase;
	p->phase_ms = phases[phase]->strict ? p->called_ms : uv_now(&r->loop);
	p->said = p->told = false;
	p->due = true;
	if (p->verdict)
		(void)uv_timer_start(&p->clock, on_awaited,
			preflight_left_ms(r, preflight_times(p, phase).awaited), 0);
	if (p->verdict && p->call.together && phases[phase]->meet_ms > 0)
		(void)uv_timer_start(&p->meeting, on_meeting_over, phases[phase]->meet_ms, 0);
	if (p->measurer.state == HELPER_NONE)
		measure_now(r);
	else
		measurer_close(p); /* it is late, and the next phase begins when it has gone */
	if (p->verdict)
		consider(r);
}

/* --- its beginning --- */

/* Node rank 0's, of all nodes. */
static bool take_names(struct run *r, struct phase_input *in)
{
	struct arena *a = &r->end->memory; /* of the attempt */
	struct node_sight *seen = arena_alloc(a, in->nnodes * sizeof *seen);
	const char **hosts = arena_alloc(a, in->nnodes * sizeof *hosts);
	struct phase_clock *clocks = arena_alloc(a, in->nnodes * sizeof *clocks);
	struct address *addresses = arena_alloc(a, in->nnodes * sizeof *addresses);
	size_t count;

	if (!seen || !hosts || !clocks || !addresses)
		return false;
	count = sight_nodes(&r->member, seen, in->nnodes);
	for (unsigned i = 0; i < in->nnodes; i++) {
		hosts[i] = i < count ? seen[i].name : "";
		clocks[i] = (struct phase_clock){ .known = i == 0 };
		if (i > 0)
			clocks[i].known = sight_clock(
				&r->member, i, &clocks[i].offset_ns, &clocks[i].error_ns);
		addresses[i] = sight_address(&r->member, i);
	}
	in->hosts = hosts;
	in->clocks = clocks;
	in->addresses = addresses;
	return true;
}

static void open_talk(struct run *r)
{
	struct preflight *p = &r->preflight;

	(void)uv_timer_init(&r->loop, &p->clock); /* can't fail */
	(void)uv_timer_init(&r->loop, &p->meeting);
	p->clock.data = p->meeting.data = p->heard.data = r;
	p->handles = 2;
	p->talk[0] = p->talk[1] = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p->talk) < 0)
		return;
	if (uv_poll_init(&r->loop, &p->heard, p->talk[0]) < 0) {
		fd_closep(&p->talk[0]);
		fd_closep(&p->talk[1]);
		return;
	}
	p->handles++;
	(void)uv_poll_start(&p->heard, UV_READABLE, on_heard); /* a new watch: can't fail */
}

static void make_input(struct run *r)
{
	struct preflight *p = &r->preflight;

	p->input = (struct phase_input){
		.settings = r->in->settings,
		.env = plan_check_env(r->plan, &r->end->memory),
		.attempt = r->attempt.number,
		.node = p->call.together ? r->plan->node_rank : 0,
		.nnodes = p->call.together ? r->plan->nnodes : 1,
		.own = p->call.own,
		.hub = p->call.hub,
		.gate_ms = p->call.gate_ms,
		.xids = gpu_watch_xids(&r->gpu_watch),
		.spaces = space_look_found(&r->spaces),
		.left = p->left,
		.left_count = p->left_count,
	};
}

static uint64_t limit_of_all(const struct preflight *p)
{
	uint64_t ms = 0;

	for (unsigned i = 0; i < PHASE_IDS; i++)
		ms += p->call.phases & 1U << i ? preflight_times(p, i).judged : 0;
	return ms;
}

void preflight_start(struct run *r)
{
	struct preflight *p = &r->preflight;
	struct text names = { 0 };

	p->bad = false;
	p->worst.exclude = NULL;
	p->began_ns = uv_hrtime();
	make_input(r);
	phases_add(&names, p->call.phases);
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_CHECK_STARTED,
			.check_started = { r->attempt.number, text_string(&names),
				limit_of_all(p) },
		});
	text_done(&names);
	if (r->in->status)
		output_status(r->in->output, "checking nodes before the workers start");
	open_talk(r);
	preflight_goto(r, PREFLIGHT_ASKING);
	if (judges(r) && (!p->verdict || (p->call.together && !take_names(r, &p->input)))) {
		check_words_unable(r->in->bus, "the nodes are not checked", "out of memory");
		preflight_goto(r, PREFLIGHT_ENDING);
		return;
	}
	begin_phase(r, p->phase);
}

/* Node rank 0: other nodes may be ready before this one. */
static void expect_nodes(struct run *r)
{
	struct preflight *p = &r->preflight;
	unsigned nnodes = p->call.together ? r->plan->nnodes : 1;
	struct node_sight *seen = calloc(nnodes, sizeof *seen);
	size_t count = seen ? sight_nodes(&r->member, seen, nnodes) : 0;

	preflight_forget(r);
	p->verdict = calloc(1, checkup_verdict_size(nnodes));
	p->absent = calloc(nnodes, sizeof *p->absent);
	for (unsigned i = 0; p->absent && i < nnodes; i++)
		p->absent[i] = p->call.together && (i >= count || seen[i].state != NODE_JOINED);
	free(seen);
	if (!p->absent || check_round_begin(&p->round, nnodes, p->absent) < 0)
		preflight_forget(r);
}

void preflight_call(struct run *r, const struct check_call *c)
{
	struct preflight *p = &r->preflight;

	p->call = *c;
	p->call.phases &= (1U << PHASE_IDS) - 1;
	p->phase = phases_lowest(p->call.phases);
	p->called_ms = uv_now(&r->loop);
	p->released = false;
	if (p->call.phases != 0 && judges(r))
		expect_nodes(r);
}

/* A phase that comes before this node is ready becomes its first one. */
static void measure_next(struct run *r, unsigned phase)
{
	struct preflight *p = &r->preflight;

	if (phase >= PHASE_IDS || !(p->call.phases & 1U << phase))
		return;
	p->called_ms = uv_now(&r->loop);
	if (p->state == PREFLIGHT_IDLE)
		p->phase = phase;
	else if (p->state != PREFLIGHT_ENDING)
		begin_phase(r, phase);
}

void preflight_word(struct run *r, unsigned node, const struct message_check *m)
{
	struct preflight *p = &r->preflight;

	if (!p->verdict && m->word == CHECK_NEXT && !judges(r))
		measure_next(r, m->phase);
	else if (m->phase != p->phase)
		return;
	else if (!p->verdict && m->word == CHECK_ALL)
		preflight_hand_over(p, m->at, m->len);
	else if (p->verdict && m->word == CHECK_SAYS)
		check_round_say(&p->round, node, m->at, m->len);
	else if (p->verdict && m->word == CHECK_TOLD)
		check_round_tell(&p->round, node, m->at, m->len);
	if (p->verdict)
		consider(r);
}

void preflight_begin(struct run *r)
{
	const struct plan *p = r->plan;

	if (p->max_restarts > 0 && p->check_again & 1U << PHASE_GATE)
		space_look_start(
			&r->spaces, &r->loop, r->in->settings, p->env, r->in->member->argv);
}

void preflight_watch(struct run *r)
{
	const struct plan *p = r->plan;
	bool gate = p->check_again & 1U << PHASE_GATE, quick = p->check_again & 1U << PHASE_QUICK;

	if (p->max_restarts > 0 &&
		((r->preflight.gpus && (quick || gate)) || (gate && nvidia_gpus_here())))
		gpu_watch_start(&r->gpu_watch, &r->loop,
			plan_check_devices(r->plan, &r->end->memory), r->in->member->argv);
}

void preflight_left(struct run *r, const struct survivor *left, unsigned count)
{
	struct preflight *p = &r->preflight;

	p->left_count = count < SURVIVORS_MAX ? count : SURVIVORS_MAX;
	for (unsigned i = 0; i < p->left_count; i++)
		p->left[i] = left[i].pid;
}

bool preflight_is_due(const struct run *r)
{
	return r->preflight.call.phases != 0 && !r->preflight.released;
}

void preflight_release(struct run *r)
{
	struct preflight *p = &r->preflight;

	p->released = true;
	if (p->state == PREFLIGHT_ASKING || p->state == PREFLIGHT_WAITING)
		preflight_goto(r, PREFLIGHT_ENDING);
}

bool preflight_end(struct run *r)
{
	if (r->preflight.state == PREFLIGHT_IDLE)
		return false;
	if (r->preflight.state != PREFLIGHT_ENDING)
		preflight_goto(r, PREFLIGHT_ENDING);
	return true;
}
