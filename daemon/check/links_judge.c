/* links_judge.c - see links_judge.h */
#include "daemon/check/links_judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/check/links_told.h"
#include "daemon/check/phase.h"

/* What a link may be found to be, the worst first. DATA is judged of links that connect, and those
 * behind it of links that carry data. */
enum links_kind { REACH, DATA, LOSS, SEGMENT, LATENCY, RATE, KINDS };
enum { OUT, IN, DIRECTIONS };
enum links_verdict { NOT_KNOWN, FINE, WRONG };

/* An end is bad where more than so many percent of its links are. Few are enough where nothing but
 * a fault has that effect: the one link that works may be the very one that the control channel
 * needs. A rate suffers from whatever else a machine does, so all must agree. */
static const unsigned percent_of[KINDS] = {
	[REACH] = 50, [DATA] = 50, [LOSS] = 50, [SEGMENT] = 80, [LATENCY] = 80, [RATE] = 99
};

enum {
	/* A good network loses none of 3,000 packets, but where many senders meet, a few. */
	LOST_LEAST = 5,
	LOST_PER_MILLE = 3,
	LOST_FACTOR = 4, /* of the median: all suffer where the switch is overloaded */
	/* One of two bonded links gone, or 10 in place of 25 Gbit/s; but on a busy machine that is
	 * nothing unusual, so that it must also be slower than nine of ten others. */
	RATE_PERCENT = 50,
	RATE_OTHERS = 10,
	/* Another rack or hall costs far less, 1 ms is 200 km. */
	LATENCY_FACTOR = 5,
	LATENCY_MORE_US = 5000,
	/* Options of TCP take up to 12 bytes more on some connections than on others. */
	SEGMENT_LESS = 16,
	/* One pair of nodes is seen twice, and not in six places: what is said of it must be gross.
	 */
	PAIR_TRIES = 2,
	PAIR_RATE_PERCENT = 25, /* of what nine of ten others have */
	PAIR_LOST_PER_MILLE = 10,
	PAIR_LATENCY_MORE_US = 50000,
	PAIRS_MAX = 16, /* that are named; a network in two halves has hundreds */
	/* What half of the nodes suffer from is no node's fault. */
	ALL_LOST_PER_MILLE = 10,
};

struct edge {
	unsigned ends[DIRECTIONS]; /* the sender's and the receiver's, see end_of() */
	const struct link_told *told;
	enum links_verdict is[KINDS];
};

struct end {
	unsigned links;
	unsigned wrong[KINDS], known[KINDS]; /* of these */
	bool bad[KINDS];
	unsigned done;             /* links that carry data */
	uint64_t segments, resent; /* of those that lose too many */
	/* the best of all that carry data; lost: of a million packets */
	uint64_t bit_s, latency_us, segment_max, lost;
};

struct judge {
	unsigned nnodes;
	const struct links_told *const *told;
	struct edge *edges;
	size_t count;
	struct end *ends;
	uint64_t *room;                 /* for a median of all ends, or of all links */
	unsigned *better, *unexplained; /* of each end */
	struct end usual;               /* medians of what ends have at best, see find_usual() */
	uint64_t low_bit_s;             /* one in RATE_OTHERS links has less */
	struct charges *ret;
};

static unsigned end_of(unsigned node, unsigned direction)
{
	return node * DIRECTIONS + direction;
}

static unsigned node_of(const struct edge *e, unsigned direction)
{
	return e->ends[direction] / DIRECTIONS;
}

static uint64_t lost_of(const struct link_told *l)
{
	return l->segments ? (uint64_t)l->resent * 1000000 / l->segments : 0;
}

/* --- what is usual in this network --- */

