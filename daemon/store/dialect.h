/* dialect.h - which dialect a version of torch speaks to its store. Pure. */
#ifndef LAUNCHD_DAEMON_STORE_DIALECT_H
#define LAUNCHD_DAEMON_STORE_DIALECT_H

#include "daemon/store/request.h"

/* From a version as torch/version.py has it ("2.15.0+cu132", "1.13.1", "2.3.0a0+git1a2b3c"), the
 * dialect of clients that do not start as those of 2.2 do: NONE for 2.2 and above, which all do.
 * -EINVAL: not a version; -ENOTSUP: older than 1.13, which was never tried. */
int store_dialect_of(const char *version, enum store_dialect *ret);

#endif
