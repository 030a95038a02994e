/* rank_stack.h - `launchctl stack`: where a worker is, as far as this user may look. */
#ifndef LAUNCHD_DAEMON_CTL_RANK_STACK_H
#define LAUNCHD_DAEMON_CTL_RANK_STACK_H

struct ctl_command;
struct ctl_link;
struct failure;

/* Prints the state of each thread of the rank's worker, in the kernel too where that may be read,
 * and what py-spy or gdb say, if one of them is installed. -ESRCH: the rank does not run here;
 * errors of ctl_link_ask(). */
int rank_stack(struct ctl_link *l, const struct ctl_command *c, struct failure *why);

#endif
