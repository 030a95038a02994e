/* allowance.h - whether workers can be given the attributes that are asked for: --rlimit, --nice
 * and
 * --oom-score-adj. */
#ifndef LAUNCHD_DAEMON_FACTS_ALLOWANCE_H
#define LAUNCHD_DAEMON_FACTS_ALLOWANCE_H

struct failure;
struct settings;

/* Workers have our privileges, so what this process may do they may. Where no rule alone tells (a
 * capability counts only in the first user namespace, seccomp forbids what it likes), it is tried
 * on this process and taken back at once. -EINVAL: it isn't allowed, with a sentence that names the
 * setting, the value and the limit; each is told where all failures are wanted. */
int allowance_check(const struct settings *s, struct failure *why);

#endif