static void note_best(struct end *e, const struct link_told *l)
{
	bool first = e->done++ == 0;

	if (first || l->bit_s > e->bit_s)
		e->bit_s = l->bit_s;
	if (first || l->rtt_us < e->latency_us)
		e->latency_us = l->rtt_us;
	if (first || l->segment_max > e->segment_max)
		e->segment_max = l->segment_max;
	if (first || lost_of(l) < e->lost)
		e->lost = lost_of(l);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t median_of(uint64_t *at, size_t count, bool more_is_better)
{
	if (count == 0)
		return 0;
	qsort(at, count, sizeof *at, compare);
	return at[more_is_better ? count / 2 : (count - 1) / 2];
}

/* Of an even number of ends the better of the two in the middle: half of them may be bad. */
static uint64_t median(struct judge *j, size_t offset, bool more_is_better)
{
	size_t count = 0;

	for (unsigned i = 0; i < j->nnodes * DIRECTIONS; i++)
		if (j->ends[i].done > 0)
			memcpy(&j->room[count++], (const char *)&j->ends[i] + offset,
				sizeof *j->room);
	return median_of(j->room, count, more_is_better);
}

/* The best of six rates is no measure for the others on a busy machine, where they differ by a lot:
 * the median of all links is, but for those of ends that are slow at their best. */
static void find_usual_rate(struct judge *j)
{
	uint64_t best = median(j, offsetof(struct end, bit_s), true);
	size_t count = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct edge *e = &j->edges[i];

		if (e->told->state == LINKS_DONE && j->ends[e->ends[OUT]].bit_s >= best / 2 &&
			j->ends[e->ends[IN]].bit_s >= best / 2)
			j->room[count++] = e->told->bit_s;
	}
	j->usual.bit_s = count > 0 ? median_of(j->room, count, true) : best;
	j->low_bit_s = count > 0 ? j->room[count / RATE_OTHERS] : best;
}

static void find_usual(struct judge *j)
{
	for (size_t i = 0; i < j->count; i++)
		for (unsigned d = 0; d < DIRECTIONS && j->edges[i].told->state == LINKS_DONE; d++)
			note_best(&j->ends[j->edges[i].ends[d]], j->edges[i].told);
	find_usual_rate(j);
	j->usual.latency_us = median(j, offsetof(struct end, latency_us), false);
	j->usual.segment_max = median(j, offsetof(struct end, segment_max), true);
	j->usual.lost = median(j, offsetof(struct end, lost), false);
}

/* --- each link by itself --- */

/* That nobody listens is a firewall's word, if the process was there. */
static enum links_verdict of_refusal(const struct judge *j, const struct edge *e)
{
	const struct links_told *other = j->told[node_of(e, IN)];

	return other && other->met ? WRONG : NOT_KNOWN;
}

static enum links_verdict of_reach(const struct judge *j, const struct edge *e)
{
	switch (e->told->state) {
	case LINKS_UNTRIED:
	case LINKS_RESULTS:
		return NOT_KNOWN;
	case LINKS_UNREACHED:
		return WRONG;
	case LINKS_REFUSED:
		return of_refusal(j, e);
	case LINKS_SILENT:
	case LINKS_BROKEN:
	case LINKS_STALLED:
	case LINKS_BIG_LOST:
	case LINKS_DONE:
		break;
	}
	return FINE;
}

/* A partner whose time was over may have broken the connection. */
static enum links_verdict of_data(const struct edge *e)
{
	switch (e->told->state) {
	case LINKS_UNTRIED:
	case LINKS_UNREACHED:
	case LINKS_REFUSED:
	case LINKS_SILENT:
	case LINKS_BROKEN:
	case LINKS_RESULTS:
		return NOT_KNOWN;
	case LINKS_STALLED:
	case LINKS_BIG_LOST:
		return WRONG;
	case LINKS_DONE:
		break;
	}
	return FINE;
}

static bool is_slow(const struct judge *j, uint64_t bit_s)
{
	return bit_s < j->usual.bit_s / 100 * RATE_PERCENT && bit_s < j->low_bit_s;
}

static enum links_verdict wrong_if(bool wrong)
{
	return wrong ? WRONG : FINE;
}

static void judge_edge(const struct judge *j, struct edge *e)
{
	const struct link_told *l = e->told;
	const struct end *usual = &j->usual;

	e->is[REACH] = of_reach(j, e);
	e->is[DATA] = of_data(e);
	if (l->state != LINKS_DONE)
		return;
	e->is[LOSS] = wrong_if(l->resent >= LOST_LEAST && lost_of(l) > LOST_PER_MILLE * 1000 &&
		lost_of(l) > LOST_FACTOR * usual->lost);
	e->is[SEGMENT] = wrong_if(l->segment_max + SEGMENT_LESS < usual->segment_max);
	e->is[LATENCY] = wrong_if(l->rtt_us > LATENCY_FACTOR * usual->latency_us &&
		l->rtt_us > LATENCY_MORE_US + usual->latency_us);
	e->is[RATE] = wrong_if(is_slow(j, l->net_bit_s));
}

