/* fuzz_ras.c - an answer of NCCL's RAS, which any process that listens there may give, and the line
 * in which launchers tell what it says of a rank. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/witness/ras_counts.h"

enum { RANKS = 4 };

static bool is_same(const struct rank_ops *a, const struct rank_ops *b)
{
	return a->known == b->known && a->behind == b->behind && a->ahead == b->ahead &&
		a->odd == b->odd && a->gone == b->gone && a->started == b->started &&
		a->most == b->most;
}

/* What is told is understood. */
static void check_line(unsigned rank, const struct rank_ops *ops)
{
	struct text line = { 0 };
	struct rank_ops again;
	unsigned whose;

	rank_ops_add(&line, rank, ops);
	PROMISE(!line.failed && line.len > 0 && line.at[line.len - 1] == '\n');
	line.at[line.len - 1] = '\0';
	PROMISE(rank_ops_read(line.at, &whose, &again) == 0);
	PROMISE(whose == rank && is_same(&again, ops));
	text_done(&line);
}

static void check_answer(const char *answer, size_t len)
{
	static const struct ras_worker own[] = { { 1001, 0 }, { 1002, 1 }, { 2001, 2 },
		{ 2002, 3 } };
	struct rank_ops ops[RANKS];
	struct ras_counts c;

	if (ras_counts_read(answer, len, &c) == 0) {
		PROMISE(c.count <= RAS_ENTRIES_MAX);
		if (ras_counts_judge(&c, own, RANKS, RANKS, ops))
			for (unsigned i = 0; i < RANKS; i++) {
				ops[i].known = true; /* others are not told */
				check_line(i, &ops[i]);
			}
		(void)ras_counts_moved(&c, &c);
	}
	ras_counts_done(&c);
}

static void check_told(const uint8_t *bytes, size_t len)
{
	char *line = malloc(len + 1);
	struct rank_ops ops;
	unsigned rank;

	PROMISE(line != NULL);
	memcpy(line, bytes, len);
	line[len] = '\0';
	if (rank_ops_read(line, &rank, &ops) == 0)
		check_line(rank, &ops);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char *exact = malloc(len > 0 ? len : 1); /* an answer has no NUL behind it */

	if (len == 0)
		bytes = (const uint8_t *)"";
	PROMISE(exact != NULL);
	memcpy(exact, bytes, len);
	check_answer(exact, len);
	free(exact);
	check_told(bytes, len);
	return 0;
}
