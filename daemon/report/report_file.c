/* report_file.c - see report_file.h */
#include "daemon/report/report_file.h"

#include "common/failure.h"
#include "common/text.h"
#include "daemon/os/replace.h"

int report_write(
	const char *asked_by, const char *path, const char *bytes, size_t len, struct failure *why)
{
	int rc = file_replace_last(path, bytes, len, REPLACE_DURABLY);

	return rc < 0 ? failure_set(why, rc, "%s: %s can't be written: %s", asked_by, path,
				file_error(rc)) :
			0;
}

int report_write_text(
	const char *asked_by, const char *path, struct text *text, struct failure *why)
{
	int rc = text->failed ? failure_oom(why) :
				report_write(asked_by, path, text_string(text), text->len, why);

	text_done(text);
	return rc;
}
