/* verdicts.h - what other checks of nodes say, and mean by it. */
#ifndef LAUNCHD_DAEMON_CHECK_VERDICTS_H
#define LAUNCHD_DAEMON_CHECK_VERDICTS_H

#include <stddef.h>

#include "daemon/check/finding.h"

/* What a command has left. */
struct said {
	const char *out; /* its stdout and stderr, each with a NUL behind it */
	size_t out_len;
	const char *err;
	size_t err_len;
	int status; /* as waitpid(2) has it */
};

/* Its verdict: that in JSON as NVIDIA's Health Validation writes it, where there is one
 * ("overall_severity" of CRITICAL is bad, of UNKNOWN unknown, all others are good); else by its
 * exit code, for which all but 0 is bad, with the sentence of LBNL's NHC ("ERROR:  nhc:  Health
 * check failed:  ...") or the last line that it has written. 126, 127 and a signal mean that
 * nothing was checked. */
enum health verdict_of(const struct said *s, char *text, size_t size);

#endif
