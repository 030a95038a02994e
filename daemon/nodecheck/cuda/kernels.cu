/* kernels.cu - see kernels.h */
#include <cuda_fp16.h>
#include <mma.h>

#include "daemon/nodecheck/cuda/kernels.h"

namespace wmma = nvcuda::wmma;

enum { THREADS = 256, BLOCKS = 4096 };

/* Of few threads that find something; those that find nothing cost nothing. */
static __device__ void note_wrong(struct kernel_wrong *wrong, unsigned long long index)
{
	atomicAdd(&wrong->count, 1ULL);
	atomicMin(&wrong->first, index);
}

static __device__ size_t first_index(void)
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ size_t stride(void)
{
	return (size_t)gridDim.x * blockDim.x;
}

static __global__ void fill(uint64_t *at, size_t words, uint64_t seed)
{
	for (size_t i = first_index(); i < words; i += stride())
		at[i] = known_word(seed, i);
}

static __global__ void check(
	const uint64_t *at, size_t words, uint64_t seed, struct kernel_wrong *wrong)
{
	for (size_t i = first_index(); i < words; i += stride())
		if (at[i] != known_word(seed, i))
			note_wrong(wrong, i);
}

static __global__ void fill_share(uint32_t *at, size_t words, uint32_t rank)
{
	for (size_t i = first_index(); i < words; i += stride())
		at[i] = known_share(rank, i);
}

static __global__ void check_sum(
	const uint32_t *at, size_t words, uint32_t ranks, struct kernel_wrong *wrong)
{
	for (size_t i = first_index(); i < words; i += stride())
		if (at[i] != known_sum(ranks, i))
			note_wrong(wrong, i);
}

static __global__ void operands(__half *a, __half *b, unsigned size)
{
	for (size_t i = first_index(); i < (size_t)size * size; i += stride()) {
		unsigned line = (unsigned)(i / size), k = (unsigned)(i % size);

		a[i] = __int2half_rn(known_a(line, k));
		b[i] = __int2half_rn(known_b(k, line));
	}
}

/* A block of four warps makes 64 x 64 elements, each warp 32 x 32 of them. */
static __global__ void __launch_bounds__(128)
	product(const __half *a, const __half *b, float *c, unsigned size)
{
	enum { SIDE = 16, TILES = 2 };
	unsigned warp = threadIdx.x / 32;
	unsigned row = blockIdx.y * 64 + warp / 2 * 32, column = blockIdx.x * 64 + warp % 2 * 32;
	wmma::fragment<wmma::matrix_a, SIDE, SIDE, SIDE, __half, wmma::row_major> rows[TILES];
	wmma::fragment<wmma::matrix_b, SIDE, SIDE, SIDE, __half, wmma::col_major> columns[TILES];
	wmma::fragment<wmma::accumulator, SIDE, SIDE, SIDE, float> sums[TILES][TILES];

	for (int y = 0; y < TILES; y++)
		for (int x = 0; x < TILES; x++)
			wmma::fill_fragment(sums[y][x], 0.0f);
	for (unsigned k = 0; k < size; k += SIDE) {
		for (int i = 0; i < TILES; i++) {
			wmma::load_matrix_sync(rows[i], a + (size_t)(row + i * SIDE) * size + k, size);
			wmma::load_matrix_sync(
				columns[i], b + (size_t)(column + i * SIDE) * size + k, size);
		}
		for (int y = 0; y < TILES; y++)
			for (int x = 0; x < TILES; x++)
				wmma::mma_sync(sums[y][x], rows[y], columns[x], sums[y][x]);
	}
	for (int y = 0; y < TILES; y++)
		for (int x = 0; x < TILES; x++)
			wmma::store_matrix_sync(
				c + (size_t)(row + y * SIDE) * size + column + x * SIDE, sums[y][x], size,
				wmma::mem_row_major);
}

static __global__ void product_plain(const __half *a, const __half *b, float *c, unsigned size)
{
	unsigned row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
	float sum = 0;

	for (unsigned k = 0; k < size; k++)
		sum = fmaf(__half2float(a[(size_t)row * size + k]),
			__half2float(b[(size_t)column * size + k]), sum);
	c[(size_t)row * size + column] = sum;
}

/* Not equal also where it is not a number. */
static __global__ void check_product(const float *c, unsigned size, unsigned rows,
	struct known_inner_sums sums, struct kernel_wrong *wrong)
{
	for (size_t i = first_index(); i < (size_t)rows * size; i += stride())
		if (!(c[i] == (float)known_product(sums, (unsigned)(i / size), (unsigned)(i % size))))
			note_wrong(wrong, i);
}

void kernel_fill(uint64_t *at, size_t words, uint64_t seed, cudaStream_t stream)
{
	fill<<<BLOCKS, THREADS, 0, stream>>>(at, words, seed);
}

void kernel_check(const uint64_t *at, size_t words, uint64_t seed, struct kernel_wrong *wrong,
	cudaStream_t stream)
{
	check<<<BLOCKS, THREADS, 0, stream>>>(at, words, seed, wrong);
}

void kernel_fill_share(uint32_t *at, size_t words, uint32_t rank, cudaStream_t stream)
{
	fill_share<<<BLOCKS, THREADS, 0, stream>>>(at, words, rank);
}

void kernel_check_sum(const uint32_t *at, size_t words, uint32_t ranks, struct kernel_wrong *wrong,
	cudaStream_t stream)
{
	check_sum<<<BLOCKS, THREADS, 0, stream>>>(at, words, ranks, wrong);
}

void kernel_operands(void *a, void *b, unsigned size, cudaStream_t stream)
{
	operands<<<BLOCKS, THREADS, 0, stream>>>((__half *)a, (__half *)b, size);
}

void kernel_product(const void *a, const void *b, float *c, unsigned size, cudaStream_t stream)
{
	product<<<dim3(size / 64, size / 64), 128, 0, stream>>>(
		(const __half *)a, (const __half *)b, c, size);
}

void kernel_product_plain(const void *a, const void *b, float *c, unsigned size, unsigned rows,
	cudaStream_t stream)
{
	product_plain<<<dim3(size / 16, rows / 16), dim3(16, 16), 0, stream>>>(
		(const __half *)a, (const __half *)b, c, size);
}

void kernel_check_product(const float *c, unsigned size, unsigned rows,
	struct known_inner_sums sums, struct kernel_wrong *wrong, cudaStream_t stream)
{
	check_product<<<BLOCKS, THREADS, 0, stream>>>(c, size, rows, sums, wrong);
}
