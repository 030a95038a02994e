/* xid.h - Xids: what NVIDIA's driver says that a GPU has met, by number. */
#ifndef LAUNCHD_DAEMON_CHECK_XID_H
#define LAUNCHD_DAEMON_CHECK_XID_H

#include <stdint.h>

enum { XIDS_MAX = 64, LEVELS_MAX = 64, XID_WHERE_SIZE = 32 };
enum { XID_GPU_UNKNOWN = 0xffff };

struct xid_seen {
	unsigned gpu; /* XID_GPU_UNKNOWN: NVML gave a handle that it had not given before */
	uint64_t xid;
};

/* "GPU 3" */
void xid_seen_where(const struct xid_seen *x, char ret[XID_WHERE_SIZE]);

enum xids_state { XIDS_STARTING, XIDS_WATCHING, XIDS_FAILED }; /* FAILED: it watches no more */

/* What a child keeps while a job runs, in memory that is shared. Begins as { 0 }. */
struct xids {
	volatile unsigned state; /* of enum xids_state */
	volatile unsigned count; /* beyond XIDS_MAX: some are not kept */
	char text[160];          /* why it FAILED; what it had seen stands */
	/* Memory of so many GPUs that was in use when it began, in bytes. */
	volatile unsigned levels;
	uint64_t level[LEVELS_MAX];
	struct xid_seen at[XIDS_MAX];
};

/* In the parent: the child has ended, for a reason that it has not told itself. */
void xids_end(struct xids *x, const char *why);

/* A GPU's memory that was in use when the watch began, in bytes; 0: that is not known. x: NULL,
 * where nobody watches. */
uint64_t xids_level(const struct xids *x, unsigned gpu);

/* In a child: reads how much memory is in use, waits for Xids on the GPUs that `visible`
 * shows (as CUDA_VISIBLE_DEVICES; NULL: all), and keeps them until it is killed. Returns only where
 * that can't be. */
void xid_watch(struct xids *x, const char *visible);

/* What one means for the node. The application's own are never the node's. */
enum xid_kind { XID_OTHER, XID_APPLICATION, XID_FATAL };
enum xid_kind xid_kind(uint64_t xid);

#endif
