/* sources.c - the table of sources; see source.h */
#include "daemon/blackbox/source.h"

#include "daemon/blackbox/ask_by_signal.h"
#include "daemon/blackbox/ask_gpus.h"
#include "daemon/blackbox/ask_memory.h"
#include "daemon/blackbox/ask_python.h"
#include "daemon/blackbox/ask_ras.h"
#include "daemon/blackbox/ask_recorder.h"
#include "daemon/blackbox/ask_threads.h"

/* Where there is no room for all, the first ones are asked. */
const struct blackbox_source blackbox_sources[] = {
	{ .name = "memory", .limit_ms = 3000, .of_node = ask_memory },
	{ .name = "room", .limit_ms = 3000, .of_node = ask_room },
	{ .name = "nvml", .limit_ms = 5000, .of_node = ask_gpus },
	{ .name = "xid", .limit_ms = 1000, .is_wanted = has_xids, .of_node = ask_xids },
	{ .name = "nccl_ras", .limit_ms = 6000, .of_node = ask_ras },
	{ .name = "flight_recorder",
		.limit_ms = 10000,
		.is_wanted = has_recorder_files,
		.of_node = ask_recorder },
	{ .name = "stack_signal",
		.limit_ms = 5000,
		.is_wanted = has_stack_signal,
		.of_worker = ask_by_signal },
	{ .name = "threads", .limit_ms = 2000, .of_worker = ask_threads },
	{ .name = "python", .limit_ms = 10000, .of_worker = ask_py_spy },
	{ .name = NULL },
};
