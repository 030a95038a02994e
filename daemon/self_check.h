/* self_check.h - --self-check: what this machine has of what launchd can use, for people. */
#ifndef LAUNCHD_DAEMON_SELF_CHECK_H
#define LAUNCHD_DAEMON_SELF_CHECK_H

struct settings;
struct text;

/* Adds a screen of it. Loads libraries and starts a process that ends at once, so it is for a
 * launcher that does nothing else. What it can't find out it says; it fails at nothing but memory,
 * which the text tells. No secret is in it. wrong: an error in the settings; "": none. */
void self_check(
	const struct settings *s, const char *const *env, const char *wrong, struct text *out);

#endif
