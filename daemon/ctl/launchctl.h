/* launchctl.h - the command that asks and steers a job: launchctl(1). */
#ifndef LAUNCHD_DAEMON_CTL_LAUNCHCTL_H
#define LAUNCHD_DAEMON_CTL_LAUNCHCTL_H

/* Where argv is launchctl's, under that name or as `launchd ctl`: the words behind it; else NULL.
 */
const char *const *launchctl_words(const char *const *argv);

/* Does what the words say. The exit code: 0; 1: it was refused or failed; 2: the words are wrong;
 * 3: there is no such job. */
int launchctl(const char *const *words, const char *const *env);

#endif
