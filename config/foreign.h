/* foreign.h - options of other launchers, and which of ours does it. Pure. */
#ifndef LAUNCHD_CONFIG_FOREIGN_H
#define LAUNCHD_CONFIG_FOREIGN_H

#include <stddef.h>

/* What to use in place of such an option, as the end of a sentence; name has len bytes and no
 * dashes, and '-' and '_' in it are the same. NULL: it isn't known. */
const char *foreign_hint(const char *name, size_t len);

#endif
