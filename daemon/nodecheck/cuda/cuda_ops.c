/* cuda_ops.c - see cuda_ops.h */
#include "daemon/nodecheck/cuda/cuda_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/nodecheck/cuda/kernels.h"
#include "daemon/os/nvidia.h"

enum { PLAIN_ROWS = 256 };

/* The oldest driver that runs a program of this CUDA. */
#if CUDART_VERSION >= 13000
#define OLDEST_DRIVER "R580"
#elif CUDART_VERSION >= 12000
#define OLDEST_DRIVER "R525"
#else
#define OLDEST_DRIVER "R450"
#endif

static cudaStream_t stream;
static cudaEvent_t begun, ended;
static struct kernel_wrong *wrong_there; /* on the GPU */

cudaStream_t cuda_stream(void)
{
	return stream;
}

/* What CUDA says of a GPU that can't be trusted any more; a fault of ours would look like some of
 * it, but our kernels are the same on all. */
static int code_of(cudaError_t error)
{
	static const cudaError_t at_fault[] = { cudaErrorECCUncorrectable,
		cudaErrorNvlinkUncorrectable, cudaErrorHardwareStackError,
		cudaErrorIllegalInstruction, cudaErrorMisalignedAddress, cudaErrorInvalidPc,
		cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorLaunchTimeout,
		cudaErrorSystemNotReady, cudaErrorUnknown };

	if (error == cudaErrorMemoryAllocation)
		return -ENOMEM;
	if (error == cudaErrorDevicesUnavailable)
		return -EBUSY;
	for (size_t i = 0; i < sizeof at_fault / sizeof *at_fault; i++)
		if (error == at_fault[i])
			return -EIO;
	return -ENOTSUP;
}

int cuda_failed(cudaError_t error, const char *call, struct failure *why)
{
	if (error == cudaSuccess)
		return 0;
	return failure_set(why, code_of(error), "%s: %s (%s)", call, cudaGetErrorString(error),
		cudaGetErrorName(error));
}

static int count_gpus(unsigned *ret, struct failure *why)
{
	int count = 0, driver = 0;
	cudaError_t error;

	nvidia_make_no_nodes();
	(void)cudaDriverGetVersion(&driver); /* 0 where there is none */
	error = cudaGetDeviceCount(&count);
	*ret = 0;
	if (driver == 0) {
		(void)failure_set(
			why, -ENODEV, "no NVIDIA driver here: libcuda.so.1 can't be loaded");
		return 0;
	}
	if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
		(void)failure_set(why, -ENODEV, "the driver shows this process no GPU");
		return 0;
	}
	if (error == cudaErrorInsufficientDriver) {
		(void)failure_set(why, -ENODEV,
			"the driver is of CUDA %d.%d, and this program needs one of CUDA %d or above (" OLDEST_DRIVER
			"): build it with the CUDA of the driver",
			driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000);
		return 0;
	}
	if (error == cudaSuccess)
		*ret = (unsigned)count;
	return cuda_failed(error, "cudaGetDeviceCount", why);
}

static int open_gpu(unsigned device, struct gpu_about *ret, struct failure *why)
{
	struct cudaDeviceProp properties;
	size_t free_bytes = 0, total_bytes = 0;
	int rc = cuda_failed(cudaSetDevice((int)device), "cudaSetDevice", why);

	if (rc == 0)
		rc = cuda_failed(cudaGetDeviceProperties(&properties, (int)device),
			"cudaGetDeviceProperties", why);
	if (rc == 0 && properties.major * 10 + properties.minor < OLDEST_GPU)
		rc = failure_set(why, -ENOTSUP,
			"%s is of compute capability %d.%d, and CUDA %d, which this program is built "
			"with, serves %d.%d and above: build it with an older CUDA",
			properties.name, properties.major, properties.minor, CUDART_VERSION / 1000,
			OLDEST_GPU / 10, OLDEST_GPU % 10);
	if (rc == 0)
		rc = cuda_failed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
			"cudaStreamCreate", why);
	if (rc == 0)
		rc = cuda_failed(cudaEventCreate(&begun), "cudaEventCreate", why);
	if (rc == 0)
		rc = cuda_failed(cudaEventCreate(&ended), "cudaEventCreate", why);
	if (rc == 0)
		rc = cuda_failed(
			cudaMalloc((void **)&wrong_there, sizeof *wrong_there), "cudaMalloc", why);
	if (rc == 0)
		rc = cuda_failed(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo", why);
	if (rc < 0)
		return rc;
	*ret = (struct gpu_about){ .free_bytes = free_bytes, .total_bytes = total_bytes };
	(void)snprintf(ret->name, sizeof ret->name, "%.63s", properties.name);
	(void)snprintf(ret->bus, sizeof ret->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
		(unsigned)properties.pciBusID & 0xff, (unsigned)properties.pciDeviceID & 0xff);
	return 0;
}

