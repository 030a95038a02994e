/* check_words.c - see check_words.h */
#include "daemon/run/check_words.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/check/checkup.h"
#include "daemon/check/phases.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"

enum { BAD_SHOWN = 16, DOUBTS_SHOWN = 4 };

/* As the user numbers it: a node that is alone in its check may have any rank. */
static unsigned checked_rank(const struct check_words *w, unsigned node)
{
	return !w->together ? w->node_rank : node;
}

static const char *checked_host(const struct check_words *w, unsigned node)
{
	return w->input->hosts ? w->input->hosts[node] : w->hostname;
}

static void name_add(const struct check_words *w, unsigned node, struct text *out)
{
	node_name_add(out, checked_rank(w, node), checked_host(w, node));
}

static void say_bad(const struct check_words *w, unsigned node, const struct checkup_node *n)
{
	struct text t = { 0 };

	name_add(w, node, &t);
	text_add(&t, " is bad: ");
	finding_add(&t, &n->reason);
	if (n->bad > 1)
		text_printf(&t, " (and %u more)", n->bad - 1);
	bus_note(w->bus, NOTE_WARNING, text_string(&t));
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

static void exclude_host(struct text *list, const char *host)
{
	if (*host && !is_listed(list, host))
		text_printf(list, "%s%s", list->len ? "," : "", host);
}

static void keep_first(const struct check_words *w, unsigned node, const struct checkup_node *n)
{
	struct text t = { 0 };

	finding_add(&t, &n->reason);
	w->bad->node = node;
	(void)snprintf(w->bad->host, sizeof w->bad->host, "%s", checked_host(w, node));
	text_fit(w->bad->reason, sizeof w->bad->reason, text_string(&t));
	text_done(&t);
}

/* How many are bad; says which. */
static unsigned take_bad(const struct check_words *w, const struct checkup_verdict *a)
{
	struct text list = { 0 };
	unsigned count = 0;
	char more[64];

	for (unsigned i = 0; i < w->input->nnodes; i++) {
		if (a->node[i].health != HEALTH_BAD)
			continue;
		if (count == 0)
			keep_first(w, i, &a->node[i]);
		if (count++ < BAD_SHOWN)
			say_bad(w, i, &a->node[i]);
		exclude_host(&list, checked_host(w, i));
	}
	if (count > BAD_SHOWN) {
		(void)snprintf(more, sizeof more, "%u more nodes are bad", count - BAD_SHOWN);
		bus_note(w->bus, NOTE_WARNING, more);
	}
	if (count > 0)
		w->bad->exclude = arena_strdup(w->arena, text_string(&list));
	text_done(&list);
	return count;
}

static void doubt_add(const struct check_words *w, const struct checkup_doubt *d, struct text *out)
{
	if (d->nodes == 1)
		name_add(w, d->first, out);
	else
		text_printf(out, "%u nodes", d->nodes);
	text_add(out, ": ");
	finding_add(out, &d->finding);
}

static void doubts_add(
	const struct check_words *w, const struct checkup_verdict *a, struct text *out)
{
	unsigned shown = a->doubts < DOUBTS_SHOWN ? a->doubts : DOUBTS_SHOWN;

	for (unsigned i = 0; i < shown; i++) {
		text_add(out, i ? "; " : "; unknown: ");
		doubt_add(w, &a->doubt[i], out);
	}
	if (a->doubts + a->doubts_left_out > shown)
		text_printf(out, "; %u more", a->doubts + a->doubts_left_out - shown);
}

static void tell_ended(const struct check_words *w, const struct checkup_verdict *a, unsigned bad)
{
	unsigned unknown = 0;

	for (unsigned i = 0; i < w->input->nnodes; i++)
		unknown += a->judged == 0 || a->node[i].health == HEALTH_UNKNOWN ? 1 : 0;
	bus_emit(w->bus,
		&(struct event){
			.kind = EVENT_CHECK_ENDED,
			.check_ended = { w->input->attempt, w->input->nnodes, bad, unknown,
				uv_hrtime() - w->began_ns, w->bad->exclude },
		});
}

/* One line for all that is not bad. */
static void say_rest(const struct check_words *w, const struct checkup_verdict *a, unsigned bad)
{
	unsigned nnodes = w->input->nnodes;
	struct text t = { 0 };

	text_printf(&t, "checked %u node%s (", nnodes, nnodes == 1 ? "" : "s");
	phases_add(&t, w->phases);
	text_add(&t, ") in ");
	span_add(&t, w->began_ns, uv_hrtime());
	if (bad)
		text_printf(&t, ": %u bad", bad);
	else
		text_add(&t, a->doubts ? ": none is bad" : ": all good");
	doubts_add(w, a, &t);
	if (!w->together && w->nnodes > 1)
		text_add(&t, "; without the other nodes' launchers each node is checked alone");
	bus_note(w->bus,
		a->mute                                                     ? NOTE_WARNING :
			w->phases == 1U << PHASE_GATE && !bad && !a->doubts ? NOTE_VERBOSE :
									      NOTE_INFO,
		text_string(&t));
	text_done(&t);
}

void check_words_unable(const struct bus *bus, const char *what, const char *why)
{
	struct text t = { 0 };

	text_printf(&t, "%s: %s", what, why);
	bus_note(bus, NOTE_WARNING, text_string(&t));
	text_done(&t);
}

unsigned check_words_verdict(const struct check_words *w, const struct checkup_verdict *v)
{
	unsigned bad = take_bad(w, v);

	if (v->judged > 0)
		say_rest(w, v, bad);
	tell_ended(w, v, bad);
	return bad;
}
