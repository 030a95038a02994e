/* failure_record.c - see failure_record.h */
#include "daemon/report/failure_record.h"

#include <inttypes.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/evidence.h"
#include "daemon/job/phrases.h"
#include "daemon/report/report_input.h"
#include "daemon/report/said.h"

struct reply {
	const char *message, *callstack;
	int64_t timestamp;
	int error_code;
};

/* torch writes the time as text. */
static void add(const struct reply *r, struct text *out)
{
	struct json j = { .out = out };
	struct text seconds = { 0 };

	text_printf(&seconds, "%" PRId64, r->timestamp);
	json_object_begin(&j, NULL);
	json_object_begin(&j, "message");
	json_string(&j, "message", r->message);
	json_object_begin(&j, "extraInfo");
	json_string(&j, "py_callstack", r->callstack);
	json_string(&j, "timestamp", text_string(&seconds));
	json_object_end(&j);
	json_number(&j, "errorCode", r->error_code);
	json_object_end(&j);
	json_object_end(&j);
	text_add(out, "\n");
	out->failed = out->failed || seconds.failed;
	text_done(&seconds);
}

static int error_code(const struct outcome *failed, int exit_code)
{
	if (failed && failed->end.how == ENDED_EXIT)
		return failed->end.value;
	return failed && failed->end.how == ENDED_SIGNAL ? -failed->end.value : exit_code;
}

void failure_record(const struct report_input *in, const char *verdict, int exit_code,
	int64_t now_s, struct text *out)
{
	const struct outcome *culprit = result_culprit(in->result);
	const struct outcome *failed = cause_failed(&in->result->cause);
	/* the message is who timed out waiting for which rank, whatever either wrote */
	bool is_timeout = in->result->cause.kind == CAUSE_TIMEOUT;
	const struct error_record *said = culprit && !is_timeout ? in->record : NULL;
	const char *lines = failed ? said_last_lines(in) : NULL;
	bool recorded = said && (said->message || said->traceback);
	struct reply r = {
		.message = recorded && said->message ? said->message : verdict,
		.timestamp = recorded && said->timestamp > 0 ?
			said->timestamp :
			moment_seconds(in->result, cause_ns(in->result)),
		.error_code = error_code(failed, exit_code),
	};

	/* torchrun shows the call stack alone, so it says what the message says */
	r.callstack = recorded && said->traceback ? said->traceback :
		!recorded && lines && *lines ? arena_printf(in->arena, "%s\n%s", verdict, lines) :
					       r.message;
	if (r.timestamp == 0)
		r.timestamp = now_s;
	add(&r, out);
	if (arena_failed(in->arena))
		out->failed = true;
}

void failure_record_own(const char *sentence, int exit_code, int64_t now_s, struct text *out)
{
	const struct reply r = { sentence, sentence, now_s, exit_code };

	add(&r, out);
}
