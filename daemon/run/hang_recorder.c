/* hang_recorder.c - see hang_recorder.h */
#include "daemon/run/hang_recorder.h"

#include "daemon/output/front.h"

enum { FILE_MAX = 64 << 20 }; /* 512 ranks for some minutes, 8 for hours */

void hang_record(struct hang_recorder *r, const struct trace_step *s)
{
	if (!r->on || r->full || (s->kind == TRACE_MOVED && s->at_ms == r->moved_ms))
		return;
	if (s->kind == TRACE_MOVED)
		r->moved_ms = s->at_ms;
	trace_add(&r->lines, s);
}

void hang_record_judgement(struct hang_recorder *r, const struct detector *d, uint64_t at_ms)
{
	if (r->on && !r->full)
		trace_add_awaits(&r->lines, d);
	hang_record(r, &(struct trace_step){ .kind = TRACE_JUDGE, .at_ms = at_ms });
}

void hang_record_news(
	struct hang_recorder *r, const struct detector *d, enum detector_news news, uint64_t at_ms)
{
	if (r->on && !r->full)
		trace_add_news(&r->lines, d, news, at_ms);
}

void hang_recorder_flush(struct hang_recorder *r)
{
	if (r->lines.len > 0)
		output_looks(r->output, text_string(&r->lines), r->lines.len);
	r->bytes += r->lines.len;
	r->full = r->bytes > FILE_MAX;
	text_done(&r->lines);
}
