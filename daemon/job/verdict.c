/* verdict.c - see verdict.h
 *
 * Every event lies between two moments of our clock: a death within its node's clock error and
 * by how late it may have been seen, a lost node's between its last word and the moment when it was
 * missed. One is surely before another only where the two spans do not meet. On one node the order
 * is known, unless two have the same time: see workers/deaths.h. */
#include "daemon/job/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/absent.h"
#include "daemon/job/phrases.h"

/* How much later than its victims the first one may be seen to die: the kernel closes its sockets
 * before it has freed its GPUs' memory, and Python destroys its process groups before it has joined
 * its threads. pool.c waits as long for a process that SIGKILL does not end. Nothing longer is
 * needed, as all others are asked to stop soon after the first death. */
static const uint64_t lost_peer_window_ns = 10000000000;

/* What has happened, between two moments. */
struct moment_span {
	uint64_t first_ns, last_ns;
};

static struct moment_span span_around(uint64_t at_ns, uint64_t error_ns)
{
	return (struct moment_span){ at_ns > error_ns ? at_ns - error_ns : 0, at_ns + error_ns };
}

static uint64_t error_of(const struct result *r, unsigned node)
{
	return node < r->node_count ? r->nodes[node].clock_error_ns : 0;
}

static struct moment_span span_of(const struct result *r, const struct outcome *o)
{
	struct moment_span s = span_around(o->ended_ns, error_of(r, o->node));

	s.first_ns -= o->late_ns < s.first_ns ? o->late_ns : s.first_ns;
	return s;
}

/* The question that verdict_find() answers, and what it has found so far. */
struct inquest {
	struct result *r;
	const struct cause *asked, *lost; /* NULL: not, or it does not count */
	uint64_t own_ns;     /* the earliest that a worker may have failed of itself, or a node been
				lost; UINT64_MAX: none */
	uint64_t mute_ns;    /* the same of workers that say nothing of why */
	uint64_t mute_at_ns; /* when the first of these ended, by its clock as it is */
};

static bool is_failure(const struct outcome *o)
{
	return o->asked == ASKED_NOTHING && o->end.how != ENDED_NONE && !ending_is_success(&o->end);
}

static bool is_primary(const struct outcome *o)
{
	return outcome_failing(o) < FAILING_ABORT;
}

/* -1: o was surely before the request, 1: surely after it, 0: nobody can tell. */
static int order_to_request(const struct inquest *q, const struct outcome *o)
{
	const struct outcome request = { .node = q->asked->node, .ended_ns = q->asked->at_ns };

	if (result_is_close(q->r, o, &request))
		return 0;
	return o->ended_ns < request.ended_ns ? -1 : 1;
}

/* A batch system that ends a job sends its signal to every process of it. */
static bool is_of_request(const struct inquest *q, const struct outcome *o)
{
	return q->asked->signal != 0 && ending_exit_code(&o->end) == 128 + q->asked->signal;
}

/* What announces a preemption is the cause of a death by it, also where the launcher gets it after
 * the workers: the exit code is to ask for another start. */
static bool is_soon_enough(const struct inquest *q, const struct outcome *o)
{
	enum { LATE_NS = 1000000000 };

	return q->asked->kind == CAUSE_PREEMPTED && q->asked->at_ns < o->ended_ns + LATE_NS;
}

static bool is_after_request(const struct inquest *q, const struct outcome *o)
{
	int order = q->asked ? order_to_request(q, o) : -1;

	return order > 0 ||
		(q->asked && is_of_request(q, o) && (order == 0 || is_soon_enough(q, o)));
}

/* Whether o may be the first failure of the job, as long as others do not stand against it. */
static bool counts(const struct inquest *q, const struct outcome *o)
{
	return is_failure(o) && !is_after_request(q, o);
}

/* A silence has begun when the node was last heard; its workers' deaths that it told of came
 * before. */
static struct moment_span span_of_loss(const struct inquest *q)
{
	uint64_t error = error_of(q->r, q->lost->node);
	uint64_t noticed =
		q->lost->noticed_ns > q->lost->at_ns ? q->lost->noticed_ns : q->lost->at_ns;

	return (struct moment_span){ span_around(q->lost->at_ns, error).first_ns, noticed };
}

static bool is_before_loss(const struct inquest *q, const struct outcome *o)
{
	return o->node == q->lost->node || span_of(q->r, o).last_ns < span_of_loss(q).first_ns;
}

/* When the first of those that are nobody's victims may have been. */
static void find_earliest(struct inquest *q)
{
	q->own_ns = q->lost ? span_of_loss(q).first_ns : UINT64_MAX;
	q->mute_ns = q->mute_at_ns = UINT64_MAX;
	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];
		uint64_t first = span_of(q->r, o).first_ns;

		if (!counts(q, o))
			continue;
		if (outcome_failing(o) == FAILING_ITSELF && first < q->own_ns)
			q->own_ns = first;
		if (outcome_failing(o) == FAILING_MUTE && first < q->mute_ns)
			q->mute_ns = first;
		if (outcome_failing(o) == FAILING_MUTE && o->ended_ns < q->mute_at_ns)
			q->mute_at_ns = o->ended_ns;
	}
}