/* Whether a link is wrong beyond doubt, for one that no other link speaks for. */
static bool is_gross(const struct judge *j, const struct edge *e, enum links_kind k)
{
	const struct link_told *l = e->told;

	if (k == LOSS)
		return l->tries >= PAIR_TRIES && lost_of(l) > PAIR_LOST_PER_MILLE * 1000;
	if (k == RATE)
		return l->tries >= PAIR_TRIES &&
			l->net_bit_s < j->low_bit_s / 100 * PAIR_RATE_PERCENT;
	if (k == LATENCY)
		return l->rtt_us > PAIR_LATENCY_MORE_US + j->usual.latency_us;
	return true;
}

/* --- which end it is --- */

/* Whether more of a's links are wrong than of b's, by their share. */
static bool is_worse(const struct end *a, const struct end *b, enum links_kind k)
{
	return (uint64_t)a->wrong[k] * b->known[k] > (uint64_t)b->wrong[k] * a->known[k];
}

/* Of a rate much must be known, too. */
static bool is_mostly_wrong(const struct end *e, enum links_kind k)
{
	return e->wrong[k] * 100 > e->known[k] * percent_of[k] &&
		(k != RATE || e->known[k] * 2 >= e->links);
}

/* others: of its wrong links, those whose other end is better. Two are needed, as of one wrong link
 * nobody knows which end it is, and most of them, as else the others are as bad. */
static bool is_confirmed(const struct end *e, enum links_kind k, unsigned others)
{
	return others >= 2 && others * 2 >= e->wrong[k];
}

/* Whether a link may be wrong by chance. */
static bool is_noisy(enum links_kind k)
{
	return k > DATA;
}

static void count_wrong(struct judge *j, enum links_kind k)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct edge *e = &j->edges[i];

		for (unsigned d = 0; d < DIRECTIONS; d++) {
			j->ends[e->ends[d]].known[k] += e->is[k] != NOT_KNOWN;
			j->ends[e->ends[d]].wrong[k] += e->is[k] == WRONG;
		}
	}
}

/* Counts, for each end, those it meets by wrong links that may clear it of being bad: they are
 * better, and have no wrong link that a bad end does not explain. */
static void count_better(struct judge *j, enum links_kind k)
{
	size_t ends = (size_t)j->nnodes * DIRECTIONS;

	memset(j->better, 0, ends * sizeof *j->better);
	memset(j->unexplained, 0, ends * sizeof *j->unexplained);
	for (size_t i = 0; i < j->count; i++)
		for (unsigned d = 0; d < DIRECTIONS && j->edges[i].is[k] == WRONG; d++)
			j->unexplained[j->edges[i].ends[d]] +=
				!j->ends[j->edges[i].ends[!d]].bad[k];
	for (size_t i = 0; i < j->count; i++)
		for (unsigned d = 0; d < DIRECTIONS && j->edges[i].is[k] == WRONG; d++) {
			unsigned own = j->edges[i].ends[d], other = j->edges[i].ends[!d];

			j->better[own] += is_worse(&j->ends[own], &j->ends[other], k) &&
				(is_noisy(k) || j->unexplained[other] == 0);
		}
}

/* At first all are bad that may be; then those are not whose partners have more to explain, as in a
 * network in two halves, until the rest agrees. */
static void find_bad_ends(struct judge *j, enum links_kind k)
{
	bool changed = true;

	count_wrong(j, k);
	for (unsigned i = 0; i < j->nnodes * DIRECTIONS; i++)
		j->ends[i].bad[k] = is_mostly_wrong(&j->ends[i], k);
	while (changed) {
		changed = false;
		count_better(j, k);
		for (unsigned i = 0; i < j->nnodes * DIRECTIONS; i++) {
			struct end *e = &j->ends[i];
			bool bad = e->bad[k] && is_confirmed(e, k, j->better[i]);

			changed |= bad != e->bad[k];
			e->bad[k] = bad;
		}
	}
}

static bool node_is_bad(const struct judge *j, unsigned node, enum links_kind k)
{
	return j->ends[end_of(node, OUT)].bad[k] || j->ends[end_of(node, IN)].bad[k];
}

static bool node_is_named(const struct judge *j, unsigned node)
{
	for (int k = 0; k < KINDS; k++)
		if (node_is_bad(j, node, (enum links_kind)k))
			return true;
	return false;
}

/* Whatever is wrong with a node makes its links slow, too: that says nothing of their other ends
 * then, or one that two bad nodes have met would look slow. What is wrong with a link alone
 * explains nothing: behind a queue a slow node's packets wait or are lost, on some of its links. */
