/* fake_nodecheck.c - launchd-nodecheck with GPUs that are plain memory, links that are the job's
 *store, and faults that are asked for in $FAKE_GPU_FAULTS: words "WHO:FAULT", where WHO is 1.0
 *local rank 0 of node 1     1     node 1     0-1   what lies between nodes 0 and 1 1.0-1 what lies
 *between local ranks 0 and 1 of node 1 and FAULT one of those of the table below. Times are
 *computed, not spent. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/nodecheck/known.h"
#include "daemon/nodecheck/nodecheck.h"
#include "daemon/store/visit.h"

enum { FREE_BYTES = 256 << 10, MEMBERS_MAX = 64, SLOW = 4, KEY_MAX = 128 };

/* --- faults --- */

static unsigned number_of(const char *name)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static bool has_fault(const char *who, const char *fault)
{
	const char *all = getenv("FAKE_GPU_FAULTS");
	char word[KEY_MAX];
	size_t len = (size_t)snprintf(word, sizeof word, "%s:%s", who, fault);

	for (const char *at = all; at && (at = strstr(at, word)); at++)
		if ((at == all || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

static bool gpu_has(const char *fault)
{
	char who[32];

	(void)snprintf(who, sizeof who, "%u.%u", number_of("GROUP_RANK"), number_of("LOCAL_RANK"));
	return has_fault(who, fault);
}

static _Noreturn void hang(void)
{
	for (;;)
		(void)pause();
}

/* --- a GPU --- */

static int count_gpus(unsigned *ret, struct failure *why)
{
	*ret = gpu_has("none") ? 0 : getenv("FAKE_GPUS") ? number_of("FAKE_GPUS") : 8;
	if (*ret == 0)
		(void)failure_set(why, -ENODEV, "no driver here, in this test");
	return 0;
}

static int open_gpu(unsigned device, struct gpu_about *ret, struct failure *why)
{
	if (gpu_has("open-hang"))
		hang();
	if (gpu_has("busy"))
		return failure_set(why, -EBUSY, "cudaSetDevice: another process has it");
	*ret = (struct gpu_about){ .free_bytes = FREE_BYTES, .total_bytes = FREE_BYTES };
	(void)snprintf(ret->name, sizeof ret->name, "Fake 100");
	(void)snprintf(ret->bus, sizeof ret->bus, "0000:%02x:00.0", device + 0x10);
	return 0;
}

static int take(size_t bytes, void **ret, struct failure *why)
{
	(void)why;
	*ret = malloc(bytes);
	return *ret ? 0 : -ENOMEM;
}

static void give_back(void *at)
{
	free(at);
}

static int fill(void *at, size_t bytes, uint64_t seed, uint64_t *ret_ns, struct failure *why)
{
	uint64_t *words = at;

	if (gpu_has("memory-hang"))
		hang();
	if (gpu_has("ecc"))
		return failure_set(
			why, -EIO, "writing memory: uncorrectable ECC error encountered");
	for (size_t i = 0; i < bytes / sizeof *words; i++)
		words[i] = known_word(seed, i);
	*ret_ns = bytes;
	if (gpu_has("memory-wrong"))
		words[17] &= ~(1ULL << 5); /* stuck at 0: seen of a word or of its inverse */
	return 0;
}

static int check(void *at, size_t bytes, uint64_t seed, struct gpu_wrong *ret_wrong,
	uint64_t *ret_ns, struct failure *why)
{
	const uint64_t *words = at;

	(void)why;
	for (size_t i = bytes / sizeof *words; i-- > 0;)
		if (words[i] != known_word(seed, i))
			*ret_wrong = (struct gpu_wrong){ ret_wrong->count + 1, i, words[i],
				known_word(seed, i) };
	*ret_ns = bytes;
	return 0;
}

static int copy(void *to, const void *from, size_t bytes, unsigned times, uint64_t *ret_ns,
	struct failure *why)
{
	(void)why;
	memcpy(to, from, bytes);
	*ret_ns = bytes * times * (gpu_has("memory-slow") ? SLOW : 1); /* 2 GB/s */
	return 0;
}

static int multiply(void *room, unsigned size, unsigned times, struct gpu_wrong *ret_wrong,
	uint64_t *ret_ns, struct failure *why)
{
	struct known_inner_sums sums = known_inner_sums(size);
	int *product = room;

	(void)why;
	if (gpu_has("dies")) {
		(void)signal(SIGSEGV, SIG_DFL); /* not a sanitizer's */
		(void)raise(SIGSEGV);
	}
	for (unsigned i = 0; i < size; i++)
		for (unsigned j = 0; j < size; j++) {
			int sum = 0;

			for (unsigned k = 0; k < size; k++)
				sum += known_a(i, k) * known_b(k, j);
			product[i * size + j] = sum;
		}
	if (gpu_has("compute-wrong"))
		product[3]++;
	for (unsigned i = size * size; i-- > 0;) {
		int known = known_product(sums, i / size, i % size);

		if (product[i] != known)
			*ret_wrong = (struct gpu_wrong){ ret_wrong->count + 1, i,
				(uint64_t)product[i], (uint64_t)known };
	}
	*ret_ns = times * 100000 * (gpu_has("compute-slow") ? SLOW : 1);
	return 0;
}

static int fill_share(void *at, size_t bytes, unsigned rank, struct failure *why)
{
	uint32_t *words = at;

	(void)why;
	for (size_t i = 0; i < bytes / sizeof *words; i++)
		words[i] = known_share(rank, i);
	return 0;
}

static int check_sum(
	void *at, size_t bytes, unsigned ranks, struct gpu_wrong *ret_wrong, struct failure *why)
{
	const uint32_t *words = at;

	(void)why;
	for (size_t i = bytes / sizeof *words; i-- > 0;)
		if (words[i] != known_sum(ranks, i))
			*ret_wrong = (struct gpu_wrong){ ret_wrong->count + 1, i, words[i],
				known_sum(ranks, i) };
	return 0;
}

static const struct gpu_ops gpu = {
	.count = count_gpus,
	.open = open_gpu,
	.alloc = take,
	.free = give_back,
	.fill = fill,
	.check = check,
	.copy = copy,
	.multiply = multiply,
	.fill_share = fill_share,
	.check_sum = check_sum,
};

/* --- what lies between GPUs --- */

struct collective {
	struct visit store;
	unsigned rank, ranks, turn;
	struct {
		unsigned node, local;
	} members[MEMBERS_MAX];
	char id[33];
};
static struct collective only;

static int load(struct failure *why)
{
	if (gpu_has("no-nccl"))
		return failure_set(why, -ELIBACC, "NCCL: libnccl.so.2 isn't there, in this test");
	return 0;
}

static int make_id(unsigned char ret[COLLECTIVE_ID_SIZE], struct failure *why)
{
	(void)why;
	memset(ret, 0, COLLECTIVE_ID_SIZE);
	(void)snprintf((char *)ret, COLLECTIVE_ID_SIZE, "fake-%d", (int)getpid());
	return 0;
}

static int say(
	struct collective *c, const char *what, const void *at, size_t len, struct failure *why)
{
	char key[KEY_MAX];

	(void)snprintf(key, sizeof key, "%s/%s/%u/%u", c->id, what, c->turn, c->rank);
	return visit_set(&c->store, key, at, len, why);
}

static int hear(struct collective *c, const char *what, unsigned rank, uint64_t limit_ms,
	struct text *ret, struct failure *why)
{
	char key[KEY_MAX];
	int rc;

	(void)snprintf(key, sizeof key, "%s/%s/%u/%u", c->id, what, c->turn, rank);
	rc = visit_get(&c->store, key, (int)limit_ms, ret, why);
	return rc == -ETIMEDOUT && !why->code ?
		failure_set(why, rc, "%s did not end in time", what) :
		rc;
}

static int join(const unsigned char id[COLLECTIVE_ID_SIZE], unsigned rank, unsigned ranks,
	uint64_t limit_ms, struct collective **ret, struct failure *why)
{
	struct collective *c = &only;
	struct text self = { 0 };
	int rc;

	*c = (struct collective){ .store = { .fd = -1 }, .rank = rank, .ranks = ranks };
	memcpy(c->id, id, sizeof c->id - 1);
	rc = visit_open(&c->store, getenv("MASTER_ADDR"), number_of("MASTER_PORT"), 10000, why);
	if (rc < 0)
		return rc;
	text_printf(&self, "%u %u", number_of("GROUP_RANK"), number_of("LOCAL_RANK"));
	rc = say(c, "join", text_string(&self), self.len, why);
	for (unsigned i = 0; rc == 0 && i < ranks && i < MEMBERS_MAX; i++) {
		struct text said = { 0 };

		rc = hear(c, "join", i, limit_ms, &said, why);
		if (rc == 0 &&
			sscanf(text_string(&said), "%u %u", &c->members[i].node,
				&c->members[i].local) != 2)
			rc = failure_set(why, -EPROTO, "join: %s", text_string(&said));
		text_done(&said);
	}
	text_done(&self);
	*ret = c;
	return rc;
}

static bool spans_nodes(const struct collective *c)
{
	for (unsigned i = 1; i < c->ranks; i++)
		if (c->members[i].node != c->members[0].node)
			return true;
	return false;
}

/* Of a fault that goes away, only the first who asks has it. */
static bool asks_first(struct collective *c, const char *who)
{
	struct failure why = { 0 };
	char key[KEY_MAX];
	int64_t times = 0;

	if (c->rank != 0)
		return false;
	(void)snprintf(key, sizeof key, "fake/%s", who);
	return visit_add(&c->store, key, 1, &times, &why) == 0 &&
		times <= 3; /* calls of one step */
}

/* Whether a pair of members has a fault between them, or one of them. */
static bool pair_has(struct collective *c, unsigned i, unsigned k, const char *fault)
{
	char who[64];

	if (c->members[i].node == c->members[k].node)
		(void)snprintf(who, sizeof who, "%u.%u-%u", c->members[i].node, c->members[i].local,
			c->members[k].local);
	else
		(void)snprintf(who, sizeof who, "%u-%u", c->members[i].node, c->members[k].node);
	return has_fault(who, fault);
}

static bool group_has(struct collective *c, const char *name)
{
	const char *kind = spans_nodes(c) ? "net" : getenv("NCCL_P2P_DISABLE") ? "nic" : "link";
	char fault[32], once[40], who[64];

	(void)snprintf(fault, sizeof fault, "%s-%s", kind, name);
	(void)snprintf(once, sizeof once, "%s-once", fault);
	for (unsigned i = 0; i < c->ranks; i++) {
		(void)snprintf(who, sizeof who, "%u.%u", c->members[i].node, c->members[i].local);
		if (has_fault(who, fault))
			return true;
		(void)snprintf(who, sizeof who, "%u", c->members[i].node);
		if (has_fault(who, fault) || (has_fault(who, once) && asks_first(c, who)))
			return true;
		for (unsigned k = i + 1; k < c->ranks; k++)
			if (pair_has(c, i, k, fault))
				return true;
	}
	return false;
}

static int sum_up(struct collective *c, const void *from, void *to, size_t bytes, uint64_t limit_ms,
	struct failure *why)
{
	uint32_t *sums = to;
	int rc = say(c, "sum", from, bytes, why);

	memset(to, 0, bytes);
	for (unsigned i = 0; rc == 0 && i < c->ranks; i++) {
		struct text share = { 0 };

		rc = hear(c, "sum", i, limit_ms, &share, why);
		for (size_t w = 0; rc == 0 && w < bytes / sizeof *sums; w++) {
			uint32_t word;

			memcpy(&word, share.at + w * sizeof word, sizeof word);
			sums[w] += word;
		}
		text_done(&share);
	}
	return rc;
}

static int all_reduce(struct collective *c, const void *from, void *to, size_t bytes,
	unsigned times, uint64_t limit_ms, uint64_t *ret_ns, struct failure *why)
{
	uint64_t mb_s = spans_nodes(c) || getenv("NCCL_P2P_DISABLE") ? 40000 : 400000;
	int rc;

	c->turn++;
	if (c->rank == 0 && group_has(c, "stuck"))
		hang();
	if (c->rank == 0 && group_has(c, "hang"))
		(void)usleep((unsigned)(limit_ms + 500) * 1000);
	if (group_has(c, "error"))
		return failure_set(why, -EIO, "ncclAllReduce: unhandled system error");
	rc = sum_up(c, from, to, bytes, limit_ms, why);
	if (rc == 0 && c->rank == c->ranks - 1 && group_has(c, "wrong"))
		((uint32_t *)to)[5] ^= 1U << 9;
	if (c->rank == 0 && group_has(c, "slow"))
		mb_s /= SLOW;
	*ret_ns = bytes * times * 1000 / mb_s;
	return rc;
}

static void leave(struct collective *c, bool failed)
{
	(void)failed;
	if (c)
		visit_close(&c->store);
}

static const struct collective_ops collective = {
	.load = load,
	.make_id = make_id,
	.join = join,
	.all_reduce = all_reduce,
	.leave = leave,
};

int main(int argc, char **argv)
{
	return nodecheck_main(argc, argv, &gpu, &collective);
}
