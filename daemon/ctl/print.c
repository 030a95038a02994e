/* print.c - see print.h */
#include "daemon/ctl/print.h"

#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"

int print_done(struct text *out, struct failure *why)
{
	int rc = out->failed ? failure_oom(why) :
			       fd_write_all(STDOUT_FILENO, text_string(out), out->len);

	if (rc < 0 && !out->failed)
		(void)failure_set(why, rc, "stdout: %s", strerror(-rc));
	text_done(out);
	return rc;
}