static int alloc(size_t bytes, void **ret, struct failure *why)
{
	cudaError_t error = cudaMalloc(ret, bytes);

	if (error == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError(); /* else the next call would return it */
		return -ENOMEM;
	}
	return cuda_failed(error, "cudaMalloc", why);
}

static void give_back(void *at)
{
	(void)cudaFree(at);
}

static void begin(void)
{
	(void)cudaEventRecord(begun, stream);
}

/* Waits for what was started since begin(), and for its errors. */
static int finish(const char *what, uint64_t *ret_ns, struct failure *why)
{
	float ms = 0;
	int rc = cuda_failed(cudaGetLastError(), what, why); /* of the start */

	if (rc == 0)
		rc = cuda_failed(cudaEventRecord(ended, stream), what, why);
	if (rc == 0)
		rc = cuda_failed(cudaEventSynchronize(ended), what, why);
	if (rc == 0)
		rc = cuda_failed(cudaEventElapsedTime(&ms, begun, ended), what, why);
	if (rc == 0)
		*ret_ns = (uint64_t)((double)ms * 1e6);
	return rc;
}

static int forget_wrong(struct failure *why)
{
	struct kernel_wrong none = { 0, ~0ULL };

	return cuda_failed(
		cudaMemcpyAsync(wrong_there, &none, sizeof none, cudaMemcpyHostToDevice, stream),
		"cudaMemcpy", why);
}

/* size: of a value, which is read again where it was wrong. */
static int fetch_wrong(const void *at, size_t size, struct gpu_wrong *ret, struct failure *why)
{
	struct kernel_wrong wrong;
	int rc = cuda_failed(cudaMemcpy(&wrong, wrong_there, sizeof wrong, cudaMemcpyDeviceToHost),
		"cudaMemcpy", why);

	*ret = (struct gpu_wrong){ 0 };
	if (rc < 0 || wrong.count == 0)
		return rc;
	ret->count = wrong.count;
	ret->first = wrong.first;
	return cuda_failed(cudaMemcpy(&ret->found, (const char *)at + wrong.first * size, size,
				   cudaMemcpyDeviceToHost),
		"cudaMemcpy", why);
}

static int fill(void *at, size_t bytes, uint64_t seed, uint64_t *ret_ns, struct failure *why)
{
	begin();
	kernel_fill(at, bytes / sizeof(uint64_t), seed, stream);
	return finish("writing memory", ret_ns, why);
}

static int check(void *at, size_t bytes, uint64_t seed, struct gpu_wrong *ret_wrong,
	uint64_t *ret_ns, struct failure *why)
{
	int rc = forget_wrong(why);

	if (rc < 0)
		return rc;
	begin();
	kernel_check(at, bytes / sizeof(uint64_t), seed, wrong_there, stream);
	rc = finish("reading memory", ret_ns, why);
	if (rc == 0)
		rc = fetch_wrong(at, sizeof(uint64_t), ret_wrong, why);
	ret_wrong->expected = known_word(seed, ret_wrong->first);
	return rc;
}

static int copy(void *to, const void *from, size_t bytes, unsigned times, uint64_t *ret_ns,
	struct failure *why)
{
	int rc = 0;

	begin();
	for (unsigned i = 0; rc == 0 && i < times; i++)
		rc = cuda_failed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
			"cudaMemcpy", why);
	return rc < 0 ? rc : finish("copying memory", ret_ns, why);
}