/* Who died of a lost peer is a consequence of any failure that is not, or of a lost node, even of
 * one that was seen a little later. But SIGABRT without words may be a cause, too, and one that
 * dies mute after it its consequence: here only the order tells. */
static bool is_consequence(const struct inquest *q, const struct outcome *o)
{
	uint64_t last = span_of(q->r, o).last_ns;

	if (is_primary(o))
		return false;
	if (q->own_ns <= last + lost_peer_window_ns)
		return true;
	if (outcome_failing(o) == FAILING_ABORT)
		return q->mute_at_ns < o->ended_ns;
	return q->mute_ns <= last + lost_peer_window_ns;
}

static bool is_candidate(const struct inquest *q, const struct outcome *o)
{
	return counts(q, o) && !is_consequence(q, o);
}

static const struct outcome *first_candidate(const struct inquest *q)
{
	const struct outcome *first = NULL;

	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];

		if (is_candidate(q, o) && (!first || o->ended_ns < first->ended_ns))
			first = o;
	}
	return first;
}

/* Whether it was asked to stop while it died already: it tells of an exception of its own, and
 * ended with neither our signal nor that signal's exit code. */
static bool is_late_culprit(const struct outcome *o)
{
	return o->asked != ASKED_NOTHING && o->blames == BLAMES_ITSELF &&
		o->end.how == ENDED_EXIT && o->end.value != 0 && o->end.value != 128 + SIGTERM &&
		o->end.value != 128 + o->asked_signal;
}

/* The culprit that was still being torn down when its victims had all others asked to stop; NULL:
 * there is none. */
static const struct outcome *late_culprit(const struct inquest *q, const struct outcome *victim)
{
	uint64_t end = span_of(q->r, victim).last_ns + lost_peer_window_ns;
	const struct outcome *first = NULL;

	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];

		if (is_late_culprit(o) && span_of(q->r, o).first_ns <= end &&
			(!first || o->ended_ns < first->ended_ns))
			first = o;
	}
	return first;
}

static bool is_mute_or_abort(const struct outcome *o)
{
	return outcome_failing(o) == FAILING_MUTE || outcome_failing(o) == FAILING_ABORT;
}

/* The deaths of one node have their order, but for those that were seen as one. */
static bool is_order_known(const struct outcome *a, const struct outcome *b)
{
	return a->node == b->node && a->ended_ns != b->ended_ns;
}

/* Whether o may be it as well as the culprit is. */
static bool is_rival(
	const struct inquest *q, const struct outcome *culprit, const struct outcome *o)
{
	if (o == culprit || is_order_known(o, culprit) || !result_is_close(q->r, o, culprit))
		return false;
	if (culprit->asked != ASKED_NOTHING)
		return is_late_culprit(o);
	/* of a mute one and an abort only the order tells */
	return is_failure(o) &&
		(is_primary(o) == is_primary(culprit) ||
			(is_mute_or_abort(o) && is_mute_or_abort(culprit)));
}

static bool is_unsure(const struct inquest *q, const struct outcome *culprit)
{
	if (q->asked && culprit->asked == ASKED_NOTHING && q->asked->node != culprit->node &&
		order_to_request(q, culprit) == 0)
		return true;
	for (size_t i = 0; i < q->r->count; i++)
		if (is_rival(q, culprit, &q->r->outcomes[i]))
			return true;
	return false;
}

/* Where no worker failed of itself, and one wrote to output without a reader. */
static bool blame_reader(const struct inquest *q)
{
	const struct outcome *first = NULL;

	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];

		if (o->blames == BLAMES_OUTPUT && is_candidate(q, o) &&
			(!first || o->ended_ns < first->ended_ns))
			first = o;
	}
	if (first)
		q->r->cause = (struct cause){ .kind = CAUSE_HANGUP,
			.victim = *first,
			.at_ns = first->ended_ns,
			.node = first->node };
	return first != NULL;
}

static void blame_worker(const struct inquest *q, const struct outcome *culprit)
{
	const struct outcome *late = is_primary(culprit) ? NULL : late_culprit(q, culprit);

	if (!late && outcome_failing(culprit) == FAILING_PEER &&
		(blame_reader(q) || absent_blame(q->r)))
		return;
	culprit = late ? late : culprit;
	q->r->cause = cause_of_failure(culprit);
	q->r->unsure = is_unsure(q, culprit);
}

/* A worker elsewhere that failed before the loss was noticed may have been the first. */
static void blame_node(const struct inquest *q)
{
	q->r->cause = *q->lost;
	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];

		if (is_candidate(q, o) && span_of(q->r, o).first_ns <= span_of_loss(q).last_ns)
			q->r->unsure = true;
	}
}

