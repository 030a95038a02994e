/* run_merge.c - --merge-logs: lines between the output thread and the nodes; see run_parts.h */
#include "daemon/run/run_parts.h"

#include "daemon/cluster/credit.h"
#include "daemon/cluster/message.h"

/* For the rest of a line that has begun, before lines of the other stream may come between. */
enum { PATIENCE_MS = 1000 };

static void send_lines(struct run *r, bool wait)
{
	char lines[MESSAGE_LOG_MAX];
	size_t room, len;
	int stream;

	while ((room = member_log_room(&r->member)) > 0) {
		room = room < sizeof lines ? room : sizeof lines;
		len = output_next_lines(r->in->output, wait, lines, room, &stream);
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
		output_keep_lines(r->in->output);
		return;
	}
	send_lines(r, true);
	if (output_lines_wait(r->in->output) && !uv_is_active((uv_handle_t *)&r->merging)) {
		uv_update_time(&r->loop);
		(void)uv_timer_start(&r->merging, on_patience_over, PATIENCE_MS, 0);
	}
	if (r->state == RUN_OVER && output_lines_over(r->in->output))
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
		output_send_lines(r->in->output);
	} else if (r->plan->output.merge && r->plan->node_rank == 0 && r->merge == MERGE_NONE) {
		r->merge = MERGE_HEARS;
		if (output_hear_nodes(r->in->output, r->plan->nnodes, credit_for(others)) < 0)
			bus_note(r->in->bus, NOTE_WARNING,
				"no memory for other nodes' lines: they are lost");
	}
}

void run_merge_last(struct run *r)
{
	if (r->merge == MERGE_SENDS)
		output_last_lines(r->in->output);
}

void run_merge_stop(struct run *r)
{
	uv_close((uv_handle_t *)&r->merging, NULL);
}

void run_merge_lines(struct run *r)
{
	unsigned node;
	size_t len;

	if (r->merge == MERGE_SENDS)
		on_send(r);
	while (output_taken(r->in->output, &node, &len))
		member_log_taken(&r->member, node, len);
}

void run_merge_hear(struct run *r, unsigned node, int stream, const char *at, size_t len)
{
	size_t kept = output_hear(r->in->output, node, stream, at, len);

	if (kept < len)
		member_log_taken(&r->member, node, len - kept);
}
