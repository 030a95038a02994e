/* kernels.h - what runs on the GPU, as C calls it: each starts a kernel on a stream and waits for
 * nothing. Sizes in elements; all pointers are the GPU's. */
#ifndef LAUNCHD_DAEMON_NODECHECK_CUDA_KERNELS_H
#define LAUNCHD_DAEMON_NODECHECK_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/nodecheck/known.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On the GPU: how many values were wrong, and the lowest index of one. Begins with 0 and ~0. */
struct kernel_wrong {
	unsigned long long count, first;
};

/* Of known.h: fills memory, and looks at it. */
void kernel_fill(uint64_t *at, size_t words, uint64_t seed, cudaStream_t stream);
void kernel_check(const uint64_t *at, size_t words, uint64_t seed, struct kernel_wrong *wrong,
	cudaStream_t stream);
void kernel_fill_share(uint32_t *at, size_t words, uint32_t rank, cudaStream_t stream);
void kernel_check_sum(const uint32_t *at, size_t words, uint32_t ranks, struct kernel_wrong *wrong,
	cudaStream_t stream);

/* a and b: size x size of half precision, a by rows, b by columns. size is a multiple of 64. */
void kernel_operands(void *a, void *b, unsigned size, cudaStream_t stream);

/* c = a x b by the tensor units, single precision, by rows. */
void kernel_product(const void *a, const void *b, float *c, unsigned size, cudaStream_t stream);

/* The same by the ordinary units, of the first `rows` rows, a multiple of 16. */
void kernel_product_plain(
	const void *a, const void *b, float *c, unsigned size, unsigned rows, cudaStream_t stream);

/* Looks at the first `rows` rows of the product. */
void kernel_check_product(const float *c, unsigned size, unsigned rows,
	struct known_inner_sums sums, struct kernel_wrong *wrong, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
