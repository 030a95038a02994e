/* pmix_leave.h - the end of a client of PMIx, in a process of its own. */
#ifndef LAUNCHD_DAEMON_OS_PMIX_LEAVE_H
#define LAUNCHD_DAEMON_OS_PMIX_LEAVE_H

#include <pmix.h>

/* Of the struct dlib of each client: Open MPI 5 that lies in a directory of its own has its own
 * PMIx there, and says where. It is to be preferred: it is of the server's version. */
#define PMIX_LIBRARY \
	.name = "libpmix", .file = "libpmix.so.2", \
	.hint = "Debian's package is libpmix2; PMIx 3 or newer is needed", .home = "OPAL_PREFIX"

/* PMIx_Finalize, such that the server has noted the end before this process hears of its answer and
 * goes. No other file above the three may be a socket of the internet's. Once in a process. */
pmix_status_t pmix_leave(__typeof__(PMIx_Finalize) *finalize);

#endif
