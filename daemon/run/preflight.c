/* preflight.c - see preflight.h */
#include "daemon/run/preflight.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/sm.h"
#include "common/text.h"
#include "daemon/check/phases.h"
#include "daemon/cluster/sight.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/run/state.h"
#include "daemon/workers/tree.h"

enum { BAD_SHOWN = 16, DOUBTS_SHOWN = 4 };

static const struct sm_state states[PREFLIGHT_STATES] = {
	[PREFLIGHT_IDLE] = { "idle", SM_TO(PREFLIGHT_ASKING) | SM_TO(PREFLIGHT_WAITING) },
	/* idle: it could not be started, and there is no other node */
	[PREFLIGHT_ASKING] = { "asking", SM_TO(PREFLIGHT_WAITING) | SM_TO(PREFLIGHT_ENDING) },
	[PREFLIGHT_WAITING] = { "waiting", SM_TO(PREFLIGHT_ENDING) },
	[PREFLIGHT_ENDING] = { "ending", SM_TO(PREFLIGHT_IDLE) },
};
const struct sm preflight_life = { "preflight", states, PREFLIGHT_STATES };

static void over(struct run *r);

static bool has_found_gpus(const struct helper *h)
{
	return h->answer && ((const struct checkup_answer *)h->answer)->gpus;
}

static void preflight_goto(struct run *r, enum preflight_state next)
{
	struct preflight *p = &r->preflight;

	p->state = sm_go(&preflight_life, p->state, next);
	if (next == PREFLIGHT_WAITING || next == PREFLIGHT_ENDING) {
		p->gpus |= has_found_gpus(&p->helper);
		helper_close(&p->helper);
	}
	if (next == PREFLIGHT_ENDING && p->helper.state == HELPER_NONE)
		over(r);
}

/* What has left the child's process group is this process's child by now. */
static void over(struct run *r)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count = 0;

	progress_hide(&r->progress);
	(void)tree_end_all(NULL, NULL, left, &count);
	if (count > 0)
		bus_note(r->in->bus, NOTE_WARNING,
			"a process of the check of this node can't be ended: it hangs in the kernel");
	r->preflight.state = sm_go(&preflight_life, r->preflight.state, PREFLIGHT_IDLE);
	r->preflight.on_over(r);
}

/* --- the child --- */

static void work(struct helper *h)
{
	const struct run *r = h->owner;
	struct failure why = { 0 };

	if (checkup_run(&r->preflight.input, (struct checkup_answer *)h->answer, &why) < 0)
		helper_fail(h, "%s", why.text);
}

/* --- what came of it, on node rank 0 or alone --- */

/* Whether this node judges: node rank 0, or one that is checked without the others. */
static bool judges(const struct run *r)
{
	return r->preflight.port == 0 || r->plan->node_rank == 0;
}

/* As the user numbers it: a node that is alone in its check may have any rank. */
static unsigned rank_of(const struct run *r, unsigned node)
{
	return r->preflight.port == 0 ? r->plan->node_rank : node;
}

static const char *host_of(const struct run *r, unsigned node)
{
	return r->preflight.input.hosts ? r->preflight.input.hosts[node] : r->in->hostname;
}

static void name_add(const struct run *r, unsigned node, struct text *out)
{
	node_name_add(out, rank_of(r, node), host_of(r, node));
}

static void say_bad(const struct run *r, unsigned node, const struct checkup_node *n)
{
	struct text t = { 0 };

	name_add(r, node, &t);
	text_add(&t, " is bad: ");
	finding_add(&t, &n->reason);
	if (n->bad > 1)
		text_printf(&t, " (and %u more)", n->bad - 1);
	bus_note(r->in->bus, NOTE_WARNING, text_string(&t));
	text_done(&t);
}

/* Several launchers of one host have found one bad host. */
static bool is_listed(const struct text *list, const char *host)
{
	size_t len = strlen(host);

	for (const char *at = text_string(list); *at;) {
		size_t one = strcspn(at, ",");

		if (one == len && strncmp(at, host, len) == 0)
			return true;
		at += one + (at[one] == ',');
	}
	return false;
}

static void exclude(struct text *list, const char *host)
{
	if (*host && !is_listed(list, host))
		text_printf(list, "%s%s", list->len ? "," : "", host);
}

static void keep_first(struct run *r, unsigned node, const struct checkup_node *n)
{
	struct preflight *p = &r->preflight;
	struct text t = { 0 };

	finding_add(&t, &n->reason);
	p->node = node;
	(void)snprintf(p->host, sizeof p->host, "%s", host_of(r, node));
	text_fit(p->reason, sizeof p->reason, text_string(&t));
	text_done(&t);
}

