/* nccl_ops.c - see nccl_ops.h */
#include "daemon/nodecheck/cuda/nccl_ops.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "common/failure.h"
#include "common/monotonic.h"
#include "daemon/nodecheck/cuda/cuda_ops.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/os/dlib.h"

_Static_assert(sizeof(ncclUniqueId) == COLLECTIVE_ID_SIZE, "of all versions");

enum { LEAVE_MS = 5000 };

struct nccl {
	__typeof__(ncclGetUniqueId) *make_id;
	__typeof__(ncclCommInitRankConfig) *init;
	__typeof__(ncclCommGetAsyncError) *async_error;
	__typeof__(ncclCommFinalize) *finalize;
	__typeof__(ncclCommAbort) *abort;
	__typeof__(ncclAllReduce) *all_reduce;
	__typeof__(ncclGetErrorString) *error_string;
};

static const struct dlib_symbol symbols[] = {
	{ "ncclGetUniqueId", offsetof(struct nccl, make_id), NULL },
	{ "ncclCommInitRankConfig", offsetof(struct nccl, init), NULL },
	{ "ncclCommGetAsyncError", offsetof(struct nccl, async_error), NULL },
	{ "ncclCommFinalize", offsetof(struct nccl, finalize), NULL },
	{ "ncclCommAbort", offsetof(struct nccl, abort), NULL },
	{ "ncclAllReduce", offsetof(struct nccl, all_reduce), NULL },
	{ "ncclGetErrorString", offsetof(struct nccl, error_string), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib library = {
	.name = "NCCL",
	.file = "libnccl.so.2",
	.hint = "2.14 or later; NCCL_HOME says where it is, as site-packages/nvidia/nccl",
	.symbols = symbols,
	.adds = "checks of links between GPUs",
	.home = "NCCL_HOME",
};

static struct nccl nccl;

struct collective {
	ncclComm_t comm;
	cudaEvent_t begun, ended;
};
static struct collective only; /* one in a process: NCCL reads its environment once */

static int load(struct failure *why)
{
	void *handle;

	return nccl.init ? 0 : dlib_open(&library, NULL, &nccl, &handle, why);
}

/* Faults of the GPU, the system or another rank are what is looked for; those of the call are ours.
 */
static int failed(ncclResult_t r, const char *call, struct failure *why)
{
	if (r == ncclSuccess)
		return 0;
	return failure_set(why, r == ncclInvalidArgument || r == ncclInvalidUsage ? -EINVAL : -EIO,
		"%s: %s", call, nccl.error_string(r));
}

/* Neither NCCL nor a stream has a descriptor to wait for together: one has to look again and again.
 */
static void pause_briefly(void)
{
	struct timespec t = { .tv_nsec = 200000 };

	(void)nanosleep(&t, NULL);
}

/* Waits until what was begun on a communicator that doesn't block is done: "success" may say no
 * more than that it was begun. */
static int settle(ncclComm_t comm, ncclResult_t begun, const char *call, int64_t until_ms,
	struct failure *why)
{
	ncclResult_t state = begun == ncclSuccess ? ncclInProgress : begun;

	while (state == ncclInProgress) {
		ncclResult_t r = nccl.async_error(comm, &state);

		if (r != ncclSuccess)
			return failed(r, "ncclCommGetAsyncError", why);
		if (state != ncclInProgress)
			break;
		if (monotonic_ms() >= until_ms)
			return failure_set(why, -ETIMEDOUT, "%s did not end in time", call);
		pause_briefly();
	}
	return failed(state, call, why);
}

static int make_id(unsigned char ret[COLLECTIVE_ID_SIZE], struct failure *why)
{
	ncclUniqueId id;
	int rc = failed(nccl.make_id(&id), "ncclGetUniqueId", why);

	if (rc == 0)
		memcpy(ret, &id, sizeof id);
	return rc;
}

static int join(const unsigned char id[COLLECTIVE_ID_SIZE], unsigned rank, unsigned ranks,
	uint64_t limit_ms, struct collective **ret, struct failure *why)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	int64_t until_ms = monotonic_ms() + (int64_t)limit_ms;
	ncclUniqueId unique;
	ncclResult_t r;
	int rc;

	memcpy(&unique, id, sizeof unique);
	config.blocking = 0;
	r = nccl.init(&only.comm, (int)ranks, unique, (int)rank, &config);
	*ret = only.comm ? &only : NULL; /* also of one that isn't whole, which is aborted */
	rc = settle(only.comm, r, "ncclCommInitRankConfig", until_ms, why);
	if (rc == 0)
		rc = cuda_failed(cudaEventCreate(&only.begun), "cudaEventCreate", why);
	if (rc == 0)
		rc = cuda_failed(cudaEventCreate(&only.ended), "cudaEventCreate", why);
	return rc;
}

/* Waits for the stream, with an eye on the communicator. */
static int await(struct collective *c, int64_t until_ms, struct failure *why)
{
	for (;;) {
		cudaError_t error = cudaEventQuery(c->ended);
		ncclResult_t state = ncclSuccess;
		int rc;

		if (error != cudaErrorNotReady)
			return cuda_failed(error, "ncclAllReduce", why);
		rc = failed(nccl.async_error(c->comm, &state), "ncclCommGetAsyncError", why);
		if (rc == 0)
			rc = failed(state, "ncclAllReduce", why);
		if (rc < 0)
			return rc;
		if (monotonic_ms() >= until_ms)
			return failure_set(why, -ETIMEDOUT, "ncclAllReduce did not end in time");
		pause_briefly();
	}
}

static int all_reduce(struct collective *c, const void *from, void *to, size_t bytes,
	unsigned times, uint64_t limit_ms, uint64_t *ret_ns, struct failure *why)
{
	int64_t until_ms = monotonic_ms() + (int64_t)limit_ms;
	float ms = 0;
	int rc = cuda_failed(/* what is not written shows */
		cudaMemsetAsync(to, 0xa5, bytes, cuda_stream()), "cudaMemset", why);

	if (rc == 0)
		rc = cuda_failed(cudaEventRecord(c->begun, cuda_stream()), "cudaEventRecord", why);
	for (unsigned i = 0; rc == 0 && i < times; i++)
		rc = settle(c->comm,
			nccl.all_reduce(from, to, bytes / sizeof(uint32_t), ncclUint32, ncclSum,
				c->comm, cuda_stream()),
			"ncclAllReduce", until_ms, why);
	if (rc == 0)
		rc = cuda_failed(cudaEventRecord(c->ended, cuda_stream()), "cudaEventRecord", why);
	if (rc == 0)
		rc = await(c, until_ms, why);
	if (rc == 0)
		rc = cuda_failed(
			cudaEventElapsedTime(&ms, c->begun, c->ended), "cudaEventElapsedTime", why);
	if (rc == 0)
		*ret_ns = (uint64_t)((double)ms * 1e6);
	return rc;
}

/* What a rank has still to send goes out in ncclCommFinalize(); the rest goes with the process. */
static void leave(struct collective *c, bool failed_before)
{
	struct failure why = { 0 };

	if (!c)
		return;
	if (failed_before)
		(void)nccl.abort(c->comm);
	else
		(void)settle(c->comm, nccl.finalize(c->comm), "ncclCommFinalize",
			monotonic_ms() + LEAVE_MS, &why);
}

const struct collective_ops nccl_ops = {
	.load = load,
	.make_id = make_id,
	.join = join,
	.all_reduce = all_reduce,
	.leave = leave,
};
