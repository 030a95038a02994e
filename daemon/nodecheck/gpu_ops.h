/* gpu_ops.h - what the check of a GPU needs of CUDA and NCCL: two tables of functions.
 *
 * The program launchd-nodecheck has CUDA and NCCL behind them (cuda_ops.c, nccl_ops.c). The tests'
 * has plain memory and faults that are asked for, so that all else is tested where there is no GPU.
 *
 * Both are used in a child only (part.h), which may hang in any of them: nothing here has to
 * return, but what has a limit tries. Each returns 0 or negative errno with a sentence: -EIO is a
 * fault that the GPU or the library itself reports (an ECC error that can't be corrected, a peer
 * that is lost), and speaks against the hardware; all else is "could not run". */
#ifndef LAUNCHD_DAEMON_NODECHECK_GPU_OPS_H
#define LAUNCHD_DAEMON_NODECHECK_GPU_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;

enum { COLLECTIVE_ID_SIZE = 128 };

struct gpu_about {
	char name[64]; /* "NVIDIA H100 80GB HBM3" */
	char bus[24];  /* "0000:3b:00.0" */
	uint64_t free_bytes, total_bytes;
};

/* What was found wrong in values that are known. */
struct gpu_wrong {
	uint64_t count;           /* 0: all are right */
	uint64_t first;           /* the lowest index of a wrong value */
	uint64_t found, expected; /* there */
};

/* Device memory is `void *` here, as in CUDA; nothing but these functions touches it. */
struct gpu_ops {
	const char *serves; /* for --version: which drivers and GPUs; NULL: nothing to say */
	/* How many GPUs this process sees; 0 with a sentence where there is no driver or no GPU. */
	int (*count)(unsigned *ret, struct failure *why);
	/* Takes a GPU for all that follows. Once. */
	int (*open)(unsigned device, struct gpu_about *ret, struct failure *why);

	/* -ENOMEM without a sentence: no such piece is free. */
	int (*alloc)(size_t bytes, void **ret, struct failure *why);
	void (*free)(void *at);

	/* Fills memory with 64-bit words that depend on seed and index; the time that took. */
	int (*fill)(void *at, size_t bytes, uint64_t seed, uint64_t *ret_ns, struct failure *why);
	/* Reads them again; first in *ret_wrong is an index of words. */
	int (*check)(void *at, size_t bytes, uint64_t seed, struct gpu_wrong *ret_wrong,
		uint64_t *ret_ns, struct failure *why);
	/* Copies from one piece to the other, `times` times; the time for all. */
	int (*copy)(void *to, const void *from, size_t bytes, unsigned times, uint64_t *ret_ns,
		struct failure *why);

	/* Multiplies matrices of small whole numbers, size x size, `times` times, on the tensor
	 * units and then, a part of it, on the others; every element of each product is compared
	 * with what it must be. `room` has gpu_multiply_bytes(size). The time of the products
	 * alone. */
	int (*multiply)(void *room, unsigned size, unsigned times, struct gpu_wrong *ret_wrong,
		uint64_t *ret_ns, struct failure *why);

	/* What rank `rank` gives to a sum, and whether a sum over `ranks` ranks is right: 32-bit
	 * words whose sums are exact (modulo 2^32) in any order. */
	int (*fill_share)(void *at, size_t bytes, unsigned rank, struct failure *why);
	int (*check_sum)(void *at, size_t bytes, unsigned ranks, struct gpu_wrong *ret_wrong,
		struct failure *why);
};

/* Two matrices of 16-bit numbers, and a product of 32-bit ones. */
static inline size_t gpu_multiply_bytes(unsigned size)
{
	return (size_t)size * size * (2 + 2 + 4);
}

struct collective; /* one communicator */

struct collective_ops {
	/* Whether the library is there; the sentence says what is missing. -ELIBACC. */
	int (*load)(struct failure *why);
	/* By the first rank of a group, which hands it to the others. */
	int (*make_id)(unsigned char ret[COLLECTIVE_ID_SIZE], struct failure *why);
	/* All ranks meet. -ETIMEDOUT: not within the limit. */
	int (*join)(const unsigned char id[COLLECTIVE_ID_SIZE], unsigned rank, unsigned ranks,
		uint64_t limit_ms, struct collective **ret, struct failure *why);
	/* Sums memory of all ranks up into `to`, `times` times from `from`; the time for all.
	 * -ETIMEDOUT as above. */
	int (*all_reduce)(struct collective *c, const void *from, void *to, size_t bytes,
		unsigned times, uint64_t limit_ms, uint64_t *ret_ns, struct failure *why);
	/* After a failure the others may hang: nothing waits for them. NULL is allowed. */
	void (*leave)(struct collective *c, bool failed);
};

#endif
