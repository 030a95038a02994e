/* known.h - the values that a check of a GPU writes, and what must come of them: the same for
 * kernels, which are CUDA, and for the rest, which is C. Pure.
 *
 * All of it is exact: whole numbers, and few enough that no rounding is ever needed, so that every
 * GPU of every kind has to give the same bits in whatever order it adds. */
#ifndef LAUNCHD_DAEMON_NODECHECK_KNOWN_H
#define LAUNCHD_DAEMON_NODECHECK_KNOWN_H

#include <stdint.h>

#ifdef __CUDACC__
#define KNOWN static __host__ __device__ __forceinline__
#else
#define KNOWN static inline
#endif

/* splitmix64's last step: each bit depends on all */
KNOWN uint64_t known_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* What stands in memory: of ~seed every bit is the other one. */
KNOWN uint64_t known_word(uint64_t seed, uint64_t index)
{
	uint64_t flip = (uint64_t) - (int64_t)(seed >> 63);

	return known_mix((seed ^ flip) + index * 0x9e3779b97f4a7c15) ^ flip;
}

/* What a rank gives to a sum, and the sum over all ranks, modulo 2^32. */
KNOWN uint32_t known_share(uint32_t rank, uint64_t index)
{
	return (uint32_t)known_mix(index) + rank * 0x9e3779b9U;
}

KNOWN uint32_t known_sum(uint32_t ranks, uint64_t index)
{
	uint64_t pairs = (uint64_t)ranks * (ranks - 1) / 2;

	return ranks * (uint32_t)known_mix(index) + (uint32_t)pairs * 0x9e3779b9U;
}

/* Matrices A and B of rank 2, whose product is known without multiplying them:
 *	A[i][k] = row(0, i) x inner(0, k) + row(1, i) x inner(1, k)
 *	B[k][j] = column(0, j) x inner(0, k) + column(1, j) x inner(1, k)
 * Elements are from -6 to 6, which every kind of number has; sums over 8192 stay below 2^19. */
KNOWN int known_small(uint64_t x, int most)
{
	return (int)(known_mix(x * 0x9e3779b97f4a7c15 + 1) % (uint64_t)(2 * most + 1)) - most;
}

KNOWN int known_row(int which, unsigned i)
{
	return known_small(((uint64_t)which << 32) | i, 3);
}

KNOWN int known_column(int which, unsigned j)
{
	return known_small(((uint64_t)(which + 2) << 32) | j, 3);
}

KNOWN int known_inner(int which, unsigned k)
{
	return known_small(((uint64_t)(which + 4) << 32) | k, 1);
}

KNOWN int known_a(unsigned i, unsigned k)
{
	return known_row(0, i) * known_inner(0, k) + known_row(1, i) * known_inner(1, k);
}

KNOWN int known_b(unsigned k, unsigned j)
{
	return known_column(0, j) * known_inner(0, k) + known_column(1, j) * known_inner(1, k);
}

/* Sums of the inner products, over all k; the caller makes them once. */
struct known_inner_sums {
	int s[3]; /* of 0 with 0, 0 with 1, 1 with 1 */
};

KNOWN struct known_inner_sums known_inner_sums(unsigned size)
{
	struct known_inner_sums sums = { { 0, 0, 0 } };

	for (unsigned k = 0; k < size; k++) {
		int x = known_inner(0, k), y = known_inner(1, k);

		sums.s[0] += x * x;
		sums.s[1] += x * y;
		sums.s[2] += y * y;
	}
	return sums;
}

KNOWN int known_product(struct known_inner_sums sums, unsigned i, unsigned j)
{
	int a0 = known_row(0, i), a1 = known_row(1, i);
	int b0 = known_column(0, j), b1 = known_column(1, j);

	return a0 * b0 * sums.s[0] + (a0 * b1 + a1 * b0) * sums.s[1] + a1 * b1 * sums.s[2];
}

#endif