/* One product, and a look at it. What stood there before is overwritten, or it would pass again. */
static int multiply_once(const void *a, const void *b, float *c, unsigned size,
	struct known_inner_sums sums, uint64_t *ret_ns, struct failure *why)
{
	size_t bytes = (size_t)size * size * sizeof *c;
	int rc = cuda_failed(cudaMemsetAsync(c, 0xff, bytes, stream), "cudaMemset", why);

	if (rc < 0)
		return rc;
	begin();
	kernel_product(a, b, c, size, stream);
	rc = finish("multiplying matrices", ret_ns, why);
	if (rc == 0)
		kernel_check_product(c, size, size, sums, wrong_there, stream);
	return rc;
}

static int multiply_plain(const void *a, const void *b, float *c, unsigned size,
	struct known_inner_sums sums, struct failure *why)
{
	unsigned rows = size < PLAIN_ROWS ? size : PLAIN_ROWS;
	size_t bytes = (size_t)rows * size * sizeof *c;
	int rc = cuda_failed(cudaMemsetAsync(c, 0xff, bytes, stream), "cudaMemset", why);
	uint64_t ns;

	if (rc < 0)
		return rc;
	begin();
	kernel_product_plain(a, b, c, size, rows, stream);
	kernel_check_product(c, size, rows, sums, wrong_there, stream);
	return finish("multiplying matrices without tensor units", &ns, why);
}

static int multiply(void *room, unsigned size, unsigned times, struct gpu_wrong *ret_wrong,
	uint64_t *ret_ns, struct failure *why)
{
	size_t elements = (size_t)size * size;
	char *a = room, *b = a + elements * 2;
	float *c = (float *)(void *)(b + elements * 2);
	struct known_inner_sums sums = known_inner_sums(size);
	uint64_t all = 0, ns = 0;
	int rc = forget_wrong(why);

	kernel_operands(a, b, size, stream);
	for (unsigned i = 0; rc == 0 && i < times; i++) {
		rc = multiply_once(a, b, c, size, sums, &ns, why);
		all += ns;
	}
	if (rc == 0)
		rc = multiply_plain(a, b, c, size, sums, why);
	if (rc == 0)
		rc = fetch_wrong(c, sizeof *c, ret_wrong, why);
	if (rc == 0 && ret_wrong->count) {
		float expected = (float)known_product(sums, (unsigned)(ret_wrong->first / size),
			(unsigned)(ret_wrong->first % size));

		/* the element may have been made anew since */
		ret_wrong->expected = 0;
		memcpy(&ret_wrong->expected, &expected, sizeof expected);
	}
	*ret_ns = all;
	return rc;
}

static int fill_share(void *at, size_t bytes, unsigned rank, struct failure *why)
{
	uint64_t ns;

	begin();
	kernel_fill_share(at, bytes / sizeof(uint32_t), rank, stream);
	return finish("writing memory", &ns, why);
}

static int check_sum(
	void *at, size_t bytes, unsigned ranks, struct gpu_wrong *ret_wrong, struct failure *why)
{
	uint64_t ns;
	int rc = forget_wrong(why);

	if (rc < 0)
		return rc;
	begin();
	kernel_check_sum(at, bytes / sizeof(uint32_t), ranks, wrong_there, stream);
	rc = finish("reading memory", &ns, why);
	if (rc == 0)
		rc = fetch_wrong(at, sizeof(uint32_t), ret_wrong, why);
	ret_wrong->expected = known_sum(ranks, ret_wrong->first);
	return rc;
}

const struct gpu_ops cuda_ops = {
	.serves = "Built with CUDA " CUDA_NAME ": for drivers " OLDEST_DRIVER
		  " and later, and GPUs of compute capability " OLDEST_GPU_NAME " and above.",
	.count = count_gpus,
	.open = open_gpu,
	.alloc = alloc,
	.free = give_back,
	.fill = fill,
	.check = check,
	.copy = copy,
	.multiply = multiply,
	.fill_share = fill_share,
	.check_sum = check_sum,
};