/* How many are bad; says which. */
static unsigned take_bad(struct run *r, const struct checkup_answer *a)
{
	struct text list = { 0 };
	unsigned count = 0;
	char more[64];

	for (unsigned i = 0; i < r->preflight.input.nnodes; i++) {
		if (a->node[i].health != HEALTH_BAD)
			continue;
		if (count == 0)
			keep_first(r, i, &a->node[i]);
		if (count++ < BAD_SHOWN)
			say_bad(r, i, &a->node[i]);
		exclude(&list, host_of(r, i));
	}
	if (count > BAD_SHOWN) {
		(void)snprintf(more, sizeof more, "%u more nodes are bad", count - BAD_SHOWN);
		bus_note(r->in->bus, NOTE_WARNING, more);
	}
	if (count > 0)
		r->preflight.exclude = arena_strdup(r->in->arena, text_string(&list));
	text_done(&list);
	return count;
}

static void doubt_add(const struct run *r, const struct checkup_doubt *d, struct text *out)
{
	if (d->nodes == 1)
		name_add(r, d->first, out);
	else
		text_printf(out, "%u nodes", d->nodes);
	text_add(out, ": ");
	finding_add(out, &d->finding);
}

static void doubts_add(const struct run *r, const struct checkup_answer *a, struct text *out)
{
	unsigned shown = a->doubts < DOUBTS_SHOWN ? a->doubts : DOUBTS_SHOWN;

	for (unsigned i = 0; i < shown; i++) {
		text_add(out, i ? "; " : "; unknown: ");
		doubt_add(r, &a->doubt[i], out);
	}
	if (a->doubts + a->doubts_left_out > shown)
		text_printf(out, "; %u more", a->doubts + a->doubts_left_out - shown);
}

static void tell_ended(const struct run *r, const struct checkup_answer *a, unsigned bad)
{
	unsigned unknown = 0;

	for (unsigned i = 0; i < r->preflight.input.nnodes; i++)
		unknown += a->judged == 0 || a->node[i].health == HEALTH_UNKNOWN ? 1 : 0;
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_CHECK_ENDED,
			.check_ended = { r->attempt.number, r->preflight.input.nnodes, bad, unknown,
				uv_hrtime() - r->preflight.began_ns, r->preflight.exclude },
		});
}

/* One line for all that is not bad. */
static void say_rest(const struct run *r, const struct checkup_answer *a, unsigned bad)
{
	const struct preflight *p = &r->preflight;
	unsigned nnodes = p->input.nnodes;
	struct text t = { 0 };

	text_printf(&t, "checked %u node%s (", nnodes, nnodes == 1 ? "" : "s");
	phases_add(&t, p->wanted);
	text_add(&t, ") in ");
	span_add(&t, p->began_ns, uv_hrtime());
	if (bad)
		text_printf(&t, ": %u bad", bad);
	else
		text_add(&t, a->doubts ? ": none is bad" : ": all good");
	doubts_add(r, a, &t);
	if (p->port == 0 && r->plan->nnodes > 1)
		text_add(&t, "; without the other nodes' launchers each node is checked alone");
	bus_note(r->in->bus,
		a->mute                                                     ? NOTE_WARNING :
			p->wanted == 1U << PHASE_GATE && !bad && !a->doubts ? NOTE_VERBOSE :
									      NOTE_INFO,
		text_string(&t));
	text_done(&t);
}

/* The child could not carry it out, or not to its end. */
static void say_unable(const struct run *r, const char *step)
{
	const struct preflight *p = &r->preflight;
	struct text t = { 0 };

	text_add(&t,
		judges(r) && p->input.nnodes > 1 ? "the check of the nodes did not end: " :
						   "this node could not be checked: ");
	helper_explain(&p->helper, step, &t);
	bus_note(r->in->bus, NOTE_WARNING, text_string(&t));
	text_done(&t);
}

static const char *step_of(const struct preflight *p)
{
	unsigned step = p->helper.answer->step;

	return step > 0 && step <= PHASE_IDS ? phases[step - 1]->name : "the check's start";
}

static void take_verdict(struct run *r, struct checkup_answer *a)
{
	struct preflight *p = &r->preflight;
	unsigned bad;

	checkup_trust(a, p->input.nnodes);
	bad = take_bad(r, a);
	if (a->judged > 0)
		say_rest(r, a, bad);
	p->bad = bad > 0 && p->input.stop;
	tell_ended(r, a, bad);
}