static void forget_explained(struct judge *j)
{
	for (size_t i = 0; i < j->count; i++) {
		struct edge *e = &j->edges[i];

		if (e->is[RATE] == WRONG &&
			(node_is_named(j, node_of(e, OUT)) || node_is_named(j, node_of(e, IN))))
			e->is[RATE] = NOT_KNOWN;
	}
}

/* --- what is said of it --- */

__attribute__((format(printf, 5, 6))) static void charge(struct judge *j, unsigned node,
	enum health health, const char *subject, const char *fmt, ...)
{
	struct finding f = { .health = health, .check = "links" };
	va_list ap;

	(void)snprintf(f.subject, sizeof f.subject, "%s", subject);
	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof f.text, fmt, ap);
	va_end(ap);
	charges_add(j->ret, node, &f);
}

struct links_shown {
	char text[32];
};

static struct links_shown show_rate(uint64_t bit_s)
{
	struct links_shown s;

	if (bit_s >= 1000000000)
		(void)snprintf(s.text, sizeof s.text, "%.3g Gbit/s", (double)bit_s / 1e9);
	else
		(void)snprintf(s.text, sizeof s.text, "%.3g Mbit/s", (double)bit_s / 1e6);
	return s;
}

static struct links_shown show_percent(uint64_t of_a_million)
{
	struct links_shown s;

	(void)snprintf(s.text, sizeof s.text, "%.2g %%", (double)of_a_million / 1e4);
	return s;
}

/* How many of a bad end's links that are wrong have this state. */
static unsigned count_state(const struct judge *j, unsigned end, enum links_result state)
{
	unsigned n = 0;

	for (size_t i = 0; i < j->count; i++)
		n += (j->edges[i].ends[OUT] == end || j->edges[i].ends[IN] == end) &&
			j->edges[i].told->state == state;
	return n;
}

/* What a node is charged with: one end's fault, or both ends' where they say the same. */
struct links_fault {
	unsigned node;
	bool out, in;
	const struct end *end; /* the one, or that of both which sends */
	const char *verb;      /* "sends" */
	unsigned wrong, known; /* of its links */
};

static void say_reach(struct judge *j, const struct links_fault *f)
{
	const char *way = f->out && f->in ? "to or from" : (f->in ? "to" : "from");
	bool refused = f->in && count_state(j, end_of(f->node, IN), LINKS_REFUSED) > 0;

	charge(j, f->node, HEALTH_BAD, "",
		"unreachable: no TCP connection %s it with %u of the %u nodes that were tried%s%s",
		way, f->wrong, f->known, refused ? ": refused, by a firewall?" : "",
		j->told[f->node] ? "" : "; it has told nothing itself");
}

static void say_data(struct judge *j, const struct links_fault *f)
{
	unsigned end = end_of(f->node, f->out ? OUT : IN);

	if (count_state(j, end, LINKS_BIG_LOST) * 2 >= f->wrong)
		charge(j, f->node, HEALTH_BAD, "",
			"large packets that it %s are lost, small ones get through: an MTU on the "
			"way is too small (with %u of %u nodes)",
			f->verb, f->wrong, f->known);
	else
		charge(j, f->node, HEALTH_BAD, "",
			"one-way: connections stand, but no data that it %s arrives (with %u of "
			"%u nodes)",
			f->verb, f->wrong, f->known);
}

static void say_loss(struct judge *j, const struct links_fault *f)
{
	uint64_t lost = f->end->resent * 1000000 / f->end->segments;

	charge(j, f->node, HEALTH_BAD, "",
		"%slossy: %s of what it %s is lost and sent again, with %u nodes, at up to %s; "
		"the medians of all nodes are %s and %s",
		is_slow(j, f->end->bit_s) ? "slow and " : "", show_percent(lost).text, f->verb,
		f->wrong, show_rate(f->end->bit_s).text, show_percent(j->usual.lost).text,
		show_rate(j->usual.bit_s).text);
}

static void say_segment(struct judge *j, const struct links_fault *f)
{
	unsigned mtu = j->told[f->node] ? j->told[f->node]->mtu : 0;
	char own[48] = "";

	if (mtu > 0)
		(void)snprintf(own, sizeof own, "; its interface's MTU is %u", mtu);
	charge(j, f->node, HEALTH_BAD, "",
		"small MTU: %" PRIu64 " bytes of data in a packet, where most nodes have %" PRIu64
		"%s",
		f->end->segment_max, j->usual.segment_max, own);
}

