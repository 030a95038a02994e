/* attempts.c - what is said between two attempts; see report.h */
#include "daemon/report/report.h"

#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/plan/plan.h"
#include "daemon/report/error_file.h"
#include "daemon/report/nodes.h"
#include "daemon/report/others.h"
#include "daemon/report/said.h"

enum { EXCEPTION_MAX = 400, NS_PER_MS = 1000000 };

/* The first line of it; the rest is in the report of the last attempt, if that dies of it, too. */
static void add_exception(const char *message, struct text *out)
{
	size_t len = strcspn(message, "\r\n");

	text_add(out, "launchd: warning: exception: ");
	text_add_shown(out, message, len > EXCEPTION_MAX ? EXCEPTION_MAX : len);
	text_add(out, len > EXCEPTION_MAX ? " ...\n" : "\n");
}

/* The others that may have been first. */
static void add_together(const struct result *r, struct text *out)
{
	size_t count = 0;

	for (size_t i = 0; i < r->count; i++)
		count += worker_is_together(r, &r->outcomes[i]);
	if (count)
		text_printf(out, "launchd: warning: %zu other worker%s failed at the same time\n",
			count, count == 1 ? "" : "s");
}

void report_restart_text(const struct report_input *in, uint64_t delay_ms, struct text *out)
{
	const struct result *r = in->result;
	bool failed = r->cause.kind == CAUSE_FAILURE;

	text_add(out, "launchd: warning: ");
	if (failed) {
		culprit_add(in, out);
		text_add(out, "; ");
	}
	text_printf(out, "restart %u of at most %u starts ", in->attempt + 1, in->max_restarts);
	if (delay_ms) {
		text_add(out, "in ");
		span_add(out, 0, delay_ms * NS_PER_MS);
	} else {
		text_add(out, "now");
	}
	text_add(out, "\n");
	if (failed && in->record && in->record->message)
		add_exception(in->record->message, out);
	if (failed)
		said_add_log(in, "warning", out);
	if (failed)
		add_together(r, out);
}