static void on_end(struct helper *h, bool succeeded)
{
	struct run *r = h->owner;

	if (!succeeded)
		say_unable(r, step_of(&r->preflight));
	if (!judges(r)) {
		preflight_goto(r, r->preflight.released ? PREFLIGHT_ENDING : PREFLIGHT_WAITING);
		return;
	}
	take_verdict(r, (struct checkup_answer *)h->answer);
	preflight_goto(r, PREFLIGHT_ENDING);
}

static void on_closed(struct helper *h)
{
	struct run *r = h->owner;

	if (r->preflight.state == PREFLIGHT_ENDING)
		over(r);
}

/* --- its beginning --- */

static bool take_names(struct run *r, struct checkup_input *in)
{
	struct arena *a = &r->end->memory; /* of the attempt */
	struct node_sight *seen = arena_alloc(a, in->nnodes * sizeof *seen);
	const char **hosts = arena_alloc(a, in->nnodes * sizeof *hosts);
	struct phase_clock *clocks = arena_alloc(a, in->nnodes * sizeof *clocks);
	bool *absent = arena_alloc(a, in->nnodes * sizeof *absent);
	size_t count;

	if (!seen || !hosts || !clocks || !absent)
		return false;
	count = sight_nodes(&r->member, seen, in->nnodes);
	for (unsigned i = 0; i < in->nnodes; i++) {
		hosts[i] = i < count ? seen[i].name : "";
		absent[i] = i >= count || seen[i].state != NODE_JOINED;
		clocks[i] = (struct phase_clock){ .known = i == 0 };
		if (i > 0)
			clocks[i].known = sight_clock(
				&r->member, i, &clocks[i].offset_ns, &clocks[i].error_ns);
	}
	in->hosts = hosts;
	in->clocks = clocks;
	in->absent = absent;
	return true;
}

static int start_child(struct run *r)
{
	struct preflight *p = &r->preflight;
	struct checkup_input *in = &p->input;

	*in = (struct checkup_input){
		.settings = r->in->settings,
		.env = plan_check_env(r->plan, &r->end->memory),
		.phases = phases,
		.wanted = p->wanted,
		.stop = r->plan->stop_for_bad_node,
		.attempt = r->attempt.number,
		.xids = gpu_watch_xids(&r->gpu_watch),
		.spaces = space_look_found(&r->spaces),
		.left = p->left,
		.left_count = p->left_count,
		.node = p->port ? r->plan->node_rank : 0,
		.nnodes = p->port ? r->plan->nnodes : 1,
		.host = p->address,
		.port = p->port,
	};
	if (p->port && r->plan->node_rank == 0 && !take_names(r, in))
		return -ENOMEM;
	p->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.on_closed = on_closed,
		.owner = r,
		.name = "node-check",
		.argv = r->in->member->argv,
		.group = true,
	};
	return helper_start(&p->helper, &r->loop, checkup_answer_size(in->nnodes),
		checkup_limit_ms(in->phases, in->wanted, in->settings));
}

static void say_unstarted(const struct run *r, int rc)
{
	struct failure why = { 0 };
	char text[256];

	(void)failure_not_started(&why, rc, "the process that checks this node");
	(void)snprintf(text, sizeof text, "this node is not checked: %.200s", why.text);
	bus_note(r->in->bus, NOTE_WARNING, text);
}

void preflight_start(struct run *r)
{
	struct preflight *p = &r->preflight;
	struct text names = { 0 };
	int rc;

	p->bad = false;
	p->exclude = NULL;
	p->began_ns = uv_hrtime();
	phases_add(&names, p->wanted);
	bus_emit(r->in->bus,
		&(struct event){
			.kind = EVENT_CHECK_STARTED,
			.check_started = { r->attempt.number, text_string(&names),
				checkup_limit_ms(phases, p->wanted, r->in->settings) },
		});
	text_done(&names);
	rc = start_child(r);
	if (rc == 0 && r->in->status)
		output_status(r->in->output, "checking nodes before the workers start");
	if (rc == 0) {
		preflight_goto(r, PREFLIGHT_ASKING);
		return;
	}
	say_unstarted(r, rc);
	preflight_goto(r, PREFLIGHT_WAITING);
	if (judges(r))
		preflight_goto(r, PREFLIGHT_ENDING);
}

void preflight_call(struct run *r, const struct check_call *c)
{
	struct preflight *p = &r->preflight;

	p->wanted = c->phases & ((1U << PHASE_IDS) - 1);
	p->port = c->port;
	p->released = false;
	(void)snprintf(p->address, sizeof p->address, "%s", c->host);
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
		((r->preflight.gpus && (quick || gate)) || (gate && gpu_watch_has_gpus())))
		gpu_watch_start(&r->gpu_watch, &r->loop, r->in->member->argv);
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
	return r->preflight.wanted != 0 && !r->preflight.released;
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
