/* allowance.c - see allowance.h */
#include "daemon/facts/allowance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "config/rlimits.h"
#include "config/settings.h"

static int refuse_limit(const struct settings *s, const struct rlimit_asked *l, rlim_t most,
	int error, struct failure *why)
{
	struct text asked = { 0 }, limit = { 0 };
	int rc;

	rlimits_add(l, &asked);
	rlimits_add_value(most, &limit);
	rc = failure_usage(why,
		"%s: %s is above the hard limit of %s, which this process may not raise (%s): ask for "
		"no more, or raise it where launchd is started (limits.conf, systemd's Limit...=, "
		"docker --ulimit)",
		settings_label(s, SET_RLIMIT), text_string(&asked), text_string(&limit),
		strerror(error));
	text_done(&asked);
	text_done(&limit);
	return rc;
}

static int check_limit(const struct settings *s, const struct rlimit_asked *l, struct failure *why)
{
	struct rlimit now, tried;

	if (getrlimit(l->resource, &now) < 0)
		return failure_usage(why, "%s: %s is not a limit of this kernel's: %s",
			settings_label(s, SET_RLIMIT), l->name, strerror(errno));
	if (l->value.rlim_max <= now.rlim_max)
		return 0;
	tried = (struct rlimit){ now.rlim_cur, l->value.rlim_max };
	if (setrlimit(l->resource, &tried) < 0)
		return refuse_limit(s, l, now.rlim_max, errno, why);
	(void)setrlimit(l->resource, &now); /* lower is always allowed */
	return 0;
}

static int check_limits(const struct settings *s, struct failure *why)
{
	struct rlimits limits = { 0 };

	if (!settings_given(s, SET_RLIMIT))
		return 0;
	if (rlimits_parse(settings_text(s, SET_RLIMIT), settings_label(s, SET_RLIMIT), s->arena,
		    &limits, why) < 0)
		return why->code;
	for (size_t i = 0; i < limits.count; i++)
		if (!failure_go_on(check_limit(s, &limits.at[i], why), why))
			return why->code;
	return 0;
}

static int check_nice(const struct settings *s, struct failure *why)
{
	int asked = (int)settings_number(s, SET_NICE), now;

	if (!settings_given(s, SET_NICE))
		return 0;
	errno = 0;
	now = getpriority(PRIO_PROCESS, 0);
	if (errno != 0 || asked >= now) /* upwards is always allowed */
		return 0;
	if (setpriority(PRIO_PROCESS, 0, asked) < 0)
		return failure_usage(why,
			"%s: %d is below the launcher's nice value of %d, and this process may not go "
			"lower (%s): that takes CAP_SYS_NICE or a hard limit \"nice\" (ulimit -He)",
			settings_label(s, SET_NICE), asked, now, strerror(errno));
	(void)setpriority(PRIO_PROCESS, 0, now);
	return 0;
}

static int check_oom_score_adj(const struct settings *s, struct failure *why)
{
	static const char path[] = "/proc/self/oom_score_adj";
	int asked = (int)settings_number(s, SET_OOM_SCORE_ADJ);
	char before[16] = "", text[16];
	const char *label;
	autoclose fd = -1;
	ssize_t len;

	if (!settings_given(s, SET_OOM_SCORE_ADJ))
		return 0;
	label = settings_label(s, SET_OOM_SCORE_ADJ);
	fd = open(path, O_RDWR | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, before, sizeof before - 1);
	if (len < 0)
		return failure_usage(why,
			"%s: %s: %s: it is set there, so it needs a /proc of this PID namespace that may "
			"be written",
			label, path, strerror(errno));
	if (asked >= (int)strtol(before, NULL, 10)) /* upwards is always allowed */
		return 0;
	(void)snprintf(text, sizeof text, "%d", asked);
	/* back upwards is allowed again */
	if (write(fd, text, strlen(text)) < 0 || write(fd, before, (size_t)len) < 0)
		return failure_usage(why,
			"%s: %d is below the launcher's %ld, and this process may not go lower "
			"(%s): that takes CAP_SYS_RESOURCE",
			label, asked, strtol(before, NULL, 10), strerror(errno));
	return 0;
}

int allowance_check(const struct settings *s, struct failure *why)
{
	if (!failure_go_on(check_limits(s, why), why) || !failure_go_on(check_nice(s, why), why) ||
		!failure_go_on(check_oom_score_adj(s, why), why))
		return why->code;
	return 0;
}
