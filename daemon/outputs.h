/* outputs.h - what a run writes, looked at and made before its first process is started. A file
 * system that hangs is given up after PATIENCE_MOST_MS: see os/rehearsal.h. */
#ifndef LAUNCHD_DAEMON_OUTPUTS_H
#define LAUNCHD_DAEMON_OUTPUTS_H

struct failure;
struct plan;
struct settings;

/* Whether what is written later can be written; makes nothing. */
int outputs_check(const struct settings *s, const struct plan *p, struct failure *why);

/* Makes the log directory; and looks whether those who may not wait for a file system, the guard
 * and the event loop, can make what they will. */
int outputs_prepare(const struct settings *s, const struct plan *p, struct failure *why);

#endif
