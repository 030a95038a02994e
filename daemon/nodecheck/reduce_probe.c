/* reduce_probe.c - see reduce_probe.h */
#include "daemon/nodecheck/reduce_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/monotonic.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/nodecheck/gpu_probe.h"
#include "daemon/store/visit.h"

enum { TIMES = 5, KEY_MAX = 160 };
static const uint64_t FIRST_BYTES = 32 << 20, BYTES_UNIT = 4096;

/* What the first rank tells all: the library's id, and how much there is room for. */
struct opening {
	unsigned char id[COLLECTIVE_ID_SIZE];
	uint64_t bytes;
};

static int left_ms(const struct reduce_group *g)
{
	return monotonic_left_ms(g->until_ms);
}

static void key_of(const struct reduce_group *g, const char *name, unsigned rank, char *ret)
{
	(void)snprintf(ret, KEY_MAX, "%s%s/%u", g->keys, name, rank);
}

/* A number under a key; 0 where the other one declines. */
static int say_number(const struct reduce_group *g, const char *name, unsigned rank, uint64_t n,
	struct failure *why)
{
	char key[KEY_MAX], value[24];
	int len = snprintf(value, sizeof value, "%" PRIu64, n);

	key_of(g, name, rank, key);
	return visit_set(g->store, key, value, (size_t)len, why);
}

static int hear_number(const struct reduce_group *g, const char *name, unsigned rank, uint64_t *ret,
	struct failure *why)
{
	struct text value = { 0 };
	char key[KEY_MAX];
	int rc;

	key_of(g, name, rank, key);
	rc = visit_get(g->store, key, left_ms(g), &value, why);
	if (rc == -ETIMEDOUT && !why->code)
		rc = failure_set(why, -ENOENT, "rank %u of its group did not come", rank);
	if (rc == 0 && num_parse(text_string(&value), 0, UINT64_MAX, ret) < 0)
		rc = failure_set(why, -EPROTO, "the store has \"%s\" where a number was written",
			text_string(&value));
	text_done(&value);
	return rc;
}

void reduce_decline(const struct reduce_group *g)
{
	const struct opening none = { .bytes = 0 };
	struct failure why = { 0 };
	char key[KEY_MAX];

	if (g->rank > 0) {
		(void)say_number(g, "there", g->rank, 0, &why);
		return;
	}
	key_of(g, "open", 0, key);
	(void)visit_set(g->store, key, &none, sizeof none, &why);
}

/* As the first rank of the group: waits for all, and tells them how it begins. */
static int open_group(
	const struct reduce_group *g, uint64_t bytes, struct opening *ret, struct failure *why)
{
	char key[KEY_MAX];
	unsigned absent = 0;
	int rc = 0, sent;

	ret->bytes = bytes;
	for (unsigned rank = 1; rc == 0 && ret->bytes && rank < g->ranks; rank++) {
		rc = hear_number(g, "there", rank, &bytes, why);
		if (rc == 0 && bytes < ret->bytes)
			ret->bytes = bytes;
		absent = rank;
	}
	if (rc == 0 && ret->bytes)
		rc = g->collective->make_id(ret->id, why);
	if (rc < 0)
		ret->bytes = 0;
	key_of(g, "open", 0, key);
	sent = visit_set(g->store, key, ret, sizeof *ret, why);
	if (rc == 0 && ret->bytes == 0)
		return failure_set(
			why, -ENOENT, "rank %u of its group could not take part", absent);
	return rc < 0 ? rc : sent;
}

static int enter_group(
	const struct reduce_group *g, uint64_t bytes, struct opening *ret, struct failure *why)
{
	struct text value = { 0 };
	char key[KEY_MAX];
	int rc = say_number(g, "there", g->rank, bytes, why);

	key_of(g, "open", 0, key);
	if (rc == 0)
		rc = visit_get(g->store, key, left_ms(g), &value, why);
	if (rc == -ETIMEDOUT && !why->code)
		rc = failure_set(why, -ENOENT, "the first rank of its group did not come");
	if (rc == 0 && value.len != sizeof *ret)
		rc = failure_set(why, -EPROTO, "the store has %zu bytes where %zu were written",
			value.len, sizeof *ret);
	if (rc == 0)
		memcpy(ret, text_string(&value), sizeof *ret);
	text_done(&value);
	if (rc == 0 && ret->bytes == 0)
		rc = failure_set(why, -ENOENT, "another rank of its group could not take part");
	return rc;
}

struct buffers {
	void *from, *to;
	uint64_t bytes;
};

/* Sums up, and looks at every word of the sum. What is wrong ends nothing, as other ranks may have
 * got it right, and go on. */
