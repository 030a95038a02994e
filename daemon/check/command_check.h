/* command_check.h - --check-command: a check of the user's, of which it is understood what it says.
 */
#ifndef LAUNCHD_DAEMON_CHECK_COMMAND_CHECK_H
#define LAUNCHD_DAEMON_CHECK_COMMAND_CHECK_H

struct quick_input;
struct tasks;

void command_check_add(const struct quick_input *in, struct tasks *all);

#endif
