/* run_merge.c - see run_merge.h */
#include "daemon/run/run_merge.h"

#include "daemon/cluster/credit.h"
#include "daemon/cluster/message.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/output/merge/merge.h"
#include "daemon/run/state.h"

/* For the rest of a line that has begun, before lines of the other stream may come between. */
enum { PATIENCE_MS = 1000 };

static struct merge *merged(const struct run *r)
{
	return output_merge(r->in->output);
}

static void send_lines(struct run *r, bool wait)
{
	char lines[MESSAGE_LOG_MAX];
	size_t room, len;
	int stream;

	while ((room = member_log_room(&r->member)) > 0) {
		room = room < sizeof lines ? room : sizeof lines;
		len = merge_next(merged(r), wait, lines, room, &stream);
		if (len == 0)
			break;
		(void)uv_timer_stop(&r->merging);
		member_log(&r->member, stream, lines, len);
	}
}

static void on_patience_over(uv_timer_t *t)
{
	send_lines(t->data, false);
}

/* Sends what can be sent, if this is a node that does. */
static void on_send(struct run *r)
{
	if (!member_merges(&r->member)) {
		merge_keep(merged(r));
		return;
	}
	send_lines(r, true);
	if (merge_waits(merged(r)) && !uv_is_active((uv_handle_t *)&r->merging)) {
		uv_update_time(&r->loop);
		(void)uv_timer_start(&r->merging, on_patience_over, PATIENCE_MS, 0);
	}
	if (r->state == RUN_OVER && merge_is_over(merged(r)))
		member_log_end(&r->member);
}

void run_merge_init(struct run *r)
{
	(void)uv_timer_init(&r->loop, &r->merging); /* can't fail */
	r->merging.data = r;
}

void run_merge_start(struct run *r)
{
	unsigned others = r->plan->nnodes - 1;

	if (member_merges(&r->member)) {
		r->merge = MERGE_SENDS;
		merge_send(merged(r));
	} else if (r->plan->output.merge && r->plan->node_rank == 0 && r->merge == MERGE_NONE) {
		r->merge = MERGE_HEARS;
		if (merge_expect(merged(r), r->plan->nnodes, credit_for(others)) < 0)
			bus_note(r->in->bus, NOTE_WARNING,
				"out of memory: other nodes' output is not shown here");
	}
}

void run_merge_last(struct run *r)
{
	if (r->merge == MERGE_SENDS)
		merge_last(merged(r));
}

void run_merge_close(struct run *r)
{
	uv_close((uv_handle_t *)&r->merging, NULL);
}

void run_merge_lines(void *run)
{
	struct run *r = run;
	unsigned node;
	size_t len;

	if (r->merge == MERGE_SENDS)
		on_send(r);
	while (merge_taken(merged(r), &node, &len))
		member_log_taken(&r->member, node, len);
}

void run_merge_hear(void *run, unsigned node, int stream, const char *at, size_t len)
{
	struct run *r = run;
	size_t kept = merge_hear(merged(r), node, stream, at, len);

	if (kept < len)
		member_log_taken(&r->member, node, len - kept);
}
