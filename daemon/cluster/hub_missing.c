/* hub_missing.c - for whom the job waits, and for how long; see hub.h */
#include "daemon/cluster/hub.h"

#include <errno.h>

#include "common/text.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/wire.h"

enum {
	FIRST_NOTE_MS = 10000, /* until those who wait are told for whom */
	NEXT_NOTE_MS = 60000,
};

static void say(struct hub *h, bool warning, const struct text *t)
{
	h->member->on->say(h->member->owner, warning, text_string(t));
}

/* Whom the job waits for; after the join timeout it does not any more. */
static void on_waiting(uv_timer_t *t)
{
	struct hub *h = t->data;
	const struct member_config *c = h->member->config;
	uint64_t now = uv_now(h->member->loop), left;
	struct text line = { 0 };
	struct wire_out w = { 0 };

	text_printf(&line, "%u of %u nodes are here: ", h->joined, h->job.nnodes);
	job_missing(&h->job, &line);
	left = h->deadline_ms > now ? h->deadline_ms - now : 0;
	if (left > 0) {
		text_add(&line, h->joined + 1 == h->job.nnodes ? " is missing" : " are missing");
		say(h, false, &line);
		message_put_text(&w, text_string(&line));
		hub_tell(h, MESSAGE_WAITING, w.at, w.len, NULL);
		wire_out_done(&w);
		(void)uv_timer_start(t, on_waiting, left < NEXT_NOTE_MS ? left : NEXT_NOTE_MS, 0);
	} else {
		text_printf(&line, " did not come within %llu s (--join-timeout)",
			(unsigned long long)(c->join_timeout_ms / 1000));
		if (c->required) {
			hub_refuse(h, REFUSED_TIMEOUT, -ETIMEDOUT, text_string(&line));
		} else {
			text_printf(&line, "; the job starts all the same, and will not know if %s",
				h->joined + 1 == h->job.nnodes ? "it fails" : "they fail");
			say(h, true, &line);
			hub_begin(h);
		}
	}
	text_done(&line);
}

void hub_wait(struct hub *h)
{
	uint64_t timeout = h->member->config->join_timeout_ms;

	if (h->begun || h->over)
		return;
	h->deadline_ms = uv_now(h->member->loop) + timeout;
	(void)uv_timer_start(
		&h->clock, on_waiting, timeout < FIRST_NOTE_MS ? timeout : FIRST_NOTE_MS, 0);
}