static void say_latency(struct judge *j, const struct links_fault *f)
{
	charge(j, f->node, HEALTH_BAD, "",
		"far away: a packet and its answer take at least %.3g ms, with %u nodes, at up "
		"to %s; the medians of all nodes are %.3g ms and %s",
		(double)f->end->latency_us / 1e3, f->wrong, show_rate(f->end->bit_s).text,
		(double)j->usual.latency_us / 1e3, show_rate(j->usual.bit_s).text);
}

static void say_rate(struct judge *j, const struct links_fault *f)
{
	char receives[64] = "";

	if (f->out && f->in)
		(void)snprintf(receives, sizeof receives, " and receives at most %s",
			show_rate(j->ends[end_of(f->node, IN)].bit_s).text);
	charge(j, f->node, HEALTH_BAD, "",
		"slow: it %s at most %s%s, with %u nodes; the median of all links is %s",
		f->out ? "sends" : "receives", show_rate(f->end->bit_s).text, receives, f->wrong,
		show_rate(j->usual.bit_s).text);
}

static void say_kind(struct judge *j, unsigned node, enum links_kind k)
{
	static void (*const say[KINDS])(struct judge *, const struct links_fault *) = {
		[REACH] = say_reach,
		[DATA] = say_data,
		[LOSS] = say_loss,
		[SEGMENT] = say_segment,
		[LATENCY] = say_latency,
		[RATE] = say_rate,
	};
	const struct end *ends = &j->ends[end_of(node, 0)];
	struct links_fault f = { .node = node, .out = ends[OUT].bad[k], .in = ends[IN].bad[k] };

	if (!f.out && !f.in)
		return;
	f.verb = f.out && f.in ? "sends or receives" : (f.out ? "sends" : "receives");
	f.end = &ends[f.out ? OUT : IN];
	f.wrong = f.end->wrong[k];
	f.known = f.end->known[k];
	say[k](j, &f);
}

/* Of a node that is cut off nothing else is worth a word. */
static void say_node(struct judge *j, unsigned node)
{
	bool cut = node_is_bad(j, node, REACH) || node_is_bad(j, node, DATA);

	for (int k = 0; k < KINDS; k++)
		if (k <= DATA || !cut)
			say_kind(j, node, (enum links_kind)k);
}

/* --- what is said of pairs --- */

/* The worst that is wrong with a link neither end of which is a bad node's; KINDS: nothing. */
static enum links_kind left_over(const struct judge *j, const struct edge *e)
{
	if (node_is_named(j, node_of(e, OUT)) || node_is_named(j, node_of(e, IN)))
		return KINDS;
	for (int k = 0; k < KINDS; k++)
		if (e->is[k] == WRONG && is_gross(j, e, (enum links_kind)k))
			return (enum links_kind)k;
	return KINDS;
}

static void describe(
	const struct judge *j, const struct edge *e, enum links_kind k, char *ret, size_t max)
{
	const struct link_told *l = e->told;
	const struct end *usual = &j->usual;

	if (k == REACH)
		(void)snprintf(ret, max, "no TCP connection");
	else if (k == DATA)
		(void)snprintf(ret, max, "%s",
			l->state == LINKS_BIG_LOST ? "large packets are lost" : "no data arrives");
	else if (k == LOSS)
		(void)snprintf(ret, max, "%s lost", show_percent(lost_of(l)).text);
	else if (k == SEGMENT)
		(void)snprintf(ret, max, "%u bytes in a packet (median: %" PRIu64 ")",
			l->segment_max, usual->segment_max);
	else if (k == LATENCY)
		(void)snprintf(ret, max, "%.3g ms (median: %.3g ms)", (double)l->rtt_us / 1e3,
			(double)usual->latency_us / 1e3);
	else
		(void)snprintf(ret, max, "%s (median: %s)", show_rate(l->bit_s).text,
			show_rate(usual->bit_s).text);
}

/* The same pair, the other way round. */
static const struct edge *way_back(const struct judge *j, const struct edge *e)
{
	for (size_t i = 0; i < j->count; i++)
		if (node_of(&j->edges[i], OUT) == node_of(e, IN) &&
			node_of(&j->edges[i], IN) == node_of(e, OUT))
			return &j->edges[i];
	return NULL;
}

