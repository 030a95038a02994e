/* rank_logs.h - `launchctl logs`: what workers have written last, and what they write. */
#ifndef LAUNCHD_DAEMON_CTL_RANK_LOGS_H
#define LAUNCHD_DAEMON_CTL_RANK_LOGS_H

struct ctl_command;
struct ctl_link;
struct failure;

/* Prints the last lines of the ranks that the command names, or of all of this node, and where it
 * follows them, what they write from then on, until the job ends. Errors of ctl_link_ask();
 * -ENODATA: there is no log file that could be followed. */
int rank_logs(struct ctl_link *l, const struct ctl_command *c, struct failure *why);

#endif
