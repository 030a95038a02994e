/* hub_missing.c - for whom the job waits, and for how long; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/job/phrases.h"
#include "daemon/net/wire.h"

enum {
	FIRST_NOTE_MS = 10000, /* until those who wait are told for whom */
	NEXT_NOTE_MS = 60000,
	NAMES_SHOWN = 16,
};

/* Who is here, and who is not. */
struct presence {
	struct arena scratch;
	const char **names; /* of those who are, by rank; the ones without come last */
	unsigned *awaited;  /* ranks that nobody has yet */
	unsigned here, missing, awaited_count;
	bool ranked; /* all have ranks: the awaited ones are those of the missing nodes */
};

/* -ENOMEM; ret is to be done with all the same. */
static int look(const struct hub *h, struct presence *ret)
{
	unsigned nnodes = h->job.nnodes, unranked = 0;
	struct presence p = { .missing = nnodes - h->joined };
	struct caller **list = hub_unranked(h, &p.scratch, &unranked);

	p.names = arena_alloc(&p.scratch, nnodes * sizeof *p.names);
	p.awaited = arena_alloc(&p.scratch, nnodes * sizeof *p.awaited);
	p.ranked = unranked == 0 && h->member->config->node_rank_known;
	for (unsigned i = 0; i < nnodes && p.names && p.awaited; i++) {
		if (h->job.nodes[i].state == NODE_JOINED)
			p.names[p.here++] = h->job.nodes[i].about.name;
		else
			p.awaited[p.awaited_count++] = i;
	}
	for (unsigned i = 0; i < unranked && p.names; i++)
		p.names[p.here++] = list[i]->about.name;
	*ret = p;
	return arena_failed(&p.scratch) ? -ENOMEM : 0;
}

static void add_here(struct text *t, const struct presence *p)
{
	text_add(t, p->here == 1 ? "; here is " : "; here are ");
	for (unsigned i = 0; i < p->here; i++) {
		text_add(t, i > 0 ? ", " : "");
		if (i == NAMES_SHOWN) {
			text_printf(t, "... (%u in all)", p->here);
			return;
		}
		text_add_shown(t, p->names[i], strlen(p->names[i]));
	}
}

static void add_missing(struct text *t, const struct presence *p, unsigned nnodes)
{
	text_printf(
		t, "%u of %u nodes %s missing", p->missing, nnodes, p->missing == 1 ? "is" : "are");
	if (p->ranked) {
		text_add(t, ": ");
		numbers_add(t, "node", p->awaited, p->awaited_count);
	}
	add_here(t, p);
}

static void add_late(struct text *t, const struct presence *p, const struct hub *h)
{
	char seconds[NUM_SECONDS_SIZE];

	num_print_seconds(h->member->config->join_timeout_ms, seconds);
	if (p->ranked)
		numbers_add(t, "node", p->awaited, p->awaited_count);
	else
		text_printf(t, "%u of %u nodes", p->missing, h->job.nnodes);
	text_printf(t, " did not come within %s s (--join-timeout)", seconds);
	add_here(t, p);
}

static void tell_missing(struct hub *h, const struct presence *p)
{
	struct text line = { 0 };
	struct wire_out w = { 0 };

	add_missing(&line, p, h->job.nnodes);
	member_say(h->member, false, text_string(&line));
	message_put_text(&w, text_string(&line));
	hub_tell(h, MESSAGE_WAITING, w.at, w.len, NULL);
	wire_out_done(&w);
	text_done(&line);
}

/* They are not waited for any more. */
static void stop_waiting(struct hub *h, const struct presence *p)
{
	struct text line = { 0 };

	add_late(&line, p, h);
	if (h->member->config->required) {
		hub_refuse(h, -ETIMEDOUT, text_string(&line));
	} else {
		text_printf(&line, "; the job starts all the same, and will not know if %s",
			p->missing == 1 ? "it fails" : "they fail");
		member_say(h->member, true, text_string(&line));
		hub_begin(h);
	}
	text_done(&line);
}

static uint64_t left_ms(const struct hub *h)
{
	uint64_t now = uv_now(h->member->loop), until = h->member->deadline_ms;

	return until > now ? until - now : 0;
}

static void on_waiting(uv_timer_t *t)
{
	struct hub *h = t->data;
	uint64_t left = left_ms(h);
	struct presence p;

	if (look(h, &p) < 0) {
		hub_refuse(h, -ENOMEM, "out of memory");
	} else if (left > 0) {
		tell_missing(h, &p);
		(void)uv_timer_start(t, on_waiting, left < NEXT_NOTE_MS ? left : NEXT_NOTE_MS, 0);
	} else {
		stop_waiting(h, &p);
	}
	arena_done(&p.scratch);
}

void hub_wait(struct hub *h)
{
	uint64_t left;

	if (h->begun || h->over)
		return;
	left = left_ms(h);
	(void)uv_timer_start(&h->clock, on_waiting, left < FIRST_NOTE_MS ? left : FIRST_NOTE_MS, 0);
}