static void say_pair(struct judge *j, const struct edge *e, enum links_kind k)
{
	const struct edge *back = way_back(j, e);
	enum links_kind k_back = back ? left_over(j, back) : KINDS;
	unsigned from = node_of(e, OUT), to = node_of(e, IN);
	const struct end *out = &j->ends[e->ends[OUT]], *in = &j->ends[e->ends[IN]];
	bool both_fine = out->wrong[k] < out->known[k] && in->wrong[k] < in->known[k];
	const char *whose =
		both_fine ? "both are fine with others" : "which of the two is bad can't be told";
	char subject[40], there[80], again[80];

	(void)snprintf(subject, sizeof subject, "link to node %u", to);
	describe(j, e, k, there, sizeof there);
	if (k_back == KINDS) {
		charge(j, from, HEALTH_UNKNOWN, subject, "%s; %s", there, whose);
		return;
	}
	describe(j, back, k_back, again, sizeof again);
	charge(j, from, HEALTH_UNKNOWN, subject, "%s; from there: %s; %s", there, again, whose);
}

static void say_pairs(struct judge *j)
{
	unsigned said = 0, more = 0, first = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct edge *e = &j->edges[i], *back;
		enum links_kind k = left_over(j, e);

		if (k == KINDS)
			continue;
		back = way_back(j, e);
		if (back && back < e && left_over(j, back) != KINDS)
			continue; /* said with the other direction */
		if (said++ < PAIRS_MAX) {
			say_pair(j, e, k);
			continue;
		}
		if (more++ == 0)
			first = node_of(e, OUT);
	}
	if (more > 0)
		charge(j, first, HEALTH_UNKNOWN, "links",
			"%u more pairs of nodes have a bad link: the network between groups of "
			"nodes?",
			more);
}

/* --- all of it --- */

/* Of nothing that was tried with this node anything is known. */
static bool is_unknown(const struct judge *j, unsigned node)
{
	const struct end *e = &j->ends[end_of(node, OUT)];

	return e[OUT].known[REACH] + e[IN].known[REACH] == 0;
}

static int begin(struct judge *j)
{
	size_t ends = (size_t)j->nnodes * DIRECTIONS;

	j->edges = calloc(j->nnodes + 1UL, LINKS_ROUNDS_MAX * sizeof *j->edges);
	j->ends = calloc(ends + 1, sizeof *j->ends);
	j->room = calloc(j->nnodes + 1UL, LINKS_ROUNDS_MAX * sizeof *j->room);
	j->better = calloc(ends + 1, sizeof *j->better);
	j->unexplained = calloc(ends + 1, sizeof *j->unexplained);
	if (!j->edges || !j->ends || !j->room || !j->better || !j->unexplained)
		return -ENOMEM;
	for (unsigned node = 0; node < j->nnodes; node++) {
		const struct links_told *t = j->told[node];

		for (unsigned i = 0; t && i < t->count; i++)
			if (t->at[i].node < j->nnodes && t->at[i].node != node)
				j->edges[j->count++] = (struct edge){
					.ends = { end_of(node, OUT), end_of(t->at[i].node, IN) },
					.told = &t->at[i]
				};
	}
	return 0;
}

static int judge_all(struct judge *j)
{
	find_usual(j);
	for (size_t i = 0; i < j->count; i++) {
		struct edge *e = &j->edges[i];

		judge_edge(j, e);
		for (unsigned d = 0; d < DIRECTIONS; d++) {
			struct end *end = &j->ends[e->ends[d]];

			end->links++;
			end->segments += e->is[LOSS] == WRONG ? e->told->segments : 0;
			end->resent += e->is[LOSS] == WRONG ? e->told->resent : 0;
		}
	}
	for (int k = 0; k < KINDS; k++) {
		if (k == RATE)
			forget_explained(j);
		find_bad_ends(j, (enum links_kind)k);
	}
	for (unsigned node = 0; node < j->nnodes; node++) {
		say_node(j, node);
		if (j->told[node] && j->nnodes > 1 && is_unknown(j, node))
			charge(j, node, HEALTH_UNKNOWN, "",
				"its links could not be measured: no partner was there in time");
	}
	say_pairs(j);
	if (j->usual.lost > ALL_LOST_PER_MILLE * 1000)
		charge(j, 0, HEALTH_UNKNOWN, "all links",
			"half of all nodes lose at least %s of what they send: the network is "
			"overloaded, or a switch is bad",
			show_percent(j->usual.lost).text);
	return j->ret->failed ? -ENOMEM : 0;
}

int links_judge(unsigned nnodes, const struct links_told *const *told, struct charges *ret)
{
	struct judge j = { .nnodes = nnodes, .told = told, .ret = ret };
	int rc = begin(&j);

	if (rc == 0)
		rc = judge_all(&j);
	free(j.edges);
	free(j.ends);
	free(j.room);
	free(j.better);
	free(j.unexplained);
	return rc;
}
