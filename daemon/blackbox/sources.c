/* sources.c - the table of sources; see source.h */
#include "daemon/blackbox/source.h"

#include "daemon/blackbox/ask_threads.h"

const struct blackbox_source blackbox_sources[] = {
	{ .name = "threads", .limit_ms = 2000, .of_worker = ask_threads },
	{ .name = NULL },
};
