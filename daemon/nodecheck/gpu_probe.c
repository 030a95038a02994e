/* gpu_probe.c - see gpu_probe.h */
#include "daemon/nodecheck/gpu_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/nodecheck/gpu_ops.h"

enum {
	BLOCKS_MAX = 4096,
	COPIES = 16,
	SIZE_MAX_OF_MATRIX = 8192,
	SIZE_MIN_OF_MATRIX = 64,
	PRODUCTS_MAX = 400,
};
static const uint64_t COMPUTE_NS = 2000000000; /* about how long products are made */
static const uint64_t BLOCK_MAX = 1ULL << 30, BLOCK_UNIT = 4096;
static const uint64_t SEED = 0x9e3779b97f4a7c15;

struct probe_blocks {
	void *at[BLOCKS_MAX];
	size_t count, bytes; /* of each */
};

void sighting_of_failure(struct gpu_sight *s, int rc, const struct failure *why)
{
	s->what = rc == -EIO     ? SIGHT_BROKEN :
		rc == -ETIMEDOUT ? SIGHT_HUNG :
		rc == -ENOENT    ? SIGHT_NONE :
				   SIGHT_FAILED;
	(void)snprintf(s->text, sizeof s->text, "%.*s", (int)sizeof s->text - 1,
		why->code ? why->text : strerror(-rc));
}

void sighting_of_wrong(
	struct gpu_sight *s, const struct gpu_wrong *wrong, uint64_t of, const char *unit)
{
	s->what = SIGHT_WRONG;
	(void)snprintf(s->text, sizeof s->text,
		"%" PRIu64 " of %" PRIu64 " %s, first %" PRIu64 ": 0x%" PRIx64
		" instead of 0x%" PRIx64,
		wrong->count, of, unit, wrong->first, wrong->found, wrong->expected);
}

/* As many as there are, so that others who need some in the meantime find a rest. */
static int take_blocks(const struct gpu_ops *gpu, const struct gpu_about *about, unsigned percent,
	struct probe_blocks *b, struct failure *why)
{
	uint64_t wanted = about->free_bytes / 100 * percent;
	uint64_t bytes = wanted / 2 < BLOCK_MAX ? wanted / 2 : BLOCK_MAX;

	b->bytes = bytes / BLOCK_UNIT * BLOCK_UNIT;
	while (b->bytes && b->count < BLOCKS_MAX && (b->count + 1) * b->bytes <= wanted) {
		int rc = gpu->alloc(b->bytes, &b->at[b->count], why);

		if (rc == -ENOMEM)
			break;
		if (rc < 0)
			return rc;
		b->count++;
	}
	if (b->count < 2)
		return failure_set(why, -ENOMEM,
			"%" PRIu64 " MiB of GPU memory are free, too few to test",
			about->free_bytes >> 20);
	return 0;
}

/* All is written before any of it is read, so that no cache answers, and lines of addresses that
 * are stuck together show. */
static int test_pattern(const struct gpu_ops *gpu, const struct probe_blocks *b, uint64_t seed,
	struct gpu_sight *s, struct failure *why)
{
	uint64_t ns;

	for (size_t i = 0; i < b->count; i++) {
		int rc = gpu->fill(b->at[i], b->bytes, seed + i, &ns, why);

		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < b->count; i++) {
		struct gpu_wrong wrong = { 0 };
		int rc = gpu->check(b->at[i], b->bytes, seed + i, &wrong, &ns, why);

		if (rc < 0)
			return rc;
		if (wrong.count) {
			uint64_t words = b->bytes / sizeof(uint64_t);

			wrong.first += i * words;
			sighting_of_wrong(s, &wrong, b->count * words, "words");
			return -EBADMSG;
		}
	}
	return 0;
}

static int test_memory(const struct gpu_ops *gpu, const struct probe_blocks *b, struct gpu_sight *s,
	void (*tell)(const char *doing), struct failure *why)
{
	uint64_t ns = 0;
	int rc;

	tell("writing and reading its memory");
	rc = test_pattern(gpu, b, SEED, s, why);
	if (rc == 0)
		rc = test_pattern(gpu, b, ~SEED, s, why);
	if (rc < 0)
		return rc;
	tell("copying its memory");
	rc = gpu->copy(b->at[1], b->at[0], b->bytes, 1, &ns, why);
	if (rc == 0)
		rc = gpu->copy(b->at[1], b->at[0], b->bytes, COPIES, &ns, why);
	if (rc == 0 && ns) /* bytes read and written, per us */
		s->rates[RATE_MEMORY] =
			(uint64_t)((double)(b->bytes * 2 * COPIES) * 1000 / (double)ns);
	return rc;
}

static int multiply(const struct gpu_ops *gpu, void *room, unsigned size, unsigned times,
	uint64_t *ret_ns, struct gpu_sight *s, struct failure *why)
{
	struct gpu_wrong wrong = { 0 };
	int rc = gpu->multiply(room, size, times, &wrong, ret_ns, why);

	if (rc == 0 && wrong.count) {
		sighting_of_wrong(
			s, &wrong, (uint64_t)size * size * times, "elements of matrix products");
		return -EBADMSG;
	}
	return rc;
}

static int test_compute(const struct gpu_ops *gpu, const struct gpu_about *about,
	struct gpu_sight *s, void (*tell)(const char *doing), struct failure *why)
{
	unsigned size = SIZE_MAX_OF_MATRIX, times;
	uint64_t ns = 0;
	void *room;
	int rc;

	while (size > SIZE_MIN_OF_MATRIX && gpu_multiply_bytes(size) > about->free_bytes / 2)
		size /= 2;
	rc = gpu->alloc(gpu_multiply_bytes(size), &room, why);
	if (rc < 0)
		return rc;
	tell("multiplying matrices");
	rc = multiply(gpu, room, size, 2, &ns, s, why);
	if (rc == 0 && ns) {
		uint64_t fit = COMPUTE_NS / (ns / 2 + 1) + 1;

		times = fit < PRODUCTS_MAX ? (unsigned)fit : PRODUCTS_MAX;
		rc = multiply(gpu, room, size, times, &ns, s, why);
		if (rc == 0 && ns)
			s->rates[RATE_COMPUTE] =
				(uint64_t)(2.0 * size * size * size * times * 1000 / (double)ns);
	}
	gpu->free(room);
	return rc;
}

void gpu_probe(const struct gpu_ops *gpu, const struct gpu_about *about, unsigned memory_percent,
	void (*tell)(const char *doing), struct gpu_sight *ret)
{
	static struct probe_blocks blocks; /* once in a process, and too large for a stack */
	struct failure why = { 0 };
	int rc;

	(void)snprintf(ret->test, sizeof ret->test, "gpu_memory");
	rc = take_blocks(gpu, about, memory_percent, &blocks, &why);
	if (rc == 0)
		rc = test_memory(gpu, &blocks, ret, tell, &why);
	while (blocks.count)
		gpu->free(blocks.at[--blocks.count]);
	if (rc == 0) {
		(void)snprintf(ret->test, sizeof ret->test, "gpu_compute");
		rc = test_compute(gpu, about, ret, tell, &why);
	}
	if (rc == 0) {
		*ret->test = '\0';
		ret->what = SIGHT_RIGHT;
	} else if (rc != -EBADMSG) {
		sighting_of_failure(ret, rc, &why);
	}
}
