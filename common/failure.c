/* failure.c - see failure.h */
#include "common/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(struct failure *why, int code, const char *fmt, ...)
{
	va_list ap;

	if (why->code != 0)
		return code;
	why->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(why->text, sizeof why->text, fmt, ap);
	va_end(ap);
	for (char *p = why->text; *p; p++) /* what users wrote must not break the line */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return code;
}

int failure_oom(struct failure *why)
{
	return failure_set(why, -ENOMEM, "out of memory");
}

int failure_not_started(struct failure *why, int code, const char *what)
{
	return failure_set(why, code, "can't start %s: %s%s", what, strerror(-code),
		code == -EAGAIN ? ": no more processes and threads are allowed here (ulimit -u, or "
				  "pids.max of a control group)" :
				  "");
}

int failure_exit_code(const struct failure *why)
{
	switch (-why->code) {
	case 0:
		return 0;
	case EINVAL:
		return 2;
	case ENOENT:
		return 127;
	case EACCES:
	case ENOEXEC:
		return 126;
	default:
		return 1;
	}
}