static int reduce(const struct reduce_group *g, struct collective *c, const struct buffers *b,
	unsigned times, uint64_t *ret_ns, struct gpu_sight *s, struct failure *why)
{
	struct gpu_wrong wrong = { 0 };
	int rc = g->collective->all_reduce(
		c, b->from, b->to, b->bytes, times, (uint64_t)left_ms(g), ret_ns, why);

	if (rc == 0)
		rc = g->gpu->check_sum(b->to, b->bytes, g->ranks, &wrong, why);
	if (rc == 0 && wrong.count && s->what != SIGHT_WRONG)
		sighting_of_wrong(s, &wrong, b->bytes / sizeof(uint32_t), "words of the sum");
	return rc;
}

/* How much takes a quarter of the time that is left, by what a little took: the first rank decides,
 * as all have to do the same. */
static int agree(const struct reduce_group *g, uint64_t ns, struct buffers *b, struct failure *why)
{
	uint64_t first = b->bytes < FIRST_BYTES ? b->bytes : FIRST_BYTES, bytes;
	int rc;

	if (g->rank == 0) {
		double ns_per_byte = (double)ns / (double)first;
		double fit = (double)left_ms(g) * 1e6 / 4 / (double)TIMES / (ns_per_byte + 1e-6);

		bytes = fit < (double)first    ? first :
			fit > (double)b->bytes ? b->bytes :
						 (uint64_t)fit / BYTES_UNIT * BYTES_UNIT;
		b->bytes = bytes;
		return say_number(g, "bytes", 0, bytes, why);
	}
	rc = hear_number(g, "bytes", 0, &bytes, why);
	if (rc == 0 && (bytes == 0 || bytes > b->bytes))
		rc = failure_set(why, -EPROTO,
			"the first rank of its group demands %" PRIu64 " bytes", bytes);
	if (rc == 0)
		b->bytes = bytes;
	return rc;
}

static int measure(const struct reduce_group *g, struct collective *c, struct buffers *b,
	struct gpu_sight *s, struct failure *why)
{
	struct buffers first = *b;
	uint64_t ns = 0;
	int rc;

	if (first.bytes > FIRST_BYTES)
		first.bytes = FIRST_BYTES;
	g->tell("summing up the first time");
	rc = reduce(g, c, &first, 1, &ns, s, why); /* makes connections */
	if (rc == 0)
		rc = reduce(g, c, &first, 1, &ns, s, why);
	if (rc == 0)
		rc = agree(g, ns, b, why);
	g->tell("summing up");
	if (rc == 0) /* another size may take another algorithm, whose connections are made then */
		rc = reduce(g, c, b, 1, &ns, s, why);
	if (rc == 0)
		rc = reduce(g, c, b, TIMES, &ns, s, why);
	if (rc == 0 && ns) /* nccl-tests' busbw, in bytes per us */
		s->rates[RATE_BUS] = (uint64_t)((double)(b->bytes * TIMES) * 1000 / (double)ns * 2 *
			(g->ranks - 1) / g->ranks);
	return rc;
}

/* No memory is given back: the process ends next, and the GPU may hang. */
static int with_buffers(const struct reduce_group *g, const struct opening *o,
	struct collective **ret, struct gpu_sight *s, struct failure *why)
{
	struct buffers b = { .bytes = o->bytes };
	int rc = g->gpu->alloc(b.bytes, &b.from, why);

	if (rc == 0)
		rc = g->gpu->alloc(b.bytes, &b.to, why);
	if (rc == 0)
		rc = g->gpu->fill_share(b.from, b.bytes, g->rank, why);
	g->tell("meeting the other GPUs");
	if (rc == 0)
		rc = g->collective->join(o->id, g->rank, g->ranks, (uint64_t)left_ms(g), ret, why);
	return rc < 0 ? rc : measure(g, *ret, &b, s, why);
}

void reduce_probe(
	const struct reduce_group *g, const struct gpu_about *about, struct gpu_sight *ret)
{
	struct failure why = { 0 };
	struct opening o = { 0 };
	struct collective *c = NULL;
	uint64_t bytes = about->free_bytes / 4 / BYTES_UNIT * BYTES_UNIT;
	int rc;

	if (bytes > g->bytes_max)
		bytes = g->bytes_max / BYTES_UNIT * BYTES_UNIT;
	g->tell("waiting for its group");
	rc = g->rank == 0 ? open_group(g, bytes, &o, &why) : enter_group(g, bytes, &o, &why);
	if (rc == 0)
		rc = with_buffers(g, &o, &c, ret, &why);
	if (rc == 0 && ret->what != SIGHT_WRONG)
		ret->what = SIGHT_RIGHT;
	else if (rc < 0 && ret->what != SIGHT_WRONG)
		sighting_of_failure(ret, rc, &why);
	g->see(ret);
	g->tell("leaving the other GPUs");
	g->collective->leave(c, rc < 0);
}
