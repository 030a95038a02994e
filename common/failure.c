/* failure.c - see failure.h */
#include "common/failure.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/arena.h"
#include "common/text.h"

__attribute__((format(printf, 4, 0))) static void set(
	struct failure *why, int code, enum failure_class class, const char *fmt, va_list ap)
{
	char text[2 * PATH_MAX];

	if (why->code != 0)
		return;
	why->code = code;
	why->class = class;
	(void)vsnprintf(text, sizeof text, fmt, ap);
	text_fit(why->text, sizeof why->text, text);
	for (char *p = why->text; *p; p++) /* what users wrote must not break the line */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
}

int failure_set(struct failure *why, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(why, code, FAILURE_OTHER, fmt, ap);
	va_end(ap);
	return code;
}

int failure_usage(struct failure *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(why, -EINVAL, FAILURE_USAGE, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int failure_program(struct failure *why, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set(why, code, code == -ENOENT ? FAILURE_NOT_FOUND : FAILURE_NOT_EXECUTABLE, fmt, ap);
	va_end(ap);
	return code;
}

int failure_oom(struct failure *why)
{
	return failure_set(why, -ENOMEM, "out of memory");
}

int failure_not_started(struct failure *why, int code, const char *what)
{
	return failure_set(why, code, "can't start %s: %s%s", what, strerror(-code),
		code == -EAGAIN ?
			": no more processes and threads are allowed here (ulimit -u, or pids.max of the control group)" :
			"");
}

int failure_copy(struct failure *why, const struct failure *from)
{
	struct failures *all = why->all;

	if (why->code == 0)
		*why = *from;
	why->all = all;
	return from->code;
}

/* Two readings of one file find the same in it. */
static bool is_among(const struct failures *all, const char *text)
{
	for (size_t i = 0; i < all->texts.count; i++)
		if (strcmp(all->texts.at[i], text) == 0)
			return true;
	return false;
}

bool failure_go_on(int rc, struct failure *why)
{
	struct failures *all = why->all;

	if (rc >= 0 || why->code == 0) /* it has been asked about before */
		return true;
	if (!all || why->class == FAILURE_OTHER || all->texts.count == FAILURES_MAX)
		return false;
	if (!is_among(all, why->text))
		vec_add(all->arena, &all->texts, arena_strdup(all->arena, why->text));
	*why = (struct failure){ .all = all };
	return true;
}

int failure_exit_code(const struct failure *why)
{
	static const int codes[] = {
		[FAILURE_OTHER] = 1,
		[FAILURE_USAGE] = 2,
		[FAILURE_NOT_EXECUTABLE] = 126,
		[FAILURE_NOT_FOUND] = 127,
	};

	return why->code == 0 ? 0 : codes[why->class];
}