/* Whether a worker's failure stands before the loss. */
static bool is_loss_second(const struct inquest *q)
{
	for (size_t i = 0; i < q->r->count; i++) {
		const struct outcome *o = &q->r->outcomes[i];

		if (is_candidate(q, o) && is_before_loss(q, o))
			return true;
	}
	return false;
}

/* A request ends launchers, too, and then their nodes are lost: only a loss that was noticed before
 * it can be the cause. */
static bool is_loss_after_request(const struct inquest *q)
{
	uint64_t first = span_around(q->asked->at_ns, error_of(q->r, q->asked->node)).first_ns;

	return span_of_loss(q).last_ns >= first;
}

void verdict_find(struct result *r, const struct cause *asked, const struct cause *lost)
{
	struct inquest q = { .r = r };
	const struct outcome *first;

	r->unsure = false;
	r->cause = (struct cause){ .kind = CAUSE_NONE };
	q.asked = asked && asked->kind != CAUSE_NONE ? asked : NULL;
	q.lost = lost && lost->kind != CAUSE_NONE ? lost : NULL;
	if (q.lost && q.asked && is_loss_after_request(&q))
		q.lost = NULL;
	find_earliest(&q);
	first = first_candidate(&q);
	if (q.lost && !(first && is_loss_second(&q)))
		blame_node(&q);
	else if (first)
		blame_worker(&q, first);
	else if (q.asked)
		r->cause = *q.asked;
}

/* --- in one line --- */

/* Of the node where the cause came in; "": it is not known. */
static const char *host_of(const struct result *r)
{
	const struct cause *c = &r->cause;

	if (*c->host)
		return c->host;
	return c->node < r->node_count ? r->nodes[c->node].name : "";
}

/* Whether it is only one of those that its node saw die as one. */
static bool has_twin(const struct result *r)
{
	const struct outcome *c = &r->cause.culprit;

	for (size_t i = 0; i < r->count; i++) {
		const struct outcome *o = &r->outcomes[i];

		if (o->rank != c->rank && o->node == c->node && is_failure(o) &&
			o->ended_ns == c->ended_ns)
			return true;
	}
	return false;
}

/* In the words of the report, so that one search finds the culprit in every node's output. */
static void add_culprit(const struct result *r, struct text *out)
{
	text_add(out, r->unsure ? "possibly " : "");
	worker_add(out, &r->cause.culprit);
	text_add(out, " on ");
	place_add(out, host_of(r), r->cause.node);
	text_add(out, ": ");
	outcome_add(out, &r->cause.culprit);
	if (r->unsure)
		text_printf(out, "; another worker may have failed first: %s can't tell",
			has_twin(r) ? "its node's kernel" : "the nodes' clocks");
}

static void add_absent(const struct result *r, struct text *out)
{
	const struct outcome *culprit = result_culprit(r);

	if (culprit) {
		worker_add(out, culprit);
		text_add(out, " on ");
		place_add(out, host_of(r), r->cause.node);
		text_add(out, ": ");
	}
	cause_add(&r->cause, 0, out);
}

static void add_loss(const struct result *r, struct text *out)
{
	text_add(out, r->cause.contact ? "this node lost contact with " : "");
	node_name_add(out, r->cause.node, host_of(r));
	loss_add(out, &r->cause);
	if (*r->cause.detail) {
		text_add(out, ": ");
		text_add_shown(
			out, r->cause.detail, strnlen(r->cause.detail, sizeof r->cause.detail));
	}
	losses_add(out, r);
	if (r->unsure)
		text_add(out, "; a worker may have failed before that");
}

static void add_cause(const struct result *r, struct text *out)
{
	text_add(out, "root cause: ");
	if (r->cause.kind == CAUSE_FAILURE) {
		add_culprit(r, out);
	} else if (r->cause.kind == CAUSE_NODE_LOST) {
		add_loss(r, out);
	} else if (r->cause.kind == CAUSE_TIMEOUT) {
		add_absent(r, out);
	} else if (r->cause.kind == CAUSE_BAD_NODE) {
		node_name_add(out, r->cause.node, host_of(r));
		bad_add(out, &r->cause);
	} else {
		cause_add(&r->cause, 0, out);
		if (r->cause.kind == CAUSE_HANG)
			return; /* of all nodes */
		text_add(out, " on ");
		place_add(out, host_of(r), r->cause.node);
	}
}

void verdict_make(const struct result *r, struct verdict *ret)
{
	struct text text = { 0 };

	*ret = (struct verdict){ .exit_code = result_exit_code(r),
		.well = r->cause.kind == CAUSE_NONE,
		.attempt = r->count > 0 ? r->outcomes[0].attempt : 0,
		.cause = r->cause,
		.unsure = r->unsure };
	if (!ret->well)
		add_cause(r, &text);
	if (r->cause.futile)
		text_printf(&text, "; %u attempt%s in a row ended without a new step",
			r->cause.futile, r->cause.futile == 1 ? "" : "s");
	(void)snprintf(ret->text, sizeof ret->text, "%s", text_string(&text));
	text_done(&text);
}
