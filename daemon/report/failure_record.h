/* failure_record.h - the job's failure in the words of torch's error files, for whoever started
 * launchd with TORCHELASTIC_ERROR_FILE: a scheduler, or the launcher in whose worker it runs. Pure.
 */
#ifndef LAUNCHD_DAEMON_REPORT_FAILURE_RECORD_H
#define LAUNCHD_DAEMON_REPORT_FAILURE_RECORD_H

#include <stdint.h>

struct report_input;
struct text;

/* Adds {"message": {"message", "extraInfo": {"py_callstack", "timestamp"}, "errorCode"}}: what the
 * culprit's error file says, or else the sentence `verdict` with its last lines. errorCode is a
 * worker's exit code or, as with torchrun, a negative signal; else exit_code, the job's. now_s:
 * where the time of the failure is not known. */
void failure_record(const struct report_input *in, const char *verdict, int exit_code,
	int64_t now_s, struct text *out);

/* The same of launchd's own failure, in a sentence. */
void failure_record_own(const char *sentence, int exit_code, int64_t now_s, struct text *out);

#endif
