/* script.h - the training script and its arguments, from the command line or from a file. Pure. */
#ifndef LAUNCHD_CONFIG_SCRIPT_H
#define LAUNCHD_CONFIG_SCRIPT_H

#include "config/settings.h"

/* Adds the words of one line `args`. Those of a higher level replace those of a lower one; of a
 * lower one they are only checked. -EINVAL: text ends inside quotes, or a comment was meant. */
int script_put_args(struct settings *s, const char *text, struct origin from, struct failure *why);

/* Once all sources are read: decides between the command line's script and a file's. A script
 * replaces the script and the arguments of all weaker sources. */
void script_settle(struct settings *s);

#endif
